"""Several devices on one machine: a process for each, in step with the first.

The process of the command is rank 0. It alone holds the run's lock, prepares data, biLM and cache, writes checkpoints,
and makes the record. It starts the others, which only train and score their share of the batches. Lightning's own
launcher would run the complete command again in each of them, with its lock and its sweep. If `srun` starts the command
several times, one of the tasks trains, and the others wait for its record.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from lightning_fabric.plugins.environments.lightning import LightningEnvironment, find_free_network_port
from torch import distributed

from elmo_bench.system import processes
from elmo_bench.system.errors import Interrupted, UserError
from elmo_bench.system.storage import json_text

GRACE = 60.0  # seconds that rank 0 may take to notice that another rank has ended
POLL = 0.2  # seconds


class Rank(NamedTuple):
    """The place of this process among the processes of a run."""

    number: int = 0
    size: int = 1
    port: int = 0  # of rank 0 on this machine

    @property
    def first(self) -> bool:
        return self.number == 0


ALONE = Rank()


class Environment(LightningEnvironment):
    """Tells Lightning that all processes exist already, and the rank of this one.

    Given to every trainer, so that Lightning does not look for Slurm: it would warn if `srun` is installed, and in a
    job would count Slurm's tasks as ranks.
    """

    def __init__(self, rank: Rank = ALONE):
        super().__init__()
        self._rank, self._main_port = rank, rank.port

    @property
    def creates_processes_externally(self) -> bool:
        return True

    @property
    def main_address(self) -> str:
        return "127.0.0.1"

    def local_rank(self) -> int:
        return self._rank.number

    def node_rank(self) -> int:
        return 0


@contextmanager
def started(size: int, task: dict[str, Any], folder: Path) -> Iterator[Rank]:
    """Starts the other ranks of a run, and ends them with the block.

    Args:
        size: the number of devices; with 1 nothing is started.
        task: plain containers from which `running/run.py` makes the same run.
        folder: the run's work folder; the output of rank k goes to `rank<k>.log` in it.

    Raises:
        Interrupted: another rank was ended before this one.
    """
    if size == 1:
        yield Rank()
        return
    rank = Rank(0, size, find_free_network_port())
    others = [_start(rank._replace(number=number), task, folder) for number in range(1, size)]
    watch = RankWatch(others, folder)
    try:
        yield rank
        for other in others:
            with suppress(subprocess.TimeoutExpired):  # a rank that has finished but exits slowly
                other.wait(GRACE)
    except UserError:  # this rank's own error names the cause
        raise
    except Exception as error:
        if (broken := watch.broken(wait=5.0)) is None:
            raise
        raise broken from error
    finally:
        watch.stopped.set()
        for other in others:
            other.kill()
            other.wait()
        if distributed.is_initialized():  # so that this process can take part in another run
            distributed.destroy_process_group()


def _start(rank: Rank, task: dict[str, Any], folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"rank{rank.number}.log", "wb") as log:
        process = subprocess.Popen(
            processes.python("elmo_bench.running.run"),
            stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT,
        )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(json_text.dumps({"rank": rank, "parent": os.getpid(), **task}).encode())
    process.stdin.close()
    return process


def _ended(number: int, process: subprocess.Popen[bytes], folder: Path) -> UserError:
    code, log = process.returncode, folder / f"rank{number}.log"
    how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.is_file() else []
    last = next((line for line in reversed(lines) if line.strip()), "")
    reason = f" ({last.removeprefix('error: ')})" if last and code > 0 else ""
    kind = UserError if code == UserError.status else Interrupted
    return kind(f"the process of device {number} {how}{reason}; running the command again resumes the run; see {log}")


class RankWatch:
    """Watches the other ranks: ends this process if rank 0 keeps waiting for a rank that has ended."""

    def __init__(self, others: list[subprocess.Popen[bytes]], folder: Path):
        self.others, self.folder, self.stopped = others, folder, threading.Event()
        threading.Thread(target=self._work, daemon=True).start()

    def broken(self, wait: float = 0.0) -> UserError | None:
        """The error about a rank that ended with an error; it may take some seconds to end."""
        until = time.monotonic() + wait
        while True:
            for number, other in enumerate(self.others, start=1):
                if other.poll():
                    return _ended(number, other, self.folder)
            if time.monotonic() >= until:
                return None
            time.sleep(POLL)

    def _work(self) -> None:
        while not self.stopped.wait(POLL):
            if (broken := self.broken()) and not self.stopped.wait(GRACE):
                print(f"error: {broken}", file=sys.stderr, flush=True)
                os._exit(broken.status)


def gathered(value: Any) -> list[Any]:
    """The values of all ranks in their order, on every rank; [value] without other ranks."""
    if not distributed.is_initialized():
        return [value]
    values: list[Any] = [None] * distributed.get_world_size()
    distributed.all_gather_object(values, value)
    return values
