"""Where a run's metrics go while it trains: always CSV files, and Weights & Biases with `logger=wandb`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytorch_lightning as pl
from hydra.core.hydra_config import HydraConfig
from pytorch_lightning.callbacks import Checkpoint
from pytorch_lightning.loggers import CSVLogger, Logger

from elmo_bench.configuration.schema import RunConfig, WandbConfig
from elmo_bench.identity.identity import Description
from elmo_bench.metrics.items import Items
from elmo_bench.records import wandb_record
from elmo_bench.records.record import Record, Started
from elmo_bench.records.store import columns
from elmo_bench.running.record import begun
from elmo_bench.system import machine
from elmo_bench.system.wandb_runs import WandbRun, opened, say


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

    Args:
        config: of the run.
        described: its identity, arm and configuration.
        folder: its work folder.
    """
    csv = CSVLogger(folder, name="csv")
    if config.logger.wandb is None:
        yield NOTHING._replace(loggers=[csv])
        return
    run, failed = _open(config, config.logger.wandb, described, folder), True
    try:
        yield Tracking([csv], [EpochLog(run)], run)
        failed = False
    finally:
        where, offline = run.folder, run.offline
        run.close(failed)
        if offline:
            say(f"logged offline; `wandb sync {where}` uploads it")


def _open(config: RunConfig, options: WandbConfig, described: Description, folder: Path) -> WandbRun:
    commit, dirty = machine.commit()
    bilm = {"name": None if config.baseline else config.bilm.name}
    known = Started(**begun(config, described), bilm=bilm, commit=commit, dirty=dirty)
    sweep = HydraConfig.get().runtime.choices.get("sweep") if HydraConfig.initialized() else None
    arguments = wandb_record.arguments(known, options.group or wandb_record.group(known, sweep))
    arguments["job_type"] = options.job_type or arguments["job_type"]
    return opened(folder, project=options.project, **arguments)
