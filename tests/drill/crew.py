"""Forks that conduct trials: one that hangs or dies is a fault of its trial, and another goes on with the next."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.system import children
from tests.drill.trial import FAULT, Answer, Area, conduct

BATCH, SECONDS = 100, 10.0  # answers are kept at the latest after so many of them, and after so long
Keep = Callable[[str, dict[int, Answer]], None]  # called with an area's name and answers by the number of the trial


class Work(NamedTuple):
    """What all processes of a drill know: areas with the numbers of their trials; `until` as `time.monotonic`."""

    areas: Sequence[tuple[Area, Sequence[int]]]
    seed: int
    keep: Keep
    until: float = float("inf")


_work: Work  # of this process


def run(work: Work, jobs: int) -> None:
    """Conducts all trials, `jobs` areas at a time; `keep` is called in other processes than this one."""
    for prepare in {area.prepare: None for area, _ in work.areas}:
        prepare()
    with multiprocessing.get_context("fork").Pool(jobs, _begin, (work, os.getpid())) as pool:
        for _ in pool.imap_unordered(_conduct, range(len(work.areas))):
            pass


def _begin(work: Work, parent: int) -> None:
    global _work
    _work = work
    children.end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal; the parent ends this process


def _conduct(index: int) -> None:
    """The trials of one area."""
    area, numbers = _work.areas[index]
    answers: dict[int, Answer] = {}
    if time.monotonic() > _work.until:
        return
    since = time.monotonic()
    for number, answer in conducted(area, _work.seed, numbers):
        answers[number] = answer
        if len(answers) == BATCH or time.monotonic() - since > SECONDS:
            _work.keep(area.name, answers)
            answers, since = {}, time.monotonic()
        if time.monotonic() > _work.until:
            break
    if answers:
        _work.keep(area.name, answers)


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
