"""The exception for errors that the user can correct, notices, and out-of-memory errors."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

StrPath = str | PathLike[str]
LONGEST = 2_000  # characters of a message
# Parts of messages of torch, CUDA, cuDNN, cuBLAS and the C++ library; on a CPU no such error has a specific type.
NO_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory", "alloc_failed",
             "bad_alloc")  # fmt: skip


class UserError(Exception):
    """Something outside the code is wrong: an argument, a file, a missing download.

    Every command prints it as one line and exits with status 2 (no traceback). Only several faults at once are printed
    as a list, one line each.

    Args:
        message: the fault and the remedy, in one line.
        path: the file at fault, if there is one.
        line: its line, counted from 1, if there is one.
        faults: lines of a list that follows the message.

    Attributes:
        status: the exit status of a command.
    """

    status = 2

    def __init__(
        self,
        message: str,
        path: StrPath | None = None,
        line: int | None = None,
        faults: Sequence[str] = (),
    ):
        self.message = printable(" ".join(str(message).split()))
        self.faults = tuple(faults)
        self.path = None if path is None else Path(path)
        self.line = line
        super().__init__(self.message)

    def __str__(self) -> str:
        message = "\n- ".join([self.message, *self.faults])
        if self.path is None:
            return message
        where = printable(str(self.path)) + ("" if self.line is None else f":{self.line}")
        return f"{where}: {message}"

    def __reduce__(self):  # keeps path and line when a worker process passes the error on
        return type(self), (self.message, self.path, self.line, self.faults)


def notice(message: str, path: Any = None) -> None:
    """Prints a line on the standard error that is not an error."""
    print(f"{path}: {message}" if path else message, file=sys.stderr)


def check_missing(what: str, problems: Sequence[str]) -> None:
    """Refuses to continue if anything is missing: a single fault as one line, several as a list below the heading."""
    if len(problems) == 1:
        raise UserError(problems[0])
    if problems:
        raise UserError(f"{what} needs {len(problems)} things that are missing:", faults=problems)


class Interrupted(UserError):
    """The work was interrupted, for example because another of its processes was killed; the same command resumes it.

    The exit status 75 means a temporary failure in sysexits.h: a cluster starts the run again.
    """

    status = 75


def as_typed(value: Any) -> str:
    """A value as typed in a configuration: null, true, 0.5."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def printable(text: str) -> str:
    """The text with control characters as escapes such as \\x1b, and the middle of a long one left out.

    Messages quote files, whose content must neither control nor flood the terminal.
    """
    if len(text) > LONGEST:
        text = f"{text[: LONGEST // 2]} ... {text[-LONGEST // 4 :]}"
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def ran_out(error: BaseException) -> bool:
    """Whether an error means that memory is exhausted."""
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    known = isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in NO_MEMORY)
    return isinstance(error, MemoryError) or known


@contextmanager
def explained(doing: Callable[[], str], remedy: str) -> Iterator[None]:
    """Turns the errors of exhausted memory, on the machine or on a device, into one line.

    Args:
        doing: describes the work, with the size of the batch, as in "training on 64 sentences"; called only on error.
        remedy: the setting that reduces memory.
    """
    try:
        yield
    except Exception as error:
        if not ran_out(error):
            raise
        raise UserError(f"out of memory while {doing()}; {remedy}") from error
