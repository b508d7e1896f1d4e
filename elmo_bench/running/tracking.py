"""Where a run's metrics go while it trains: always CSV files, and what `logger=` adds, such as W&B or TensorBoard."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytorch_lightning as pl
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from pytorch_lightning.callbacks import Checkpoint
from pytorch_lightning.loggers import CSVLogger, Logger

from elmo_bench.configuration.schema import RunConfig, WandbConfig
from elmo_bench.identity.identity import Description
from elmo_bench.metrics.items import Items
from elmo_bench.records import items as item_files
from elmo_bench.records import store, wandb_record
from elmo_bench.records.record import Record, Started
from elmo_bench.records.store import columns
from elmo_bench.running.record import begun
from elmo_bench.system import machine
from elmo_bench.system.errors import UserError
from elmo_bench.system.wandb_runs import SWEEP, WandbRun, opened, say


class EpochLog(Checkpoint):
    """Logs every epoch to W&B. Lightning calls it, as any `Checkpoint`, when the module has the epoch's history."""

    def __init__(self, run: WandbRun):
        self.run = run

    def on_train_epoch_end(self, trainer: pl.Trainer, module: Any) -> None:
        (row,) = wandb_record.rows(columns(module.history[-1:]))
        self.run.log(row, row["updates"])


class Tracking(NamedTuple):
    """The loggers and callbacks of a run, and its W&B run, if there is one."""

    loggers: list[Logger]
    callbacks: list[pl.Callback]
    run: WandbRun

    def conclude(self, record: Record, items: dict[str, Items], predictions: Path) -> None:
        """Logs what the record says of the run as a whole, and the predictions for the test set."""
        if self.run.run is not None:
            wandb_record.conclude(self.run, record, items["test"], predictions)


NOTHING = Tracking([], [], WandbRun())


@contextmanager
def tracking(config: RunConfig, described: Description, folder: Path) -> Iterator[Tracking]:
    """The loggers of a run, closed at its end, so that each run of a sweep is a separate W&B run.

    A resumed run starts a new `csv/version_<n>`, and a new part of the same W&B run, which `wandb sync` puts together.
    """
    loggers = [CSVLogger(folder, name="csv"), *made("logger.more", config.logger.more, save_dir=str(folder))]
    if config.logger.wandb is None:
        yield NOTHING._replace(loggers=loggers)
        return
    run, failed = _open(config, config.logger.wandb, described, folder), True
    try:
        yield Tracking(loggers, [EpochLog(run)], run)
        failed = False
    finally:
        where, offline = run.folder, run.offline
        run.close(failed)
        if offline:
            say(f"logged offline; `wandb sync {where}` uploads it")


def again(config: RunConfig, record: Record) -> None:
    """Logs a recorded run into the run that an agent of a W&B sweep has started for it: the sweep has its metric."""
    assert config.logger.wandb is not None
    folder = store.work(config.results_root, record.scale, record.task, record.run)
    run = opened(folder, load=False, **_arguments(config.logger.wandb, record, None))
    for row in wandb_record.rows(wandb_record.history(record)):
        run.log(row, row["updates"])
    wandb_record.conclude(run, record, None, folder / item_files.PREDICTIONS)
    run.close()


def made(place: str, blocks: Mapping[str, Any], **defaults: Any) -> list[Any]:
    """What the blocks of callbacks or loggers name by `_target_`, in their order.

    Args:
        place: their key, for messages.
        blocks: by any names; an empty one is left out.
        defaults: values for arguments that a block gives as null.

    Raises:
        UserError: a block names no class, or arguments that it does not take.
    """
    found = []
    for name, block in blocks.items():
        if not block:
            continue
        if not isinstance(block, Mapping) or "_target_" not in block:
            raise UserError(f"{place}.{name}: a block with _target_=CLASS is needed")
        given = {key: defaults.get(key) if value is None else value for key, value in block.items()}
        try:
            found.append(instantiate(given))
        except Exception as error:  # whatever an import or a constructor raises
            reason = " ".join(str(error.__cause__ or error).split())
            raise UserError(f"{place}.{name} ({block['_target_']}): {reason}") from error
    return found


def _open(config: RunConfig, options: WandbConfig, described: Description, folder: Path) -> WandbRun:
    commit, dirty = machine.commit()
    bilm = {"name": None if config.baseline else config.bilm.name}
    known = Started(**begun(config, described), bilm=bilm, commit=commit, dirty=dirty)
    sweep = HydraConfig.get().runtime.choices.get("sweep") if HydraConfig.initialized() else None
    return opened(folder, **_arguments(options, known, sweep))


def _arguments(options: WandbConfig, run: Started, sweep: str | None) -> dict[str, Any]:
    """Of `wandb.init`. In a sweep of W&B's, the agent has given the run its id."""
    known = wandb_record.arguments(run, options.group or wandb_record.group(run, sweep))
    if os.environ.get(SWEEP):
        known["id"] = os.environ.get("WANDB_RUN_ID") or known["id"]
    chosen = {key: getattr(options, key) for key in ("project", "entity", "notes")}
    named = {key: getattr(options, key) or known[key] for key in ("name", "job_type")}
    return known | chosen | named | {"tags": [*known["tags"], *options.tags]}
