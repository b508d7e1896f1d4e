"""Prints how long training at scale=open waits for batches and cached layers: `... TASK DATA_ROOT BATCHES`."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from hydra.utils import instantiate
from torch.utils.data import DataLoader

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.layers.build import open_source
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.running.build import build
from elmo_bench.running.data import ReadAhead, lengths, sentences
from elmo_bench.running.module import BenchModule
from elmo_bench.task import Batch
from elmo_bench.text.batching import BucketSampler

WARM = 3  # batches before the measurement


def main(task: str, data_root: str, number: str) -> None:
    """Measures some training steps of a task with ELMo."""
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        run = schema.typed(pages.compose([f"task={task}", "scale=open", f"data_root={data_root}", "trainer=cpu"]))
        loader, module = _made(run, Path(folder), WARM + int(number))
        batches = iter(loader)
        _steps(batches, module, WARM)
        waited, took = _steps(batches, module, int(number))
    steps = int(number)
    print(json.dumps({"task": task, "steps": steps, "seconds_a_step": took / steps, "waiting": waited / took}))


def _made(run: RunConfig, folder: Path, number: int) -> tuple[ReadAhead, BenchModule]:
    """A loader of the first batches, with their layers in the cache, and the model."""
    reader = instantiate(run.task.reader)
    splits = reader.load()
    rows, bounds = splits["train"], run.task.batch
    sampler = BucketSampler(lengths(rows, reader.fields), bounds.batch_size, run.seed, bounds.token_budget)
    batches = sampler.batches(0)[:number]
    cache = open_source(run.bilm, cache_root=folder, cached=True)
    assert isinstance(cache, ActivationCache)
    cache.console.quiet = True
    cache.prepare(list(sentences([[rows[i] for batch in batches for i in batch]], reader.fields)))
    loader = DataLoader(rows, batch_sampler=batches, collate_fn=reader.collate)  # type: ignore[arg-type]
    return ReadAhead(loader, cache), build(run, reader, cache)


def _steps(batches: Iterator[Batch], module: BenchModule, number: int) -> tuple[float, float]:
    """Seconds of waiting for some batches, and of everything."""
    optimizer, waited, started = module.configure_optimizers(), 0.0, time.perf_counter()
    for _ in range(number):
        before = time.perf_counter()
        batch = next(batches)
        waited += time.perf_counter() - before
        optimizer.zero_grad()
        module(batch).loss.backward()
        optimizer.step()
    return waited, time.perf_counter() - started


if __name__ == "__main__":
    main(*sys.argv[1:])
