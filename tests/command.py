"""A command with the toy task and a stand-in for the biLM: `python -m tests.command CONF train KEY=VALUE ...`.

`forked` runs it in a fork of this process, which saves the seconds in which a new one imports torch; `Fork` is for
what a test kills.
"""

from __future__ import annotations

import importlib
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import IO, TYPE_CHECKING, Any

from hydra.core.global_hydra import GlobalHydra

from elmo_bench.commands.command import command
from elmo_bench.layers import bilm
from elmo_bench.sweeps import local
from elmo_bench.system import places, processes
from tests import fakes

if TYPE_CHECKING:
    import pytest


def stand_in() -> None:
    """Puts the stand-in where the file of a biLM in conf finds it."""
    setattr(bilm, "BilmLayers", fakes.FakeBiLM)  # noqa: B010


def before_each_step(act: Callable[[Any, int], object]) -> None:
    """What is done with the module before it trains on a batch of this number."""
    from elmo_bench.running.module import BenchModule

    step = BenchModule.training_step

    def changed(self, *arguments):
        act(self, arguments[1])
        return step(self, *arguments)

    setattr(BenchModule, "training_step", changed)  # noqa: B010


def stop_in_mid_epoch(epoch: int, batch: int, number: int = signal.SIGKILL) -> None:
    """A signal from within, before a batch of an epoch is trained on."""
    place = epoch, batch
    before_each_step(lambda module, batch: (module.current_epoch, batch) == place and os.kill(os.getpid(), number))


def wait_in_mid_training(folder: Path) -> None:
    """A run waits in the middle of its second epoch as long as there is a file with its seed in the folder."""

    def wait(module: Any, batch: int) -> None:
        while (module.current_epoch, batch) == (1, 1) and (folder / str(module.seed)).exists():
            time.sleep(0.2)

    before_each_step(wait)


def run(conf: Path, name: str, arguments: Sequence[str]) -> None:
    """The command, as the environment changes it: REAL, HOLD, SLOW and STOP."""
    places.CONF = conf
    sys.argv = [name, *arguments]
    if "REAL" not in os.environ:
        stand_in()
    if "HOLD" in os.environ:
        wait_in_mid_training(Path(os.environ["HOLD"]))
    if "SLOW" in os.environ:
        seconds = float(os.environ["SLOW"])
        before_each_step(lambda *_: time.sleep(seconds))
    if "STOP" in os.environ:
        stop_in_mid_epoch(*map(int, os.environ["STOP"].split(",")))
    for other in ("train", "prepare"):
        setattr(local, other.upper(), processes.python("tests.command", str(places.CONF), other))
    command(name).main(name)


SECONDS = 900  # as PATIENCE of conftest.py, which takes longer to import


class Fork:
    """An action in a fork of this process, killed after SECONDS, with the methods of `subprocess.Popen` that we use."""

    stdin: IO[bytes]

    def __init__(self, action: Callable[[], None], environment: Mapping[str, str]):
        importlib.import_module("elmo_bench.running.run")  # with all that trains: once, not again in every fork
        self.out, self.said = (tempfile.TemporaryFile("w+", errors="surrogateescape") for _ in range(2))  # noqa: SIM115
        if not (child := os.fork()):
            signal.alarm(SECONDS)
            _inside(action, environment, self.out, self.said)
        self.pid, self.returncode = child, None

    def poll(self, wait: int = os.WNOHANG) -> int | None:
        """The exit status, as `subprocess` has it; None while it runs."""
        if self.returncode is None and (ended := os.waitpid(self.pid, wait))[0]:
            self.returncode = os.waitstatus_to_exitcode(ended[1])
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Waits for the end, however long it takes: SECONDS are the limit; returns the exit status."""
        status = self.poll(wait=0)
        assert status is not None
        return status

    def finish(self) -> tuple[int, str, str]:
        """Waits for the end; returns exit status, stdout and stderr."""
        status = self.wait()
        texts = []
        for file in (self.out, self.said):
            file.seek(0)
            texts.append(file.read())
            file.close()
        return status, *texts

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def forked(
    conf: Path, name: str, arguments: Sequence[str], environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """The command in a fork of this process, to its end."""
    return subprocess.CompletedProcess(
        [name, *arguments], *Fork(lambda: run(conf, name, arguments), environment).finish()
    )


def anew(
    folder: Path, name: str, arguments: Sequence[str], environment: Mapping[str, str], lacking: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """`python -m NAME ARGUMENTS` in a folder and with its code, in a fork of this process.

    The project is imported anew; the packages that this process has imported are there already, but for those that are
    `lacking`, which cannot be imported.
    """

    def act() -> None:
        for module in [
            module for module in sys.modules if module.partition(".")[0] in ("elmo_bench", "tasks", "tests")
        ]:
            del sys.modules[module]
        sys.modules.update(dict.fromkeys(lacking))  # type: ignore[arg-type]
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        sys.argv = [name, *arguments]
        runpy.run_module(name, run_name="__main__", alter_sys=True)

    return subprocess.CompletedProcess([name, *arguments], *Fork(act, environment).finish())


def forked_ranks(patch: pytest.MonkeyPatch) -> list[Fork]:
    """From now on the further devices of a run are forks of this process; the list has those that are started."""
    from elmo_bench.running import ranks

    forks: list[Fork] = []

    def start(command: Sequence[str], stdout: IO[bytes], **_: Any) -> Fork:
        read, write = os.pipe()

        def follow() -> None:
            os.close(write)
            os.dup2(stdout.fileno(), 1)
            os.dup2(stdout.fileno(), 2)
            sys.stdin = os.fdopen(read)
            runpy.run_module(command[-1], run_name="__main__")

        forks.append(fork := Fork(follow, os.environ))
        os.close(read)
        fork.stdin = os.fdopen(write, "wb")
        return fork

    fake = SimpleNamespace(Popen=start, PIPE=None, STDOUT=None, TimeoutExpired=TimeoutError)
    patch.setattr(ranks, "subprocess", fake)
    return forks


def _inside(action: Any, environment: Mapping[str, str], out: IO[str], said: IO[str]) -> None:
    """In the fork: what a new process would find, then the action, and the end without any of the parent's."""
    status: Any = 1
    try:
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(out.fileno(), 1)
        os.dup2(said.fileno(), 2)
        sys.stdout, sys.stderr = (os.fdopen(number, "w", 1, closefd=False) for number in (1, 2))
        os.environ.clear()
        os.environ.update(environment)
        os.chdir(places.ROOT)
        GlobalHydra.instance().clear()
        action()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
