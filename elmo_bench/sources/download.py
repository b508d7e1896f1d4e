"""Fetching one file by HTTP. The bytes received so far stay in FILE.part, where the next attempt or command resumes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import requests
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from urllib3.exceptions import HTTPError

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.disk import writing

CHUNK = 1 << 18  # bytes
CONNECT = 10.0  # seconds to wait for a connection
TRANSIENT = {HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS, *range(500, 600)}  # may succeed later

SENT = HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE


class Patience(NamedTuple):
    """The limits of a download.

    Args:
        stall: seconds without a byte after which a connection is given up.
        attempts: maximum number of failed ones; counted anew by one that received something.
        pause: seconds before the second attempt; each further pause is twice as long.
    """

    stall: float = 30.0
    attempts: int = 4
    pause: float = 1.0


class _Interrupted(Exception):
    """An attempt failed for a transient reason."""


def download(url: str, path: Path, limit: int, accept: Callable[[Path], str | None], patience: Patience) -> None:
    """Fetches a file, or resumes it.

    Args:
        url: http or https; redirections are followed, but never from https to http, and to no other scheme.
        path: the place of the complete, accepted file; its folder is made.
        limit: maximum number of bytes.
        accept: returns the fault of a fetched file, or None if it is correct.
        patience: limits on time and attempts.
    """
    part = path.with_name(f"{path.name}.part")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        limits.regular(part)
        resumed = part.exists()
        _fetch(url, part, limit, patience)
        wrong = accept(part)
        if wrong and resumed:  # the earlier part may come from another version
            part.unlink()
            _fetch(url, part, limit, patience)
            wrong = accept(part)
        if wrong:
            part.unlink()
            raise UserError(f"{url}: {wrong}; it was not kept")
        os.replace(part, path)


def _fetch(url: str, part: Path, limit: int, patience: Patience) -> None:
    failures = 0
    while True:
        before = _size(part)
        try:
            return _attempt(url, part, limit, patience.stall)
        except _Interrupted as error:
            failures = 1 if _size(part) > before else failures + 1
            if failures >= patience.attempts:
                kept = f"; {_size(part):,} bytes are kept, and the same command resumes there" * bool(_size(part))
                raise UserError(f"{url}: {error}, after {patience.attempts} attempts{kept}") from None
            time.sleep(patience.pause * 2 ** (failures - 1))


def _size(part: Path) -> int:
    return part.stat().st_size if part.exists() else 0


def _attempt(url: str, part: Path, limit: int, stall: float) -> None:
    start = _size(part)
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={start}-"} if start else {})}
    try:
        with requests.get(url, headers=headers, stream=True, timeout=(CONNECT, stall)) as response:
            steps = [each.url for each in (*response.history, response)]
            if urlsplit(url).scheme == "https" and (plain := [one for one in steps if urlsplit(one).scheme != "https"]):
                raise UserError(f"{url}: leads to {plain[0]}, which is not encrypted")
            status, sent = response.status_code, response.headers.get("Content-Range", "")
            if status in TRANSIENT:
                raise _Interrupted(f"the server answers {status} {response.reason}")
            if status not in SENT:
                raise UserError(f"{url}: the server answers {status} {response.reason}")
            if status != HTTPStatus.PARTIAL_CONTENT or not sent.startswith(f"bytes {start}-"):
                part.unlink(missing_ok=True)  # the server sends the complete file instead of the rest
                start = 0
            if status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise _Interrupted("the server refuses to resume the file")
            _receive(url, response, part, start, limit)
    except requests.exceptions.InvalidSchema as error:
        raise UserError(f"{url}: leads to an address that is neither http nor https ({error})") from None
    except (requests.RequestException, HTTPError) as error:
        raise _Interrupted(_reason(error)) from None


def _receive(url: str, response: requests.Response, part: Path, start: int, limit: int) -> None:
    """Appends the body, which must have the length that the server announced."""
    announced = response.headers.get("Content-Length", "")
    total = start + int(announced) if announced.isdecimal() else None
    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    console, hidden = Console(stderr=True), not sys.stderr.isatty()
    with (
        open(part, "ab") as file,
        Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=hidden) as progress,
    ):
        task = progress.add_task(part.name.removesuffix(".part"), total=total, completed=start)
        while chunk := response.raw.read1(CHUNK, decode_content=False):  # what has arrived: a stall loses nothing
            if max(total or 0, file.tell() + len(chunk)) > limit:
                part.unlink()
                raise UserError(f"{url}: more than the {limit:,} bytes that conf/data allows; is this the right file?")
            file.write(chunk)
            progress.advance(task, len(chunk))
    if total is not None and _size(part) != total:
        raise _Interrupted(f"the connection ended after {_size(part):,} of {total:,} bytes")


def _reason(error: Exception) -> str:
    """A short reason; the libraries' messages contain nested representations of objects."""
    if isinstance(error, requests.ConnectTimeout):
        return "the server cannot be reached in time"
    if "timed out" in str(error).lower():
        return "the connection stalled"
    if "IncompleteRead" in str(error) or "broken" in str(error).lower():
        return "the connection broke"
    if isinstance(error, requests.TooManyRedirects):
        return "it redirects without end"
    with suppress(IndexError):
        return f"no connection ({str(error.args[0]).rpartition(': ')[2].rstrip(')')})"
    return f"no connection ({type(error).__name__})"
