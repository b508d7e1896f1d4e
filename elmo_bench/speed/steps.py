"""Training steps of a task on one core, and their memory, on batches chosen in advance.

The rows come from any available data; model, batch size and length limits are those of a scale. Choosing rows and
training on them are separate, so that reading a data set counts neither as memory nor as time. ELMo's layers are random
numbers, rounded like the cache's. The bound is the rate of the best matrix product in the same process, divided by
three times the operations of a forward pass on the rows, each row alone, without padding.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from hydra.utils import instantiate
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from elmo_bench.configuration import composing, pages
from elmo_bench.configuration.schema import RunConfig, TaskConfig
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.layers.source import Sentences
from elmo_bench.nn.numerics import clip, gradient_norm
from elmo_bench.records.settings import maker
from elmo_bench.running.build import build
from elmo_bench.running.module import BenchModule
from elmo_bench.speed.measuring import best_product, in_turn
from elmo_bench.system.machine import keep_freed_memory, peak_mib
from elmo_bench.system.storage import json_text
from elmo_bench.task import Batch, Reader, Row, Samples
from elmo_bench.text.batching import BucketSampler
from elmo_bench.text.tokens import lengths, sentences_of
from elmo_bench.text.vocabulary import Vocabulary

Chosen = dict[str, Any]  # the JSON object that `choose` makes
ROUNDS = 3  # on one core; the best counts
ROWS = 4  # rows of a batch whose products are counted
PASSES = 3  # the work of forward and backward pass, in forward passes


class RandomLayers:
    """Random layers for a cache, by default of the release's sizes, which cost as much to read as the release's."""

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
    """The tasks that support both scale=paper and the scale whose data are read."""
    return [task for task in pages.tasks() if {"paper", scale} <= set(pages.scales(task))]


def choose(task: str, data: Sequence[str], scale: str = "paper", number: int = 0) -> Chosen:
    """Chooses training batches.

    Args:
        data: overrides that choose the data, such as scale=open and data_root.
        scale: gives the batch size and the length limits of rows.
        number: the number of batches besides the first, drawn at random.

    Returns:
        task, scale; batches: lists of rows, first the batch with the most padded words; vocabularies; about the data:
        rows of train and dev, and batches in an epoch.
    """
    given = composing.run_config([f"task={task}", "arm=baseline", *data])
    measured_task = composing.run_config([f"task={task}", "arm=baseline", f"scale={scale}"]).task
    if generator := maker(given.scale, given):
        generator.make()
    reader = instantiate({**measured_task.reader, "data": given.task.data})
    splits = reader.load()
    train, bounds = splits["train"], measured_task.batch
    words = lengths(train, reader.fields)
    epoch = BucketSampler(words, bounds.batch_size, token_budget=bounds.token_budget).batches(0)
    heaviest = max(epoch, key=lambda batch: len(batch) * max(words[i] for i in batch))
    chosen = [heaviest, *(epoch[i] for i in np.linspace(0, len(epoch) - 1, number).astype(int))]
    vocabularies = {name: vocabulary.state() for name, vocabulary in reader.vocabularies.items()}
    batches = [[train[i] for i in batch] for batch in chosen]
    if isinstance(reader, Samples):  # the part of each row that one epoch trains on
        draws = (np.random.default_rng(0) for _ in batches)
        batches = [[reader.sample(row, draw) for row in rows] for rows, draw in zip(batches, draws, strict=True)]
    return {
        "task": task,
        "scale": scale,
        "batches": batches,
        "vocabularies": vocabularies,
        "rows": {split: len(splits[split]) for split in ("train", "dev")},
        "epoch": len(epoch),
    }


class Case:
    """A task's model and some of its training batches.

    Args:
        source: the source of layers, used by all arms but the baseline.
        data: overrides that choose the data, for a scale whose configuration files need them.
    """

    def __init__(self, chosen: Chosen, arm: str = "elmo", source: RandomLayers | None = None, data: Sequence[str] = ()):
        self.chosen, self.arm = chosen, arm
        overrides = [f"task={chosen['task']}", f"arm={arm}", f"scale={chosen['scale']}", *data]
        self.run: RunConfig = composing.run_config(overrides)
        self.task: TaskConfig = self.run.task
        self.reader: Reader = instantiate(self.task.reader)
        for name, state in chosen.get("vocabularies", {}).items():
            self.reader.vocabularies[name] = Vocabulary.restore(state)
        self._cache = None
        if not self.run.baseline:  # layers are not stored, but rounded as if they were
            with tempfile.TemporaryDirectory() as folder:
                self._cache = ActivationCache(source or RandomLayers(), folder)  # type: ignore[arg-type]

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
    """An update as in training, with gradient clipping, without Lightning; returns the detached loss."""
    optimizer.zero_grad()
    loss.backward()
    bound, parameters = task.clip, [p for p in module.parameters() if p.requires_grad]
    if bound.value is not None and bound.by == "norm":
        clip(parameters, gradient_norm(parameters), bound.value)
    elif bound.value is not None:
        torch.nn.utils.clip_grad_value_(parameters, bound.value)
    optimizer.step()
    return loss.detach()


def on_one_core(case: Case) -> dict[str, float]:
    """Tokens a second, MFLOP a token, the share of the bound.

    CPU time of the process, so that other work on the machine matters little.
    """
    module, batches = case.module(), case.batches
    optimizer = module.configure_optimizers()

    def epoch() -> None:
        for batch in batches:
            update(module, case.task, optimizer, module(batch).loss)

    epoch()  # a warm-up
    seconds = min(in_turn({"epoch": epoch}, ROUNDS, time.process_time)["epoch"])
    tokens = sum(len(s) for batch in batches for text in batch.texts.values() for s in text.sentences)
    work, best = flops(case, batches), best_product(clock=time.process_time)
    return {
        "tokens_a_second": tokens / seconds,
        "mflop_a_token": work / tokens / 1e6,
        "share_of_bound": work / seconds / best,
    }


def flops(case: Case, batches: Sequence[Batch]) -> float:
    """The operations of updates on these batches, each row alone, extrapolated from some rows; counted on the CPU."""
    module, total = case.module(), 0.0
    for batch in batches:
        some = batch.rows[:: max(1, len(batch.rows) // ROWS)]
        with FlopCounterMode(display=False, custom_mapping=PRODUCTS) as counted:
            for row in some:
                module(case.batch([row]))
        total += PASSES * counted.get_total_flops() * len(batch.rows) / len(some)
    return total


PRODUCTS: dict[Any, Callable[..., int]] = {  # of oneDNN
    # its LSTM: every row of x times the input's and the state's weights
    torch.ops.aten.mkldnn_rnn_layer: lambda x, w, u, *_, **__: 2 * x[0] * x[1] * (w.numel() + u.numel()),
    torch.ops.mkldnn._linear_pointwise: lambda x, *_, out_shape, **__: 2 * x.numel() * out_shape[-1],
}


def measured(task: str, data_root: str, number: int) -> dict[str, Any]:
    """The speed on some batches of scale=open, with layers as wide as those of its biLM."""
    keep_freed_memory()
    torch.set_num_threads(1)
    data = ["scale=open", f"data_root={data_root}"]
    options = composing.run_config(["task=ner", "arm=baseline", *data]).scale.options
    assert options is not None
    source = RandomLayers(2 * json_text.read(options)["lstm"]["projection_dim"])
    return {"task": task, **on_one_core(Case(choose(task, data, "open", number), "elmo", source, data))}


def peak(chosen: Chosen) -> dict[str, Any]:
    """Rows and words of the longest row of the first batch; peak MiB of this process after a step without optimizer."""
    case = Case(chosen)
    batch = case.batches[0]
    case.module()(batch).loss.backward()
    words = max(lengths(batch.rows, case.reader.fields))
    return {"rows": len(batch.rows), "words": words, "peak_mib": peak_mib()}
