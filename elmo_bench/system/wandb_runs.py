"""W&B runs that never stop what they log: online if the server accepts the key within seconds, else offline."""

from __future__ import annotations

import logging
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from netrc import NetrcParseError, netrc
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

SWEEP = "WANDB_SWEEP_ID"  # set by an agent of a W&B sweep
SECONDS = 15  # for the server to accept a run
LAST_SECONDS = 60  # for the upload of what is left when a run ends; the rest stays on disk


class Server:
    """What this process knows of the server: after one failure it is not asked again, so that a sweep waits once."""

    reachable = True


class WandbRun:
    """An open W&B run, or none. An error of W&B is one line on stderr and ends the logging, not the program."""

    def __init__(self, run: Any = None):
        self.run = run

    def log(self, row: Mapping[str, Any], step: int) -> None:
        """Logs the values of one step, at once."""
        self._do(lambda run: run.log(dict(row), step=step, commit=True))

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], step: int) -> None:
        """Logs a table."""
        import wandb

        def log(run: Any) -> None:
            run.log({name: wandb.Table(columns=list(columns), data=list(rows))}, step=step, commit=True)

        self._do(log)

    def conclude(self, summary: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        """Sets the run's final values, and what of its configuration was not known at its start."""

        def update(run: Any) -> None:
            run.config.update(dict(config), allow_val_change=True)
            run.summary.update(dict(summary))

        self._do(update)

    def close(self, failed: bool = False) -> None:
        """Ends the run. Online, what cannot be uploaded within a minute stays on disk; offline, W&B's own log goes."""
        folder, offline = self.folder, self.offline
        self._do(lambda run: run.finish(exit_code=int(failed)))
        if folder is not None and offline:
            shutil.rmtree(folder / "logs", ignore_errors=True)  # it names folders of this machine

    @property
    def folder(self) -> Path | None:
        """Where the run is stored on this machine; None if there is no run."""
        return None if self.run is None else Path(self.run.dir).parent

    @property
    def offline(self) -> bool:
        return self.run is not None and bool(self.run.offline)

    def _do(self, action: Callable[[Any], Any]) -> None:
        if self.run is None:
            return
        try:
            action(self.run)
        except Exception as error:  # whatever it is, the record and the CSV files are complete without W&B
            say(f"{brief(error)}; no more is logged; `wandb sync {self.folder}` uploads what has been")
            self.run = None


def opened(folder: Path, load: bool = True, **arguments: Any) -> WandbRun:
    """Opens a run: online, or offline where there is no key, or where W&B cannot be reached or refuses the key.

    If WANDB_MODE is "disabled", nothing is logged.

    Args:
        folder: the run is stored in `folder/wandb/`.
        load: whether to log the load of this machine too.
        arguments: of `wandb.init`.
    """
    try:
        import wandb
    except ImportError:
        say("wandb is not installed, so this is not logged there; `elmo-bench publish` uploads records later")
        return WandbRun()
    try:
        if mode() == "disabled":
            return WandbRun()
        if has_key():
            return WandbRun(_init(wandb, folder, "online", load, arguments))
    except Exception as error:
        Server.reachable = False
        say(f"{brief(error)}; what follows is logged offline")
        logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)  # W&B's telemetry would complain as well
        wandb.teardown()  # its service still holds the run's id
    try:
        return WandbRun(_init(wandb, folder, "offline", load, arguments))
    except Exception as error:
        say(f"{brief(error)}; nothing is logged there")
        return WandbRun()


def has_key() -> bool:
    """Whether runs are to go online: there is a key, no earlier attempt failed, and WANDB_MODE allows it."""
    if not Server.reachable or mode() != "online":
        return False
    return bool(os.environ.get("WANDB_API_KEY") or _stored(_settings().base_url))


def mode() -> str:
    """What WANDB_MODE says, or `wandb offline` in this folder: online, offline or disabled."""
    return os.environ.get("WANDB_MODE") or str(_settings().mode)


def _settings() -> Any:
    import wandb

    return wandb.setup(wandb.Settings(silent=True)).settings


def _stored(url: str) -> bool:
    """Whether `wandb login` has left a key for a server in the file of passwords."""
    try:
        return bool(netrc(os.environ.get("NETRC")).authenticators(urlsplit(url).hostname or ""))
    except (OSError, NetrcParseError):
        return False


def _init(wandb: Any, folder: Path, mode: str, load: bool, arguments: Mapping[str, Any]) -> Any:
    settings = wandb.Settings(
        silent=True, console="off", init_timeout=SECONDS, finish_timeout=LAST_SECONDS, finish_timeout_raises=True,
        x_disable_stats=not load, disable_git=True, host="", symlink=False,
        x_disable_meta=True,  # it names paths of this machine
        x_transaction_log_flush_interval=0.2,  # a killed process leaves what it has logged
    )  # fmt: skip
    logging.raiseExceptions = False  # of W&B's own log, which a full disk does not take, no traceback is shown
    folder.mkdir(parents=True, exist_ok=True)
    return wandb.init(dir=folder, mode=mode, resume="allow", reinit="create_new", settings=settings, **arguments)


def say(text: str) -> None:
    """One line about W&B on stderr."""
    print(f"W&B: {text}", file=sys.stderr, flush=True)


def brief(error: Exception) -> str:
    """The first line of an error's message; of an error about several values (pydantic's), what is wrong with each."""
    if several := getattr(error, "errors", None) if type(error).__name__ == "ValidationError" else None:
        return "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in several())
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
