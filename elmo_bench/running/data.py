"""The rows of a run, all or a fraction of them, in batches; the stored layers of their sentences.

The paper does not say how long its models were trained on a fraction of the data (section 5.4 and Figure 1). At 1 % of
the data, the usual number of epochs gives only 1 % of the updates, too few to learn. Each epoch therefore repeats the
subset until the run makes `task.fit.least_updates` updates, but at most one pass more than training on all the data
makes. The number of epochs and the patience stay the same.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from datasets import DatasetDict
from torch.utils.data import DataLoader

from elmo_bench.configuration.schema import BatchConfig, RunConfig
from elmo_bench.embedding.scalar_mix import only_layer
from elmo_bench.layers.bilm import carries, read_text
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.nn.packing import ahead, pinned
from elmo_bench.system.errors import UserError
from elmo_bench.task import Batch, Reader, Row, Samples
from elmo_bench.text.batching import BucketSampler
from elmo_bench.text.part import Part
from elmo_bench.text.tokens import lengths, sentences, sentences_of

CPU = torch.device("cpu")


class Data(pl.LightningDataModule):
    """Batches of the splits; training batches are a function of (seed, epoch).

    With several devices the batches are distributed to the ranks in turn: an update uses one batch per rank. In
    training the remaining batches are left out, different ones in every epoch. Dev and test rows are scored once.

    Args:
        batch: the settings for the size of batches.
        seed: of the run.
        reader: makes batches of rows.
        splits: the rows.
        caches: by split, the cache of the layers of its sentences; none if layers are computed when needed.

    Attributes:
        passes: number of passes of an epoch over the training rows, each with different batches.
    """

    def __init__(
        self,
        batch: BatchConfig,
        seed: int,
        reader: Reader,
        splits: DatasetDict,
        caches: Mapping[str, ActivationCache] | None = None,
    ):
        super().__init__()
        self.caches, self.passes = caches or {}, 1
        self.reader, self.splits, self.seed = reader, splits, seed
        for split in splits:
            if not len(splits[split]):
                raise UserError(f"the {split} split of the data has no rows")
        self.lengths = {split: lengths(rows, reader.fields) for split, rows in splits.items()}
        self.sampler = partial(BucketSampler, seed=seed, batch_size=batch.batch_size, token_budget=batch.token_budget)

    def train_dataloader(self) -> Prefetched:
        """Called before every epoch."""
        assert self.trainer is not None
        epoch = self.trainer.current_epoch
        sampler, first = self.sampler(self.lengths["train"]), epoch * self.passes
        batches = [batch for number in range(first, first + self.passes) for batch in sampler.batches(number)]
        reader, size, rank = self.reader, self.trainer.world_size, self.trainer.global_rank
        random = np.random.default_rng([self.seed, epoch, *([rank] if rank else [])])

        def collate(rows: Sequence[Row]) -> Batch:
            parts = [reader.sample(row, random) for row in rows] if isinstance(reader, Samples) else rows
            return self.reader.collate(parts)

        return self._loader("train", batches[: len(batches) // size * size], collate)

    def val_dataloader(self) -> Prefetched | list[Batch]:
        if "dev" not in self.splits:
            return []
        return self._loader("dev", self.sampler(self.lengths["dev"], shuffle=False).batches(0))

    def test_dataloader(self) -> Prefetched:
        return self._loader("test", self.sampler(self.lengths["test"], shuffle=False).batches(0))

    def _loader(self, split: str, batches: list[list[int]], collate: Callable | None = None) -> Prefetched:
        """A loader for this rank's share of the batches."""
        assert self.trainer is not None
        batches = batches[self.trainer.global_rank :: self.trainer.world_size]
        if not batches:
            raise UserError(f"the {split} split has fewer batches than there are devices; use fewer devices")
        loader = DataLoader(
            self.splits[split],  # type: ignore[arg-type]
            batch_sampler=batches,
            collate_fn=collate or self.reader.collate,
            generator=torch.Generator(),  # separate: an iterator must not draw its seed from the model's generator
        )
        return Prefetched(loader, self.caches.get(split), self.trainer.strategy.root_device)


class Prefetched:
    """A loader that prepares the next batch, with its cached layers, in a thread while the current one is used."""

    def __init__(self, loader: DataLoader, cache: ActivationCache | None = None, device: torch.device = CPU):
        self.loader, self.cache, self.device = loader, cache, device
        self.batch_sampler = loader.batch_sampler

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Batch]:
        return ahead(map(self._prepared, self.loader))

    def _prepared(self, batch: Batch) -> Batch:
        if self.cache is not None:
            read = {name: self.cache.read(sentences_of(tokens)) for name, tokens in batch.texts.items()}
            batch = batch._replace(texts={name: batch.texts[name]._replace(layers=read[name]) for name in read})
        return pinned(batch, self.device)


def stored_layers(
    source: Any, splits: DatasetDict, fields: Sequence[str], cache_root: str, elmo_layers: Any = "all"
) -> dict[str, ActivationCache]:
    """By split, the stored layers of its sentences; empty if the source computes them when needed.

    The splits share one cache, unless the state is carried through the text of a split. For a model that reads one
    layer (`elmo_layers`, the key `elmo.layers`), only that layer is stored, unless all layers are stored already.
    """
    if carries(source):
        texts = {str(split): list(sentences([rows], fields)) for split, rows in splits.items()}
        return {split: read_text(source, text, cache_root) for split, text in texts.items()}
    if not isinstance(source, ActivationCache):
        return {}
    wanted, only = list(sentences(splits.values(), fields)), only_layer(elmo_layers, source.n_layers)
    cache = source
    if only is not None and not source.has(wanted):  # a cache of this layer fills much less of the disk
        cache = ActivationCache(source.source, source.folder.parent, only)
    cache.prepare(wanted)
    return {str(split): cache for split in splits}


def load(reader: Reader, run: RunConfig) -> DatasetDict:
    """The splits of a run: all of dev and test, and the run's fraction of train.

    For a run that records nothing, some batches of each; with `trainer.overfit_batches`, train's batches for all.
    """
    trainer, splits = run.trainer, _read(reader, run)
    limit = int(run.debug and (trainer.limit_batches or 0))
    if few := (trainer.overfit_batches or int(trainer.fast_dev_run) or limit) * run.task.batch.batch_size:
        rows = {split: splits["train"] if trainer.overfit_batches else splits[split] for split in splits}
        return DatasetDict({split: each.select(range(min(few, len(each)))) for split, each in rows.items()})
    return splits


def _read(reader: Reader, run: RunConfig) -> DatasetDict:
    if run.fraction == 1:
        return reader.load()
    if "part" not in inspect.signature(reader.load).parameters:
        raise UserError(f"fraction={run.fraction}: the reader of task={run.task.name} can only read all of its data")
    splits = reader.load(Part(run.fraction, run.seed, run.task.batch.batch_size))
    print(f"fraction={run.fraction}: training on {len(splits['train'])} examples", file=sys.stderr)
    return splits


def passes(run: RunConfig, batches: int) -> int:
    """The number of passes of an epoch over the training data: one for the complete data.

    Args:
        run: its configuration.
        batches: the number of batches in one pass.
    """
    if run.fraction == 1:
        return 1
    together = run.trainer.devices * run.trainer.accumulate_grad_batches
    updates = run.task.fit.epochs * max(batches // together, 1)  # of all epochs, with one pass each
    return max(1, math.ceil(min(run.task.fit.least_updates / updates, 1 / run.fraction)))
