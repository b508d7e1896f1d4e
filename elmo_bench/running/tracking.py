"""Loggers of a run's metrics: always CSV files, and those of `logger=`, such as W&B; and callbacks that watch them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytorch_lightning as pl
from hydra.core.hydra_config import HydraConfig
from hydra.utils import instantiate
from pydantic import NonNegativeInt
from pytorch_lightning.callbacks import Checkpoint, EarlyStopping
from pytorch_lightning.loggers import CSVLogger, Logger

from elmo_bench.configuration.keys import valid
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.records.record import Started
from elmo_bench.records.settings import Description
from elmo_bench.records.store import columns
from elmo_bench.records.wandb_runs import WandbRun, arguments, opened, rows, say
from elmo_bench.running.record import begun
from elmo_bench.system import machine
from elmo_bench.system.console import choices
from elmo_bench.system.errors import UserError

T = TypeVar("T")


class EpochLog(Checkpoint):
    """Logs every epoch to W&B. Lightning calls it, like any `Checkpoint`, when the module has the epoch's history."""

    def __init__(self, run: WandbRun):
        self.run = run

    def on_train_epoch_end(self, trainer: pl.Trainer, module: Any) -> None:
        (row,) = rows(columns(module.history[-1:]))
        self.run.log(row, row["updates"])


class Tracking(NamedTuple):
    """The loggers and callbacks of a run, and its W&B run, if there is one.

    The ones named by `callbacks` and `logger.more` are made once per run, because some start an experiment immediately.
    """

    loggers: Sequence[Logger] = ()
    callbacks: Sequence[pl.Callback] = ()
    run: WandbRun = WandbRun()


@contextmanager
def tracking(config: RunConfig, described: Description, folder: Path, typed: Tracking) -> Iterator[Tracking]:
    """The loggers and callbacks of a run, with the typed ones; closed at its end, so that each run has its own W&B run.

    A resumed run starts a new `csv/version_<n>`, and a new part of the same W&B run, which `wandb sync` combines.
    """
    typed = typed._replace(loggers=[CSVLogger(folder, name="csv"), *typed.loggers])
    if (options := config.logger.wandb) is None:
        yield typed
        return
    commit, dirty = machine.commit()
    bilm = {"name": None if config.baseline else config.bilm.name}
    started = Started(**begun(config, described), bilm=bilm, commit=commit, dirty=dirty)
    sweep = HydraConfig.get().runtime.choices.get("sweep") if HydraConfig.initialized() else None
    run, failed = opened(folder, **arguments(started, options, sweep)), True
    try:
        yield typed._replace(callbacks=[*typed.callbacks, EpochLog(run)], run=run)
        failed = False
    finally:
        run.close(failed)
        if run.run is not None and run.offline:
            say("logged offline", f"`wandb sync {run.folder}` uploads it")


# Typed callbacks and loggers.


def instantiated(place: str, blocks: Mapping[str, Any], kind: type[T], **defaults: Any) -> dict[str, T]:
    """The callbacks or loggers that blocks name by `_target_`, in their order.

    Args:
        place: the key of the blocks, for messages.
        blocks: the blocks under any names; empty ones are left out.
        kind: the required class of Lightning.
        defaults: values for arguments that are null in a block.
    """
    found = {}
    for name, block in blocks.items():
        if not block:
            continue
        if not isinstance(block, Mapping) or "_target_" not in block:
            raise UserError(f"{place}.{name}: a block with _target_=CLASS is needed")
        given = {key: defaults.get(key) if value is None else value for key, value in block.items()}
        try:
            one = instantiate(given)
        except Exception as error:  # an import or a constructor may raise anything
            reason = " ".join(str(error.__cause__ or error).split())
            raise UserError(f"{place}.{name} ({block['_target_']}): {reason}") from error
        if not isinstance(one, kind):
            wanted = f"{kind.__module__.partition('.')[0]}'s {kind.__name__}"
            raise UserError(f"{place}.{name} ({block['_target_']}): a subclass of {wanted} is needed")
        found[name] = one
    return found


def check_watched(run: RunConfig, callbacks: Mapping[str, pl.Callback]) -> None:
    """Checks the metrics that the run and its callbacks watch, before anything is prepared."""
    try:
        scores = [*instantiate(run.task.metric).from_totals(defaultdict(lambda: 1))]  # with any counts
    except Exception:  # a task's own code may need its counts by name, which only an example shows
        scores = []
    if scores and run.task.monitor not in scores:
        raise UserError(f"task.monitor={run.task.monitor}: no such metric; {choices(run.task.monitor, scores)}")
    places = [] if run.baseline else ["input", "output"] if run.elmo.where == "both" else [run.elmo.where]
    weights = [f"elmo/{place}/{name}" for place in places for name in ("s0", "gamma")]  # s0: of all layers
    logged = [*(f"dev/{name}" for name in scores), "train/loss", "train/learning_rate", *weights]
    is_known = scores and all(map(lightnings, callbacks.values()))
    for name, each in callbacks.items():
        monitor = str(getattr(each, "monitor", None) or "lr-")
        if is_known and not monitor.startswith("lr-") and re.sub(r"/s\d+$", "/s0", monitor) not in logged:
            wrong = f"callbacks.{name}.monitor={monitor}: no such metric is logged"
            raise UserError(f"{wrong}; {choices(monitor, logged)}")
        if isinstance(each, EarlyStopping):
            valid(NonNegativeInt, each.patience, f"callbacks.{name}.patience")
            for key in ("min_delta", "stopping_threshold", "divergence_threshold"):
                if (value := getattr(each, key)) is not None:
                    valid(float, value, f"callbacks.{name}.{key}")


def lightnings(callback: pl.Callback) -> bool:
    """Whether it is Lightning's own callback; of these only LearningRateMonitor logs something (lr-...)."""
    return type(callback).__module__.startswith("pytorch_lightning.")
