"""One training run, from configuration to record."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import NamedTuple

import pytorch_lightning as pl
from hydra.utils import instantiate
from pytorch_lightning.loggers import Logger

from elmo_bench.configuration import schema
from elmo_bench.configuration.schema import Plain, RunConfig
from elmo_bench.embedding.tables import located
from elmo_bench.embedding.vectors import WordsUsed, look_up
from elmo_bench.metrics.items import Items
from elmo_bench.records import items, store
from elmo_bench.records.record import Record
from elmo_bench.running import ranks, unfinished
from elmo_bench.running.blocks import check_blocks, rehearse
from elmo_bench.running.build import build, layers_source
from elmo_bench.running.callbacks import KeepBest
from elmo_bench.running.data import Data, load, passes, stored_layers
from elmo_bench.running.fit import check_machine, fit, interruptible, make_trainer, set_up
from elmo_bench.running.module import SMALLER, BenchModule
from elmo_bench.running.ranks import Rank
from elmo_bench.running.record import Description, make_record
from elmo_bench.running.tracking import Tracking, check_watched, instantiated, tracking
from elmo_bench.system import console, machine, processes
from elmo_bench.system.errors import UserError, explained
from elmo_bench.task import Reader

IMPORTS = time.process_time()  # CPU seconds until a process can train


def checked(run: RunConfig, folder: Path) -> Tracking:
    """The typed callbacks and loggers, after a check of all typed settings, before anything is prepared."""
    check_blocks(run.task)
    device = check_machine(run.trainer)
    if (fewest := run.trainer.min_epochs or 0) > (most := run.task.fit.epochs):
        raise UserError(f"trainer.min_epochs={fewest}: more than task.fit.epochs={most}; lower it, or raise epochs")
    set_up(run.trainer)
    rehearse(run.task, device)
    callbacks = instantiated("callbacks", run.callbacks, pl.Callback)
    check_watched(run, callbacks)
    mine = [*callbacks.values()]
    make_trainer(run.task, run.trainer, folder, mine, logger=False)  # raises for arguments that Lightning refuses
    return Tracking([*instantiated("logger.more", run.logger.more, Logger, save_dir=str(folder)).values()], mine)


def run_once(
    run: RunConfig, described: Description, vectors: Path | None, typed: Tracking
) -> tuple[Record, dict[str, Items]]:
    """Trains or resumes training, selects the best epoch on dev, tests it; returns record and per-example results.

    Args:
        run: its configuration.
        described: its description.
        vectors: the file of its word vectors, if they are trained here.
        typed: the typed callbacks and loggers.
    """
    started = time.perf_counter()
    folder = store.work(run.results_root, run.scale.name, run.task.name, described.identity.run).absolute()
    began = time.process_time()
    prepared, spent = prepare(run, vectors, described.config), machine.prepared()
    start = IMPORTS + time.process_time() - began - spent["layers"]
    keep = KeepBest(folder)
    others = {"config": described.config, "folder": str(folder), "vectors": None if vectors is None else str(vectors)}
    with tracking(run, described, folder, typed) as tracked:
        with ranks.started(run.trainer.devices, others, folder) as rank:
            trainer, earlier = fit_and_test(run, prepared, keep, tracked, rank)
        module = prepared.module
        outside = time.perf_counter() - started - sum(epoch["seconds"] for epoch in module.history[earlier:])
        device = trainer.strategy.root_device.type
        preparing = {"start": round(start, 1), **spent}
        record = make_record(run, described, module, keep, outside, device, prepared.words, preparing)
        scored = items.collect(folder, module.test_items)
        try:
            items.check(scored, record.metrics, module.make_metric().from_totals)
        except ValueError as error:
            raise UserError(f"{error}; do its files belong to another run? {unfinished.REMEDY}", folder) from error
        tracked.run.conclude(record, scored["test"], folder / items.PREDICTIONS)
    return record, scored


def follow(run: RunConfig, folder: Path, rank: Rank, vectors: Path | None = None) -> None:
    """The work of another rank in the same run: trains and scores its share of the batches, and writes nothing."""
    own = Tracking(callbacks=[*instantiated("callbacks", run.callbacks, pl.Callback).values()])
    fit_and_test(run, prepare(run, vectors, rank=rank), KeepBest(folder), own, rank)


class Prepared(NamedTuple):
    """The prepared parts of a run's training."""

    module: BenchModule
    data: Data
    words: WordsUsed | None


def prepare(
    run: RunConfig, vectors: Path | None = None, config: Plain | None = None, rank: Rank = ranks.ALONE
) -> Prepared:
    """Reads the data, fills the cache and builds the model; equal on every rank."""
    set_up(run.trainer, rank)
    pl.seed_everything(run.seed, verbose=False)
    reader: Reader = instantiate(run.task.reader)
    splits = load(reader, run)
    sets, block = located(run), None if run.words_dropped else run.task.words
    source = None if run.baseline else layers_source(run.bilm, run)
    with machine.preparing("layers"):
        caches = stored_layers(source, splits, reader.fields, run.cache_root, run.elmo.layers)
    words = None if block is None else look_up(block, sets, vectors, reader, splits)
    pl.seed_everything(run.seed, verbose=False)  # the same initial weights, whatever was drawn above
    stored = config and {key: value for key, value in config.items() if key not in ("callbacks", "logger")}
    module = build(run, reader, caches.get("train", source), words and words.tables, stored)
    if run.compile:
        module.head.compile(dynamic=True)  # type: ignore[operator]
    data = Data(run.task.batch, run.seed, reader, splits, caches)
    data.passes = passes(run, len(data.sampler(data.lengths["train"])))
    return Prepared(module, data, words)


def fit_and_test(
    run: RunConfig, prepared: Prepared, keep: KeepBest, tracked: Tracking, rank: Rank
) -> tuple[pl.Trainer, int]:
    """Trains or resumes, and tests the best epoch; returns the trainer and the number of epochs done before."""
    module, data, _ = prepared
    callbacks = [*tracked.callbacks, keep]
    trainer = make_trainer(run.task, run.trainer, keep.folder, callbacks, tracked.loggers, rank, module.leaves_unused)
    earlier = fit(trainer, module, data, keep)
    history = module.history[: keep.epoch] if rank.first else None  # with times, which differ from rank to rank
    module.load_state_dict(unfinished.best(keep.folder, history)["state_dict"])
    with interruptible(trainer), explained(module.doing, SMALLER):
        trainer.test(module, datamodule=data, verbose=False)
    return trainer, earlier


def main() -> None:
    """The process of another device, started by rank 0 (`ranks.started`): reads the run from standard input."""
    task = json.load(sys.stdin)
    processes.end_with_parent(task["parent"])
    vectors = None if task["vectors"] is None else Path(task["vectors"])
    follow(schema.from_plain(task["config"]), Path(task["folder"]), Rank(*task["rank"]), vectors)


if __name__ == "__main__":
    console.report(main)
