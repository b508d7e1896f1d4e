"""Actions in forks of this process, which has imported all that they need: a fork starts in milliseconds.

Nothing that an action does to its process (signals, maps of files, remembered values) reaches the next one.
"""

import multiprocessing
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from elmo_bench.system import processes
from tests.drill.trial import FAULT, Answer, Area, chance, conduct, of_error

VALUE = "value"


def start(action: Callable[[], Any], report: Callable[[tuple[str, Any]], None] = lambda told: None) -> int:
    """Begins an action in a fork, and returns its process id.

    Args:
        action: its exit status is 0, that of a `SystemExit`, 2 for an error of one line, or 1.
        report: called in the fork, with (VALUE, the action's value) or what `of_error` makes of its exception.
    """
    ready()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    if child := os.fork():
        return child
    status = 1
    try:
        processes.end_with_parent(parent)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)  # until the action listens, it ends the fork
        status = _act(action, report)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _act(action: Callable[[], Any], report: Callable[[tuple[str, Any]], None]) -> int:
    try:
        report((VALUE, action()))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    except Exception as error:
        traceback.print_exc()
        outcome, told = of_error(error)
        report((outcome, told))
        return 1 if outcome == FAULT else 2
    return 0


def call(action: Callable[[], Any]) -> tuple[str, Any]:
    """(VALUE, what the action returns), or what its exception or its death is as an outcome of a trial."""
    reading, writing = multiprocessing.Pipe(duplex=False)
    child = start(action, writing.send)
    writing.close()
    told = None
    with reading, suppress(EOFError):
        told = reading.recv()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    died = f"the process died of {signal.Signals(-code).name}" if code < 0 else f"exit status {code}, no result"
    return told or (FAULT, died)


@cache
def ready() -> None:
    """Imports what the actions need, on one thread: a fork of a process with several may wait for one of them."""
    import torch

    from tests.drill import scene

    torch.set_num_threads(1)
    scene.rehearse()


# Forks that conduct trials: one that hangs or dies is a fault of its trial, and another goes on with the next.


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
    processes.end_with_parent(parent)
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
        processes.end_with_parent(parent)
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
