"""The ranks of a run as the tasks of a Slurm step: `srun -n 2 python -m elmo_bench train trainer.devices=2 ...`.

Every task runs the same command. Task 0 is rank 0 and does what a lone command does, save that it starts no processes.
For each run the others ask it, over a connection on their node, whether there is something to train, take part in that,
and wait until the run is recorded. With `srun -n 1`, or without srun, rank 0 starts the others itself (`ranks`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from elmo_bench.system.errors import UserError

if TYPE_CHECKING:
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

START = timedelta(minutes=10)  # that task 0 may begin later than another task
LONGEST = timedelta(days=7)  # that task 0 may take to prepare or to record a run
GRACE = timedelta(seconds=60)  # that a task may take to notice that a run has ended
AGAIN = "running the command again resumes the run"


class Step:
    """This process among the tasks of a Slurm step.

    Args:
        number: of this task.
        size: how many there are.
        port: on which task 0 answers the others.
    """

    def __init__(self, number: int, size: int, port: int):
        self.number, self.size, self.port = number, size, port
        self._runs, self._told = 0, False  # of this process; whether the others know what to do in this one
        self._connection: TCPStore | None = None

    @property
    def first(self) -> bool:
        return self.number == 0

    @property
    def _store(self) -> TCPStore:
        from torch.distributed import TCPStore  # type: ignore[attr-defined]

        if self._connection is None:
            self._connection = TCPStore(
                "127.0.0.1", self.port, is_master=self.first, timeout=START, wait_for_workers=False
            )
            self._connection.set_timeout(LONGEST)
        return self._connection

    @contextmanager
    def leading(self) -> Iterator[None]:
        """A run of task 0: at its end, recorded or not, the others are told so."""
        self._runs, self._told = self._runs + 1, False
        try:
            yield
        finally:
            if not self._told:
                self.tell(None)
            self._store.set(self._key("end"), "")
            with suppress(RuntimeError):  # one that is no longer there
                self._store.wait([self._key(f"heard/{number}") for number in range(1, self.size)], GRACE)

    def tell(self, task: dict[str, Any] | None) -> None:
        """Tells the others what to train in this run, as plain containers; None: nothing."""
        self._told = True
        self._store.set(self._key("task"), json.dumps(task))

    @contextmanager
    def following(self) -> Iterator[dict[str, Any] | None]:
        """A run of another task: yields what task 0 tells; after the block the run has ended there, too.

        Raises:
            UserError: task 0 has ended.
        """
        self._runs += 1
        yield json.loads(self._asked("task"))
        self._asked("end")
        self._store.set(self._key(f"heard/{self.number}"), "")

    def _asked(self, what: str) -> bytes:
        try:
            return self._store.get(self._key(what))
        except RuntimeError as error:
            raise UserError(f"task 0 of this Slurm step has ended, and says why; {AGAIN}") from error

    def _key(self, what: str) -> str:
        return f"{self._runs}/{what}"


@cache
def step() -> Step | None:
    """The Slurm step that this process is a task of; None for a step of one task, and outside of one.

    In a batch script Slurm sets the number of tasks, too: only `srun` sets the number of the step.
    """
    size = int(os.environ.get("SLURM_NTASKS", "1"))
    if size == 1 or "SLURM_STEP_ID" not in os.environ:
        return None
    return Step(int(os.environ["SLURM_PROCID"]), size, _port())


def _port() -> int:
    """The same for all tasks of a step; MASTER_PORT names another, should it be taken."""
    job, number = os.environ.get("SLURM_JOB_ID", "0"), os.environ["SLURM_STEP_ID"]
    return int(os.environ.get("MASTER_PORT") or 15000 + int(f"{job}{number}") % 15000)


def checked(devices: int) -> Step | None:
    """The step, if it can run on this number of devices.

    Raises:
        UserError: it has another number of tasks, or several nodes.
    """
    found = step()
    if found is None:
        return None
    if found.size != devices:
        raise UserError(
            f"trainer.devices={devices}, but srun started {found.size} tasks: give srun -n {devices}, or -n 1, where "
            "the command starts the other processes itself"
        )
    if (nodes := os.environ.get("SLURM_STEP_NUM_NODES", os.environ.get("SLURM_NNODES", "1"))) != "1":
        raise UserError(f"srun started tasks on {nodes} nodes; the devices of a run are those of one node (srun -N 1)")
    return found
