"""Processes that conduct trials: one that hangs or dies is a fault of its trial, and another takes its place."""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from tests.drill.trial import FAULT, Answer, Area, conduct

STARTING = 300.0  # seconds in which a new process must have imported its module
SPAWN = multiprocessing.get_context("spawn")


class Chunk(NamedTuple):
    """Trials that a process conducts in one go."""

    module: str  # dotted name of a module that has the area in its AREAS
    area: str
    limit: float
    numbers: range


class Worker:
    """A process with the areas of one module. What it prints goes to a file, which is emptied before each trial."""

    def __init__(self, module: str, seed: int, folder: Path):
        self.module, self.log = module, Path(tempfile.mkstemp(".log", dir=folder)[1])
        self.connection, theirs = SPAWN.Pipe()
        self.process = SPAWN.Process(target=_work, args=(theirs, module, seed, str(folder), str(self.log)))
        self.process.start()
        theirs.close()
        self.chunk: Chunk | None = None
        self.answers: list[Answer] = []
        self.ready, self.since = False, time.monotonic()

    def give(self, chunk: Chunk) -> None:
        """Begins a chunk."""
        self.chunk, self.answers, self.since = chunk, [], time.monotonic()
        with suppress(BrokenPipeError):  # it has died, which `take` will see
            self.connection.send((chunk.area, chunk.numbers))

    def take(self) -> bool:
        """Receives an answer. Returns whether the process is alive."""
        try:
            answer = self.connection.recv()
        except (EOFError, ConnectionResetError):
            return False
        self.since = time.monotonic()
        if answer is None:
            self.ready = True
        else:
            self.answers.append(answer)
        return True

    @property
    def seconds_left(self) -> float:
        """Until the present trial counts as hanging."""
        limit = self.chunk.limit if self.ready and self.chunk else STARTING
        return self.since + limit - time.monotonic()

    @property
    def finished(self) -> bool:
        return self.chunk is None or len(self.answers) == len(self.chunk.numbers)

    def end(self) -> str:
        """Kills the process and all that it started; says how it ended, and what it printed last."""
        self.process.join(0.2)  # one that is dying may finish it
        code = self.process.exitcode  # asked before the kill: after it, a process that hung would seem to have died
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid or 0, signal.SIGKILL)
        self.process.kill()
        self.process.join()
        how = "did not end" if code is None else f"died: {code}"
        return f"{how}\n{self.log.read_text(errors='replace')[-2000:]}"


def run(
    chunks: Sequence[Chunk],
    seed: int,
    at_once: int,
    keep: Callable[[Chunk, list[Answer]], None],
    until: float = float("inf"),
) -> None:
    """Conducts all chunks in order.

    Args:
        chunks: of the trials.
        seed: of the drill.
        at_once: the number of processes.
        keep: called with a chunk, or a part of one, and its answers.
        until: the time (`time.monotonic`) after which no further chunk is begun.

    Raises:
        RuntimeError: a module cannot be imported.
    """
    with tempfile.TemporaryDirectory(prefix="elmo-bench-drill-", ignore_cleanup_errors=True) as folder:
        crew = _Crew(deque(chunks), seed, Path(folder), keep, until)
        try:
            crew.run(at_once)
        finally:
            for worker in crew.workers:
                worker.end()


class _Crew:
    def __init__(self, waiting: deque[Chunk], seed: int, folder: Path, keep: Any, until: float):
        self.waiting, self.seed, self.folder, self.keep, self.until = waiting, seed, folder, keep, until
        self.workers: list[Worker] = []

    def run(self, at_once: int) -> None:
        while True:
            self._hand_out(at_once)
            busy = {worker.connection: worker for worker in self.workers if not worker.finished}
            if not busy:
                return
            soonest = min(worker.seconds_left for worker in busy.values())
            for connection in wait(list(busy), max(0.0, soonest)):
                assert isinstance(connection, Connection)
                worker = busy.pop(connection)
                if not worker.take():
                    self._lost(worker)
                elif worker.finished:
                    self._keep(worker, [])
            for worker in busy.values():
                if worker.seconds_left <= 0:
                    self._lost(worker)

    def _hand_out(self, at_once: int) -> None:
        """Gives a chunk to each process without one; for another module a new process is started."""
        for worker in [each for each in self.workers if each.finished]:
            if not self.waiting or time.monotonic() > self.until or self.waiting[0].module != worker.module:
                worker.end()
                self.workers.remove(worker)
            else:
                worker.give(self.waiting.popleft())
        while self.waiting and len(self.workers) < at_once and time.monotonic() < self.until:
            chunk = self.waiting.popleft()
            self.workers.append(Worker(chunk.module, self.seed, self.folder))
            self.workers[-1].give(chunk)

    def _lost(self, worker: Worker) -> None:
        """A process that hangs or has died: a fault of its present trial; the rest of its chunk goes to another one."""
        told = worker.end()
        self.workers.remove(worker)
        if not worker.ready:
            raise RuntimeError(f"{worker.module}: a process of the drill {told}")
        assert worker.chunk is not None
        done = len(worker.answers) + 1
        if rest := worker.chunk.numbers[done:]:
            self.waiting.appendleft(worker.chunk._replace(numbers=rest))
        self._keep(worker, [(FAULT, f"the process {told}")])

    def _keep(self, worker: Worker, more: list[Answer]) -> None:
        assert worker.chunk is not None
        answers = [*worker.answers, *more]
        self.keep(worker.chunk._replace(numbers=worker.chunk.numbers[: len(answers)]), answers)
        worker.chunk = None


def _work(connection: Any, module: str, seed: int, folder: str, log: str) -> None:
    """The main function of a process: out of reach of a Ctrl-C on the terminal, which its parent passes on."""
    os.setpgid(0, 0)
    file = os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    areas: dict[str, Area] = {area.name: area for area in importlib.import_module(module).AREAS}
    connection.send(None)
    with suppress(EOFError, BrokenPipeError):  # the parent has gone
        while True:
            area, numbers = connection.recv()
            for number in numbers:
                os.ftruncate(file, 0)
                connection.send(conduct(areas[area], seed, number))
