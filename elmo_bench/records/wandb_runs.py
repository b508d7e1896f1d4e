"""A W&B run: its content from a record, the same during training (`logger=wandb`) and later (`publish`).

W&B never stops the program. A run is online if the server accepts the key within seconds, otherwise offline.
"""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.configuration.schema import WandbConfig
from elmo_bench.metrics.items import Items
from elmo_bench.records.frame import table_of
from elmo_bench.records.record import Record, Started, label
from elmo_bench.records.store import dumps
from elmo_bench.system.storage.files import open_text
from elmo_bench.system.storage.hashing import fingerprint

if TYPE_CHECKING:
    from pandas import DataFrame

SWEEP = "WANDB_SWEEP_ID"  # set by an agent of a W&B sweep
MODE = "WANDB_MODE"
SECONDS = 15  # for the server to accept a run
LAST_SECONDS = 60  # for the remaining upload when a run ends; the rest stays on disk
MOST_ROWS = 10_000  # of a W&B table
LONGEST = 128  # characters of a W&B name or group
LONGEST_TAG = 64
ABOUT = ("run", "group", "version", "commit", "dirty", "finished", "data_sha256", "machine", "versions")
FIGURES = ("epochs", "seconds", "device_seconds", "tokens_per_second", "peak_memory_mib", "parameters")

# W&B's telemetry waits up to 20 s at the end for a server that does not answer, and complains on stderr.
os.environ.setdefault("WANDB_ERROR_REPORTING", "false")


class WandbRun:
    """An open W&B run, or none. An error of W&B prints one line on stderr and ends the logging, not the program.

    Attributes:
        folder: where the run is stored on this machine; None if there is no run.
    """

    def __init__(self, run: Any = None):
        self.run = run
        self.folder = None if run is None else Path(run.dir).parent
        self.offline = run is not None and bool(run.offline)

    def log(self, row: Mapping[str, Any], step: int) -> None:
        """Logs the values of one step, at once."""
        self._do(lambda run: run.log(dict(row), step=step, commit=True))

    def conclude(self, record: Record, items: Items | None, predictions: Path | None) -> None:
        """Logs the record's values for the complete run, after its epochs, and the table of its test set.

        Args:
            record: the record of the finished run.
            items: the per-example results of the test set; None: there is no table.
            predictions: file with a JSON value for each row of the test set; it may be missing.
        """

        def log(run: Any) -> None:
            if items is not None:
                import wandb

                rows_of_test = wandb.Table(dataframe=table(items, predictions))
                run.log({"predictions": rows_of_test}, step=record.updates + 1, commit=True)
            run.config.update({"record": about(record)}, allow_val_change=True)
            run.summary.update(summary(record))

        self._do(log)

    def close(self, failed: bool = False) -> None:
        """Ends the run. Online, data not uploaded within a minute stay on disk; offline, W&B's own log is removed."""
        self._do(lambda run: run.finish(exit_code=int(failed)))
        if self.folder is not None and self.offline:
            shutil.rmtree(self.folder / "logs", ignore_errors=True)  # they name folders of this machine

    def _do(self, action: Callable[[Any], Any]) -> None:
        try:
            if self.run is not None:
                action(self.run)
        except Exception as error:  # of any kind: the record and the CSV files are complete without W&B
            say(error, f"logging has ended; `wandb sync {self.folder}` uploads the data so far")
            self.run = None


# Opening a run.


def opened(folder: Path, load: bool = True, **arguments: Any) -> WandbRun:
    """Opens a run: online, or offline if there is no key, or if W&B cannot be reached or refuses the key.

    If WANDB_MODE is "disabled", nothing is logged.

    Args:
        folder: the run is stored in `folder/wandb/`.
        load: whether to log the load of this machine as well.
        arguments: passed to `wandb.init`.
    """
    try:
        import wandb
    except ImportError:
        say("wandb is not installed", "`elmo-bench publish` uploads the record later")
        return WandbRun()
    logging.raiseExceptions = False  # no traceback if a full disk refuses W&B's own log
    online = True
    while online:  # a second time after the server has failed
        try:
            online = has_key()
            if _mode() == "disabled":
                break
            folder.mkdir(parents=True, exist_ok=True)
            settings = wandb.Settings(
                silent=True, console="off", init_timeout=SECONDS, finish_timeout=LAST_SECONDS,
                finish_timeout_raises=True, x_disable_stats=not load, disable_git=True, host="", symlink=False,
                x_disable_meta=True,  # it names paths of this machine
                x_transaction_log_flush_interval=0.2,  # so that a killed process keeps its logged data
            )  # fmt: skip
            mode = "online" if online else "offline"
            kept = {"dir": folder, "mode": mode, "resume": "allow", "reinit": "create_new", "settings": settings}
            return WandbRun(wandb.init(**kept, **arguments))
        except Exception as error:
            if not online:
                say(error, "nothing is logged to W&B")
                break
            go_offline(error, "logging continues offline")
            wandb.teardown()  # its service still uses the run's id
    return WandbRun()


def go_offline(error: Exception, so: str) -> None:
    """After a failure of the server, this process stays offline, so that a sweep waits for it only once."""
    say(error, so)
    os.environ[MODE] = "offline"


def has_key() -> bool:
    """Whether runs are online: there is a key (WANDB_API_KEY or `wandb login`), and no setting says otherwise."""
    from requests.utils import get_netrc_auth

    return _mode() == "online" and bool(os.environ.get("WANDB_API_KEY") or get_netrc_auth(_settings().base_url))


def _mode() -> str:
    """The mode from WANDB_MODE, or from `wandb offline` in this folder: online, offline or disabled."""
    return os.environ.get(MODE) or str(_settings().mode)


def _settings() -> Any:
    import wandb

    return wandb.setup(wandb.Settings(silent=True)).settings


def say(what: Exception | str, so: str) -> None:
    """One line about W&B on stderr."""
    print(f"W&B: {what if isinstance(what, str) else brief(what)}; {so}", file=sys.stderr, flush=True)


def brief(error: Exception) -> str:
    """The first line of an error's message; for pydantic's error about several values, each fault."""
    if several := getattr(error, "errors", None) if type(error).__name__ == "ValidationError" else None:
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in several())
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


# The content of a run.


def of_record(
    record: Record,
    folder: Path,
    options: WandbConfig,
    items: Items | None = None,
    predictions: Path | None = None,
    epochs: bool = True,
) -> WandbRun:
    """Makes a W&B run of a record and closes it; `epochs=False`: its epochs are logged already. See also `conclude`."""
    run = opened(folder, load=False, **arguments(record, options))
    for row in rows(history(record)) if epochs else ():
        run.log(row, row["updates"])
    run.conclude(record, items, predictions)
    run.close()
    return run


def arguments(record: Started, options: WandbConfig, sweep: str | None = None) -> dict[str, Any]:
    """The arguments of `wandb.init`: names, tags and the run's configuration, without paths of a machine.

    Charts group by the label, since runs of the same arm may differ in everything else. The group is the run's sweep,
    or the first table that contains it. In a W&B sweep, the agent has given the run its id.
    """
    group = options.group or f"{sweep or table_of(record)}/{record.scale}/{record.task}"
    config = {key: value for key, value in record.config.items() if key not in ("logger", "launcher", "sweeper")}
    arm = label(record.where, record.variant | record.own_data)
    named = {"arm": record.arm, "variant": record.variant, "label": arm, "table": group}
    bilm, commit = record.bilm_name, record.commit
    tags = [record.task, record.scale, bilm and f"biLM {bilm}", commit and f"commit {commit[:12]}"]
    return {
        "id": (os.environ.get(SWEEP) and os.environ.get("WANDB_RUN_ID")) or record.run,
        "project": options.project,
        "entity": options.entity,
        "name": options.name or cut(f"{record.task} {record.scale} {arm}", f", seed {record.seed}"),
        "notes": options.notes,
        "group": cut(group),
        "job_type": options.job_type or record.arm,
        "tags": [*(tag[:LONGEST_TAG] for tag in tags if tag), *options.tags],
        "config": config | named | {"record": about(record)},
    }


def cut(name: str, end: str = "") -> str:
    """A name with its end, in the 128 characters that the server accepts."""
    room = LONGEST - len(end)
    return (name if len(name) <= room else f"{name[: room - 3]}...") + end


def about(record: Started) -> dict[str, Any]:
    """The origin of a record, with its own digest when it is finished."""
    origin = {key: getattr(record, key) for key in ABOUT if hasattr(record, key)}
    origin["bilm_sha256"] = record.bilm.get("sha256")
    return origin | ({"digest": digest(record)} if isinstance(record, Record) else {})


def digest(record: Record) -> str:
    """Identifies the content of a record."""
    return fingerprint(dumps(record), digits=64)


def history(record: Record) -> dict[str, list[Any]]:
    """The columns of a record's epochs, with the layer weights and gamma of each place."""
    mixes = {"layer_weights": record.layer_weights, "gamma": record.gamma}
    return record.history | {f"{key}.{place}": values for key, mix in mixes.items() for place, values in mix.items()}


def rows(epochs: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """One row for each epoch, from columns as in a record (`store.columns`), without missing values."""
    named: dict[str, Sequence[Any]] = {}
    for key, column in epochs.items():
        kind, _, name = key.partition(".")
        match kind:
            case "layer_weights":
                named |= {f"elmo/{name}/s{j}": weights for j, weights in enumerate(zip(*column, strict=True))}
            case "gamma":
                named[f"elmo/{name}/gamma"] = column
            case "dev":
                named[f"dev/{name}"] = column
            case "loss" | "learning_rate":
                named[f"train/{kind}"] = column
            case _:
                named[key] = column
    values = zip(*named.values(), strict=True)
    return [{key: value for key, value in zip(named, row, strict=True) if value is not None} for row in values]


def summary(record: Record) -> dict[str, Any]:
    """The scores, layer weights and gamma at the selected epoch, and the cost of the run."""
    chosen = rows(history(record))[record.epoch - 1]
    mixes = {key: value for key, value in chosen.items() if key.startswith("elmo/")}
    scores = {f"{split}/{name}": value for split, metrics in record.metrics.items() for name, value in metrics.items()}
    costs = {key: value for key in FIGURES if (value := getattr(record, key)) is not None}
    return scores | mixes | costs | {"epoch": record.epoch, "updates": record.updates}


def table(items: Items, predictions: Path | None) -> DataFrame:
    """A row for each row of the test set: its prediction, if known, and its statistics."""
    from pandas import DataFrame, Series

    found: Any = DataFrame(items.statistics, dtype=float).groupby(items.rows).sum()
    if predictions is not None and predictions.is_file():
        with open_text(predictions) as file:
            known = Series([line.rstrip("\n") for line in file], dtype=object)
        found.insert(0, "prediction", known.reindex(found.index, fill_value=""))
    return found.rename_axis("row").reset_index()[:MOST_ROWS]
