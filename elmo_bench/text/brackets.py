"""Spans written as brackets over the rows of a column: arguments `(ARG0* * *)` and clusters `(0|(1) - 0)`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from elmo_bench.text.tags import Span

_CELL = re.compile(r"((?:\([^()*\s]+)*)\*((?:[^()*\s]*\))*)")
_OPENED = re.compile(r"\(([^(]+)")
_CLOSED = re.compile(r"([^)]*)\)")
_CLUSTER = re.compile(r"(\(?)([^()|\s]+)(\)?)")


class BracketError(ValueError):
    """A column that cannot be read; `index` is the row at fault."""

    def __init__(self, message: str, index: int):
        super().__init__(message)
        self.index = index


def spans(column: Sequence[str]) -> list[Span]:
    """The labelled spans of a column such as `(ARG0*`, `*)`, `(V*)`, by their start, the outer one first.

    Brackets nest: a closing one ends the span that was opened last. It may repeat the label (`*ARG0)`).

    Raises:
        BracketError: a cell of another form, a bracket that has no partner.
    """
    found: list[Span] = []  # in the order of their opening: by start, the outer one first
    open_: list[int] = []  # of those
    for i, cell in enumerate(column):
        if cell == "*":
            continue
        match = _CELL.fullmatch(cell)
        if match is None:
            raise BracketError(f"{cell!r} is no cell of brackets: expected such as '(ARG0*', '*)', '(V*)' or '*'", i)
        for label in _OPENED.findall(match[1]):
            open_.append(len(found))
            found.append(Span(label, i, i))
        for label in _CLOSED.findall(match[2]):
            if not open_:
                raise BracketError(f"{cell!r} closes a bracket that is not open", i)
            last = open_.pop()
            found[last] = found[last]._replace(end=i + 1)
            if label not in ("", found[last].type):
                raise BracketError(f"{cell!r} closes {label!r} where {found[last].type!r} is open", i)
    if open_:
        span = found[open_[-1]]
        raise BracketError(f"the bracket of {span.type!r} is never closed", span.start)
    return found


def write_spans(found: Iterable[Span], length: int) -> list[str]:
    """The column of `length` rows with these spans, none crossing another; the inverse of `spans`."""
    opening, closing = [""] * length, [""] * length
    for label, start, end in sorted(found, key=_outer_first):
        opening[start] += f"({label}"
        closing[end - 1] += ")"
    return [f"{before}*{after}" for before, after in zip(opening, closing, strict=True)]


def mentions(column: Sequence[str]) -> list[Span]:
    """The mentions of a coreference column such as `(0|(1)`, `-`, `0)`; a span's type is its cluster.

    Mentions nest and cross: `n)` ends the mention of cluster n that was opened last. As the reference scorer reads a
    cell, what opens in it comes before what closes, so `0)|(0` is a mention of that word inside a longer one.

    Returns:
        By start, the outer one first. Nothing is left out: a mention written twice comes twice.

    Raises:
        BracketError: a cell of another form, a mention closed that is not open, or never closed.
    """
    open_: dict[str, list[int]] = {}
    found = []
    for i, cell in enumerate(column):
        if cell in ("-", "_", "*"):
            continue
        for part in sorted(cell.split("|"), key=_closes):
            match = _CLUSTER.fullmatch(part)
            if match is None or not (match[1] or match[3]):
                raise BracketError(f"{cell!r} is no cell of clusters: expected such as '(0', '0)', '(0)|1)' or '-'", i)
            opens, cluster, closes = match.groups()
            if opens:
                open_.setdefault(cluster, []).append(i)
            if closes:
                if not open_.get(cluster):
                    raise BracketError(f"{cell!r} closes a mention of cluster {cluster} that is not open", i)
                found.append(Span(cluster, open_[cluster].pop(), i + 1))
    left = [(start, cluster) for cluster, starts in open_.items() for start in starts]
    if left:
        start, cluster = min(left)
        raise BracketError(f"the mention of cluster {cluster} is never closed in its sentence", start)
    return sorted(found, key=_outer_first)


def write_mentions(found: Iterable[Span], length: int) -> list[str]:
    """The coreference column of `length` rows; the inverse of `mentions` (mentions of one cluster must not cross)."""
    cells: list[list[str]] = [[] for _ in range(length)]
    ordered = sorted(found, key=_outer_first)
    for cluster, start, end in reversed(ordered):
        if end > start + 1:
            cells[end - 1].append(f"{cluster})")
    for cluster, start, end in ordered:  # after what closes there, which began before
        cells[start].append(f"({cluster})" if end == start + 1 else f"({cluster}")
    return ["|".join(cell) or "-" for cell in cells]


def _closes(part: str) -> bool:
    return not part.startswith("(")


def _outer_first(span: Span) -> tuple[int, int]:
    return span.start, -span.end
