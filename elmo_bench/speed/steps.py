"""Prints the speed of N training steps of a task at scale=open on one core: `... TASK DATA_ROOT N`.

ELMo's layers come from the cache; they are random numbers of the biLM's width. Time is the process's own, so that other
work on the machine matters little. The bound is the best matrix product in the same process, divided by three times the
products that the rows need in a forward pass, each row alone: no padding.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from hydra.utils import instantiate
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import DataLoader
from torch.utils.flop_counter import FlopCounterMode

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import RunConfig, TaskConfig
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.running.build import build
from elmo_bench.running.data import ReadAhead, lengths, sentences
from elmo_bench.running.module import BenchModule
from elmo_bench.speed import gemm
from elmo_bench.speed.cases import RandomLayers, sampled, update
from elmo_bench.system import allocator
from elmo_bench.system.storage import json_text
from elmo_bench.task import Batch, Reader
from elmo_bench.text.batching import BucketSampler

ROUNDS = 3  # of which the best counts
LONE = 8  # rows of a batch whose products are counted
PASSES = 3  # the work of forward and backward pass, in forward passes
WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "repeat_interleave")  # for a GPU


class Operations(TorchDispatchMode):
    """Counts the operations that compute something, and those for whose result a GPU would be waited for."""

    def __init__(self) -> None:
        super().__init__()
        self.number = self.waits = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        self.number += not func.is_view
        indices = args[1] if name in ("index", "index_put", "index_put_", "_index_put_impl_") else ()
        self.waits += name.startswith(WAITS) or any(i is not None and i.dtype == torch.bool for i in indices)
        return func(*args, **(kwargs or {}))


class Steps(NamedTuple):
    """A model and the batches that it is trained on."""

    loader: ReadAhead
    module: BenchModule
    reader: Reader
    task: TaskConfig


def main(task: str, data_root: str, number: str) -> None:
    """Measures a number of steps and prints them as JSON."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    allocator.keep_freed()
    with tempfile.TemporaryDirectory() as folder:
        run = schema.typed(pages.compose([f"task={task}", "scale=open", f"data_root={data_root}", "trainer=cpu"]))
        print(json.dumps({"task": task, **speed(_made(run, Path(folder), int(number)))}))


def speed(steps: Steps) -> dict[str, Any]:
    """Tokens a second, MFLOP a token, the share of the bound; operations and waits of a step."""
    batches = list(steps.loader)
    tokens = sum(len(s) for batch in batches for text in batch.texts.values() for s in text.sentences)
    optimizer = steps.module.configure_optimizers()
    took = _seconds(steps, optimizer, batches)
    with Operations() as operations:
        update(steps.module, steps.task, optimizer, batches[0])
    flops, best = row_flops(steps, batches), max(gemm.rates(time.process_time, ROUNDS)).flops
    return {
        "tokens_a_second": tokens / took,
        "mflop_a_token": flops / tokens / 1e6,
        "share_of_bound": flops / took / best,
        "operations_a_step": operations.number,
        "waits_a_step": operations.waits,
    }


def _seconds(steps: Steps, optimizer: torch.optim.Optimizer, batches: Sequence[Batch]) -> float:
    """Of a pass over the batches, the least of a few."""
    took = []
    for _ in range(ROUNDS + 1):
        started = time.process_time()
        for batch in batches:
            update(steps.module, steps.task, optimizer, batch)
        took.append(time.process_time() - started)
    return min(took[1:])  # the first round is a warm-up


def row_flops(steps: Steps, batches: Sequence[Batch]) -> float:
    """The products that a step on each of the batches needs; estimated from LONE of its rows, about equally long."""
    total = 0.0
    for batch in batches:
        some = batch.rows[:: max(1, len(batch.rows) // LONE)]
        alone = (steps.loader._with_layers(steps.reader.collate([row])) for row in some)
        total += products(steps.module, alone) * len(batch.rows) / len(some)
    return total


def products(module: BenchModule, batches: Iterable[Batch]) -> float:
    """The operations of the products of a forward and a backward pass over batches on the CPU."""
    counted = FlopCounterMode(display=False, custom_mapping=PRODUCTS)
    with counted:
        for batch in batches:
            module(batch)
    return PASSES * counted.get_total_flops()


def _recurrent(x: torch.Size, *weights: torch.Size, out_shape: Any, **_: Any) -> int:
    """oneDNN's LSTM: every row of x times the input's and the state's weights."""
    return 2 * x[0] * x[1] * (weights[0].numel() + weights[1].numel())


def _pointwise(x: torch.Size, *_: Any, out_shape: torch.Size, **__: Any) -> int:
    return 2 * x.numel() * out_shape[-1]


PRODUCTS = {torch.ops.aten.mkldnn_rnn_layer: _recurrent, torch.ops.mkldnn._linear_pointwise: _pointwise}


def _made(run: RunConfig, folder: Path, number: int) -> Steps:
    """A model and a loader of the first batches of an epoch, with their layers in the cache."""
    reader = instantiate(run.task.reader)
    train, bounds = reader.load()["train"], run.task.batch
    sampler = BucketSampler(lengths(train, reader.fields), bounds.batch_size, run.seed, bounds.token_budget)
    chosen = sampler.batches(0)[:number]
    rows = sampled(reader, [train[i] for batch in chosen for i in batch])
    cache = ActivationCache(_layers(run), folder)
    cache.console.quiet = True
    cache.prepare(list(sentences([rows], reader.fields)))
    places = iter(range(len(rows)))
    batches = [[next(places) for _ in batch] for batch in chosen]
    loader = DataLoader(rows, batch_sampler=batches, collate_fn=reader.collate)  # type: ignore[arg-type]
    return Steps(ReadAhead(loader, cache), build(run, reader, cache).train(), reader, run.task)


def _layers(run: RunConfig) -> RandomLayers:
    """Random layers of the width of the biLM that the scale names."""
    assert run.scale.options is not None  # scale=open names a biLM
    return RandomLayers(2 * json_text.read(run.scale.options)["lstm"]["projection_dim"])


if __name__ == "__main__":
    main(*sys.argv[1:])
