"""Forks that conduct trials: one that hangs or dies is a fault of its trial, and another goes on with the next."""

import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from elmo_bench.system import children
from tests.drill.trial import FAULT, Answer, Area, chance, conduct

_chosen: Sequence[Area]  # of this process


def run(areas: Sequence[Area], seed: int, fraction: float, jobs: int) -> Iterator[tuple[str, dict[int, Answer]]]:
    """The name of each area and the answers of its trials, `jobs` areas at a time."""
    for prepare in {area.prepare: None for area in areas}:
        prepare()
    with multiprocessing.get_context("fork").Pool(jobs, _begin, (areas, os.getpid())) as pool:
        yield from pool.imap_unordered(_conduct, [(index, seed, fraction) for index in range(len(areas))])


def _begin(areas: Sequence[Area], parent: int) -> None:
    global _chosen
    _chosen = areas
    children.end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal; the parent ends this process


def _conduct(asked: tuple[int, int, float]) -> tuple[str, dict[int, Answer]]:
    """The trials of one area. Of a fraction that is less than one trial, the seed decides whether there is one."""
    index, seed, fraction = asked
    area = _chosen[index]
    number = min(area.trials, int(area.trials * fraction + chance(seed, area.name, -1).random()))
    return area.name, dict(conducted(area, seed, range(number)))


def conducted(area: Area, seed: int, numbers: Sequence[int]) -> Iterator[tuple[int, Answer]]:
    """The number and the answer of each trial, from a fork of this process."""
    left = list(numbers)
    with tempfile.TemporaryDirectory(prefix="elmo-bench-drill-", ignore_cleanup_errors=True) as folder:
        while left:
            reading, writing = multiprocessing.Pipe(duplex=False)
            parent = os.getpid()
            if not (child := os.fork()):
                reading.close()
                _answer(area, seed, left, writing, Path(folder), parent)
            writing.close()
            with suppress(PermissionError, ProcessLookupError):  # it has done so itself, or ended
                os.setpgid(child, child)
            try:
                with suppress(EOFError):
                    while left:
                        answer = reading.recv()
                        yield left.pop(0), answer
            finally:
                died = _end(child)
            if left:
                said = Path(folder, "log").read_text(errors="replace")[-2000:]
                yield left.pop(0), (FAULT, f"the process {died}\n{said}")


def _answer(area: Area, seed: int, numbers: Sequence[int], writing: Any, folder: Path, parent: int) -> None:
    """The main function of a fork, in a process group of its own; what it prints goes to a file."""
    try:
        os.setpgid(0, 0)
        children.end_with_parent(parent)
        log = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.dup2(log, 1)
        os.dup2(log, 2)
        sys.stdout, sys.stderr = sys.__stdout__, sys.__stderr__  # a test may have replaced them
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        for number in numbers:
            os.ftruncate(log, 0)
            signal.setitimer(signal.ITIMER_REAL, area.limit)
            writing.send(conduct(area, seed, number))
        signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        os._exit(0)


def _end(child: int) -> str:
    """Waits for a fork that has closed its pipe, or kills it and all that it has started; says how it ended."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "did not end" if code == -signal.SIGALRM else f"died: {code}"
