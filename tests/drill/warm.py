"""Actions in forks of this process, which has imported all that they need: a fork starts in milliseconds.

Nothing that an action does to its process (signals, maps of files, remembered values) reaches the next one.
"""

import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from elmo_bench.system import children
from tests.drill.trial import FAULT, of_error

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
        children.end_with_parent(parent)
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
