"""Training batches of each task at the sizes of a scale, with random layers: what steps are measured and tested on.

The rows are of whatever data are at hand; model, batch size and what is cut off are those of the scale. Choosing rows
and training on them are separate, so that reading a data set counts neither as memory nor as time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from hydra.utils import instantiate
from torch import Tensor

from elmo_bench.configuration import composing, pages
from elmo_bench.configuration.schema import RunConfig, TaskConfig
from elmo_bench.identity.settings import maker
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.layers.source import Sentences
from elmo_bench.nn.numerics import clip, gradient_norm
from elmo_bench.running.build import build
from elmo_bench.running.module import BenchModule
from elmo_bench.task import Batch, Reader, Row, Samples
from elmo_bench.text.batching import BucketSampler
from elmo_bench.text.tokens import lengths, sentences_of
from elmo_bench.text.vocabulary import Vocabulary

Chosen = dict[str, Any]  # the JSON object that `choose` makes


class RandomLayers:
    """Random layers for a cache, by default of the release's sizes: reading them costs what the release's do."""

    n_layers, sha256, module = 3, "random", None
    cacheable, doubled_first_layer, settings = True, True, {"source": "random"}

    def __init__(self, width: int = 1024):
        self.width = width

    def batches(self, sentences: Sentences) -> Iterator[tuple[list[int], Tensor]]:
        """One sentence after another, (3, T, width)."""
        for i, sentence in enumerate(sentences):
            layers = torch.randn(self.n_layers, len(sentence), self.width)
            layers[0, :, self.width // 2 :] = layers[0, :, : self.width // 2]
            yield [i], layers


def tasks(scale: str) -> list[str]:
    """Those that offer both scale=paper and the scale whose data are read."""
    return [task for task in pages.tasks() if {"paper", scale} <= set(pages.scales(task))]


def choose(task: str, data: Sequence[str], scale: str = "paper", number: int = 0) -> Chosen:
    """Chooses training batches.

    Args:
        data: overrides that choose the data, such as scale=open and data_root.
        scale: whose batch size, and whose limits of a row, count.
        number: of batches besides the first, drawn at random.

    Returns:
        task, scale; batches: lists of rows, the first the batch with the most padded words; vocabularies; of the data:
        rows of train and dev, and batches in an epoch.
    """
    here = composing.run_config([f"task={task}", "arm=baseline", *data])
    there = composing.run_config([f"task={task}", "arm=baseline", f"scale={scale}"])
    if made := maker(here.scale, here):
        made.make()
    reader = instantiate({**there.task.reader, "data": here.task.data})
    splits = reader.load()
    train, bounds = splits["train"], there.task.batch
    words = lengths(train, reader.fields)
    epoch = BucketSampler(words, bounds.batch_size, token_budget=bounds.token_budget).batches(0)
    heaviest = max(epoch, key=lambda batch: len(batch) * max(words[i] for i in batch))
    chosen = [heaviest, *(epoch[i] for i in np.linspace(0, len(epoch) - 1, number).astype(int))]
    return {
        "task": task,
        "scale": scale,
        "batches": [sampled(reader, [train[i] for i in batch]) for batch in chosen],
        "vocabularies": {name: vocabulary.state() for name, vocabulary in reader.vocabularies.items()},
        "rows": {split: len(splits[split]) for split in ("train", "dev")},
        "epoch": len(epoch),
    }


def sampled(reader: Reader, rows: list[Row]) -> list[Row]:
    """The part of each row that one epoch trains on."""
    random = np.random.default_rng(0)
    return [reader.sample(row, random) for row in rows] if isinstance(reader, Samples) else rows


@dataclass
class Case:
    """A task's model and some of its training batches.

    Args:
        source: of the layers, which all arms but the baseline use.
        data: overrides that choose the data, for a scale whose configuration files need them.
    """

    chosen: Chosen
    arm: str = "elmo"
    source: RandomLayers | None = None
    data: Sequence[str] = ()

    @cached_property
    def run(self) -> RunConfig:
        """The configuration of the task at the scale."""
        overrides = [f"task={self.chosen['task']}", f"arm={self.arm}", f"scale={self.chosen['scale']}", *self.data]
        return composing.run_config(overrides)

    @property
    def task(self) -> TaskConfig:
        return self.run.task

    @cached_property
    def reader(self) -> Reader:
        reader = instantiate(self.task.reader)
        reader.vocabularies = {name: Vocabulary.restore(one) for name, one in self.chosen["vocabularies"].items()}
        return reader

    @cached_property
    def _cache(self) -> ActivationCache | None:
        """Reads no file and writes none: what is not in its folder is computed, and rounded as if it were stored."""
        if self.run.baseline:
            return None
        with tempfile.TemporaryDirectory() as folder:
            return ActivationCache(self.source or RandomLayers(), folder)  # type: ignore[arg-type]

    @cached_property
    def batches(self) -> list[Batch]:
        """The batches on the CPU, with their layers; the same for the same rows."""
        torch.manual_seed(0)
        return [self.batch(rows) for rows in self.chosen["batches"]]

    def batch(self, rows: Sequence[Row]) -> Batch:
        """A batch on the CPU, with its layers."""
        batch = self.reader.collate(rows)
        if self._cache is None:
            return batch
        read = {name: self._cache.read(sentences_of(tokens)) for name, tokens in batch.texts.items()}
        return batch._replace(texts={name: batch.texts[name]._replace(layers=read[name]) for name in read})

    def module(self, device: torch.device | str = "cpu") -> BenchModule:
        """A new model for training on a device, with the same weights each time."""
        torch.manual_seed(0)
        return build(self.run, self.reader, self._cache).train().to(device)


def update(module: BenchModule, task: TaskConfig, optimizer: torch.optim.Optimizer, loss: Tensor) -> Tensor:
    """An update as in training, with the gradients clipped, without Lightning; returns the loss, detached."""
    optimizer.zero_grad()
    loss.backward()
    bound, parameters = task.clip, [p for p in module.parameters() if p.requires_grad]
    if bound.value is not None and bound.by == "norm":
        clip(parameters, gradient_norm(parameters), bound.value)
    elif bound.value is not None:
        torch.nn.utils.clip_grad_value_(parameters, bound.value)
    optimizer.step()
    return loss.detach()
