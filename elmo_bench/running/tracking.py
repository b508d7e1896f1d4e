"""Where a run's metrics go while it trains: always CSV files, what `logger=` adds, such as W&B; who watches them."""

from __future__ import annotations

import os
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
from elmo_bench.system.terminal.console import choices
from elmo_bench.system.wandb_runs import SWEEP, WandbRun, opened, say

T = TypeVar("T")


class EpochLog(Checkpoint):
    """Logs every epoch to W&B. Lightning calls it, as any `Checkpoint`, when the module has the epoch's history."""

    def __init__(self, run: WandbRun):
        self.run = run

    def on_train_epoch_end(self, trainer: pl.Trainer, module: Any) -> None:
        (row,) = wandb_record.rows(columns(module.history[-1:]))
        self.run.log(row, row["updates"])


class Typed(NamedTuple):
    """What `callbacks` and `logger.more` name, made once for a run: some begin an experiment at once."""

    callbacks: Sequence[pl.Callback] = ()
    loggers: Sequence[Logger] = ()


class Tracking(NamedTuple):
    """The loggers and callbacks of a run, and its W&B run, if there is one."""

    loggers: Sequence[Logger]
    callbacks: Sequence[pl.Callback]
    run: WandbRun

    def conclude(self, record: Record, items: dict[str, Items], predictions: Path) -> None:
        """Logs what the record says of the run as a whole, and the predictions for the test set."""
        if self.run.run is not None:
            wandb_record.conclude(self.run, record, items["test"], predictions)


NOTHING = Tracking([], [], WandbRun())


@contextmanager
def tracking(config: RunConfig, described: Description, folder: Path, typed: Typed | None = None) -> Iterator[Tracking]:
    """The loggers and callbacks of a run, with those typed; closed at its end: each run of a sweep is its own W&B run.

    A resumed run starts a new `csv/version_<n>`, and a new part of the same W&B run, which `wandb sync` puts together.
    """
    callbacks, further = typed or Typed()
    loggers = [CSVLogger(folder, name="csv"), *further]
    if config.logger.wandb is None:
        yield Tracking(loggers, callbacks, WandbRun())
        return
    run, failed = _open(config, config.logger.wandb, described, folder), True
    try:
        yield Tracking(loggers, [*callbacks, EpochLog(run)], run)
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


# Callbacks and loggers that were typed.


def made(place: str, blocks: Mapping[str, Any], kind: type[T], **defaults: Any) -> dict[str, T]:
    """What the blocks of callbacks or loggers name by `_target_`, in their order.

    Args:
        place: their key, for messages.
        blocks: by any names; an empty one is left out.
        kind: the class of Lightning that each must be of.
        defaults: values for arguments that a block gives as null.

    Raises:
        UserError: a block names no such class, or arguments that it does not take.
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
        except Exception as error:  # whatever an import or a constructor raises
            reason = " ".join(str(error.__cause__ or error).split())
            raise UserError(f"{place}.{name} ({block['_target_']}): {reason}") from error
        if not isinstance(one, kind):
            wanted = f"{kind.__module__.partition('.')[0]}'s {kind.__name__}"
            raise UserError(f"{place}.{name} ({block['_target_']}): a subclass of {wanted} is needed")
        found[name] = one
    return found


def callbacks_typed(run: RunConfig) -> dict[str, pl.Callback]:
    """The callbacks of `callbacks` by their names. Raises as `made` does."""
    return made("callbacks", run.callbacks, pl.Callback)


def further_loggers(run: RunConfig, folder: Path) -> list[Logger]:
    """Those of `logger.more`. Raises as `made` does."""
    return [*made("logger.more", run.logger.more, Logger, save_dir=str(folder)).values()]


def check_watched(run: RunConfig, callbacks: Mapping[str, pl.Callback]) -> None:
    """Checks what the run and its callbacks watch, before anything is prepared.

    Raises:
        UserError: a metric that is not logged; a value that EarlyStopping cannot use.
    """
    scores = _scores(run)
    if scores and run.task.monitor not in scores:
        raise UserError(f"task.monitor={run.task.monitor}: no such metric; {choices(run.task.monitor, scores)}")
    known = _logged(run, scores) if scores and all(map(lightnings, callbacks.values())) else []
    for name, each in callbacks.items():
        if known and (monitor := getattr(each, "monitor", None)) is not None:
            _check_monitor(f"callbacks.{name}.monitor", str(monitor), known)
        if isinstance(each, EarlyStopping):
            valid(NonNegativeInt, each.patience, f"callbacks.{name}.patience")
            for key in ("min_delta", "stopping_threshold", "divergence_threshold"):
                if (value := getattr(each, key)) is not None:
                    valid(float, value, f"callbacks.{name}.{key}")


def _check_monitor(place: str, monitor: str, known: list[str]) -> None:
    if not monitor.startswith("lr-") and re.sub(r"/s\d+$", "/s0", monitor) not in known:
        raise UserError(f"{place}={monitor}: no such metric is logged; {choices(monitor, known)}")


def lightnings(callback: pl.Callback) -> bool:
    """Whether it is one of Lightning's, of which only LearningRateMonitor logs something (lr-...)."""
    return type(callback).__module__.startswith("pytorch_lightning.")


def _logged(run: RunConfig, scores: list[str]) -> list[str]:
    """The names that the module logs in training; s0 stands for the weights of all layers."""
    places = [] if run.baseline else ["input", "output"] if run.elmo.where == "both" else [run.elmo.where]
    weights = [f"elmo/{place}/{name}" for place in places for name in ("s0", "gamma")]
    return [*(f"dev/{name}" for name in scores), "train/loss", "train/learning_rate", *weights]


def _scores(run: RunConfig) -> list[str]:
    """The names of the task's metrics; none where they cannot be asked for before there is an example."""
    try:
        return [*instantiate(run.task.metric).from_totals(defaultdict(lambda: 1))]  # whatever it counts
    except Exception:  # a task's own code, which may want its counts by name
        return []
