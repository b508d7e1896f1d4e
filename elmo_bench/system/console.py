"""What all commands print: errors in one line with exit status 2, tables, progress; and the standard streams.

No large library is imported here, so that `score`, and a run that is already recorded, answer in about a second.
"""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, TypeVar

from elmo_bench.system import processes
from elmo_bench.system.errors import UserError, ran_out
from elmo_bench.system.storage import disk

FULL = "HYDRA_FULL_ERROR"
SHORT = "ELMO_BENCH_SHORT_ERRORS"  # set together with FULL if `report` has set FULL for Hydra, and not the user
T = TypeVar("T")
E = TypeVar("E", bound=BaseException)
# Functions that turn an error of a library into one line, or return None; the configuration adds one for Hydra.
EXPLAINERS: list[Callable[[BaseException], str | None]] = []

OUTPUT = "standard output or a temporary file"  # the subject of a disk error that names no file


def report(main: Callable[[], T], again: str = "run the command again") -> T:
    """Runs an entry point; an error that the user can correct becomes one line on stderr and exit status 2.

    `Interrupted` has its own status. `HYDRA_FULL_ERROR=1` or the argument `debug=true` shows the traceback. For other
    errors it is always shown. A signal ends the command with one line and exit status 130 (SIGINT), 143 (SIGTERM) or
    129 (SIGHUP).
    """
    with processes.signals_heard(again):
        try:
            return _reported(main)
        except BaseException:
            if (number := processes.signal_received()) is None:
                raise
        print(processes.signal_line(number), file=sys.stderr, flush=True)
        # An interrupt during exec(), as in the import of a dataclass, stays noted in the interpreter, which would then
        # end itself by SIGINT instead of with this status. The next exec() clears the note.
        exec("")
        sys.exit(128 + number)


def _reported(main: Callable[[], T]) -> T:
    before = {name: os.environ.get(name) for name in (FULL, SHORT)}
    full = (before[FULL] not in (None, "", "0") and before[SHORT] is None) or "debug=true" in sys.argv
    os.environ[FULL] = "1"  # makes Hydra raise its errors instead of printing them
    if not full:
        os.environ[SHORT] = "1"  # for commands that this one starts
    try:
        done = main()
        sys.stdout.flush()  # not at the end of the process, where an error could not be reported
        if isinstance(sys.stdout, _Closed) and sys.stdout.used:
            lost = "done, but standard output is closed, so the output is lost"
            raise UserError(f"{lost}; use >/dev/null if that is intended")
        return done
    except BrokenPipeError:  # the reader of our output has exited
        _mute()
        sys.exit(1)
    except Exception as error:
        if processes.signal_received() is not None:
            raise
        message = explain(error)
        if message is None:
            raise
        if full:
            traceback.print_exc()
        show(error)
        try:
            sys.stdout.flush()
        except OSError:
            _mute()
        sys.exit(next(_causes(error, UserError), UserError).status)
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _mute() -> None:
    """Discards stdout's buffer: it cannot be written, and the end of the process would try to write it again."""
    with suppress(OSError, ValueError):  # a stand-in for stdout may not be a file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show(error: BaseException) -> None:
    """Prints an error's line on stderr, at most once per error."""
    origin = next(_causes(error, UserError), error)
    if not getattr(origin, "shown", False):
        with suppress(OSError):  # if stderr cannot be written, the exit status is enough
            print(f"error: {explain(error)}", file=sys.stderr, flush=True)
        origin.shown = True  # type: ignore[attr-defined]


def explain(error: BaseException) -> str | None:
    """One line for an error that the user can correct; None for any other."""
    if cause := next(_causes(error, UserError), None):
        return str(cause)
    if ran_out(error):
        return "out of memory; a smaller batch or model needs less, or another program uses the memory"
    if isinstance(error, OSError) and (refused := disk.explain(error, OUTPUT)):
        return str(refused)
    return next((line for explainer in EXPLAINERS if (line := explainer(error))), None)


def _causes(error: BaseException | None, kind: type[E]) -> Iterator[E]:
    while error is not None:
        if isinstance(error, kind):
            yield error
        error = error.__cause__


def choices(name: str, known: Sequence[str]) -> str:
    """A hint that lists the known names, and suggests the one closest to a wrong name."""
    near = get_close_matches(name, known, 1)
    return (f"did you mean {near[0]}? " if near else "") + "choose from " + ", ".join(known)


# Standard streams may be closed, unable to show every character, or read by another process. Python leaves a closed
# stream as None, on which `print` is silent and everything else fails; and the next opened file gets its number, so
# that a library's output would go into that file.


class _Closed(io.TextIOWrapper):
    """In place of a closed stdout: output is lost."""

    used = False

    def write(self, text: str) -> int:
        self.used = self.used or bool(text)
        return len(text)


def tables() -> Any:
    """The standard output as rich's console, with wide tables if it is a file or a pipe."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 200, highlight=False)


def ready() -> None:
    """Makes all three usable, before any file is opened. Characters that cannot be shown are escaped, as in `\\xb1`."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
    sys.stdin = sys.stdin or open(0, closefd=False)  # noqa: SIM115
    sys.stdout = sys.stdout or _Closed(io.FileIO(1, "w", closefd=False), "utf-8")
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


# How a process reports its progress: by lines for its parent, or by a bar.

LINES = "ELMO_BENCH_PROGRESS_LINES"  # set in the environment of a process whose progress its parent displays
MARK = "\x1e"  # begins a line that replaces the previous one


def tell(text: str) -> None:
    """Prints the progress of this process as a line for its parent (`run_jobs`), if the parent displays it."""
    if os.environ.get(LINES):
        print(f"{MARK}{text}", flush=True)


def tracked(items: Iterable[T], what: str, shown: bool | str = "auto") -> Iterable[T]:
    """The items one after another, while a bar on stderr says how many are done.

    Args:
        items: the items of work.
        what: the text before the bar.
        shown: whether there is a bar; "auto": where stderr is a terminal.
    """
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(items, what, console=console, disable=not (console.is_terminal if shown == "auto" else shown))
