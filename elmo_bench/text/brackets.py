"""Spans written as brackets in a column of a file: arguments `(ARG0* * *)` and clusters `(0|(1) - 0)`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from elmo_bench.text.tags import Span

_CELL = re.compile(r"((?:\([^()*\s]+)*)\*((?:[^()*\s]*\))*)")
_OPENED = re.compile(r"\(([^(]+)")
_CLOSED = re.compile(r"([^)]*)\)")
_SINGLE, _OPENING = map(re.compile, (r"\(([^()|\s]+)\)", r"\(([^()|\s]+)"))
_CLOSING = re.compile(
    r"(?<![^()|\s])([^()|\s]+)\)"
)  # anchored where a name begins, so that a long one without ")" is scanned once


class BracketError(ValueError):
    """A column that cannot be read; `index` is the faulty row."""

    def __init__(self, message: str, index: int):
        super().__init__(message)
        self.index = index


def spans(column: Sequence[str]) -> list[Span]:
    """The labelled spans of a column such as `(ARG0*`, `*)`, `(V*)`, by start, outer spans first.

    Brackets nest: a closing bracket ends the span that was opened last. It may repeat the label (`*ARG0)`).

    Raises:
        BracketError: a cell of another form, or an unmatched bracket.
    """
    labelled: list[Span] = []  # in the order of opening: by start, outer spans first
    open_: list[int] = []  # indices into labelled
    for i, cell in enumerate(column):
        if cell == "*":
            continue
        match = _CELL.fullmatch(cell)
        if match is None:
            raise BracketError(f"{cell!r} is not a bracket cell; expected for example '(ARG0*', '*)', '(V*)' or '*'", i)
        for label in _OPENED.findall(match[1]):
            open_.append(len(labelled))
            labelled.append(Span(label, i, i))
        for label in _CLOSED.findall(match[2]):
            if not open_:
                raise BracketError(f"{cell!r} closes a bracket that is not open", i)
            last = open_.pop()
            labelled[last] = labelled[last]._replace(end=i + 1)
            if label not in ("", labelled[last].type):
                raise BracketError(f"{cell!r} closes {label!r} but {labelled[last].type!r} is open", i)
    if open_:
        span = labelled[open_[-1]]
        raise BracketError(f"the bracket of {span.type!r} is never closed", span.start)
    return labelled


def write_spans(spans: Iterable[Span], length: int) -> list[str]:
    """The column of `length` rows with these spans, which must not cross; the inverse of `spans`."""
    opening, closing = [""] * length, [""] * length
    for label, start, end in sorted(spans, key=_outer_first):
        opening[start] += f"({label}"
        closing[end - 1] += ")"
    return [f"{before}*{after}" for before, after in zip(opening, closing, strict=True)]


def mentions(column: Sequence[str]) -> list[Span]:
    """The mentions in the coreference column of a sentence, read as `chains` does; a span's type is its cluster.

    Returns:
        By start, outer mentions first. Nothing is left out: a mention written twice occurs twice.

    Raises:
        BracketError: see `chains`.
    """
    ended, _ = _read_mentions(column, "sentence")
    return sorted(ended, key=_outer_first)


def chains(column: Sequence[str]) -> list[list[Span]]:
    """The clusters in the coreference column of a document, in the order in which the reference scorer meets them.

    The cells look like `(0|(1)`, `-`, `0)`; the bars may be left out. Mentions nest and cross: `n)` ends the mention of
    cluster n that was opened last. As in the reference scorer, opening brackets of a cell are read before closing ones,
    so `0)|(0` is a mention of that word inside a longer one; if several clusters begin in a cell, those with a mention
    of this word alone come first.

    Returns:
        For each cluster its mentions, in the order in which they end.

    Raises:
        BracketError: a cell of another form, a mention closed that is not open, or never closed.
    """
    ended, clusters = _read_mentions(column, "document")
    members: dict[str, list[Span]] = {cluster: [] for cluster in clusters}
    for mention in ended:
        members[mention.type].append(mention)
    return list(members.values())


def distinct(mentions: Iterable[Span]) -> list[Span]:
    """Raises `BracketError` if a cluster has a mention twice: recall could exceed 1, as in the reference scorer."""
    seen: dict[Span, None] = {}
    for mention in mentions:
        if mention in seen:
            cluster, start, end = mention
            words = "this word" if end == start + 1 else f"the {end - start} words from here"
            raise BracketError(f"cluster {cluster} has {words} as a mention twice; keep one", start)
        seen[mention] = None
    return list(seen)


def _read_mentions(column: Sequence[str], unit: str) -> tuple[list[Span], list[str]]:
    """The mentions as they end and the clusters as they begin; `unit` is what the column covers, for messages."""
    ended: list[Span] = []
    open_: dict[str, list[int]] = {}  # cluster -> the starts of its open mentions, in order
    for i, cell in enumerate(column):
        parts, rest = [], cell  # mentions of this word alone, and the mentions that open or close here
        for pattern in (_SINGLE, _OPENING, _CLOSING):
            parts.append(pattern.findall(rest))
            rest = pattern.sub("", rest)
        if rest.strip("|-_*"):
            raise BracketError(f"{cell!r} is not a cluster cell; expected for example '(0', '0)', '(0)|1)' or '-'", i)
        single, opening, closing = parts
        for cluster in (*single, *opening):
            open_.setdefault(cluster, [])
        ended += [Span(cluster, i, i + 1) for cluster in single]
        for cluster in opening:
            open_[cluster].append(i)
        for cluster in closing:
            if not open_.get(cluster):
                raise BracketError(f"{cell!r} closes a mention of cluster {cluster} that is not open", i)
            ended.append(Span(cluster, open_[cluster].pop(), i + 1))
    if left := [(start, cluster) for cluster, starts in open_.items() for start in starts]:
        start, cluster = min(left)
        raise BracketError(f"the mention of cluster {cluster} is never closed in its {unit}", start)
    return ended, list(open_)


def write_mentions(mentions: Iterable[Span], length: int) -> list[str]:
    """The coreference column of `length` rows; the inverse of `mentions`, which must nest.

    In a cell, opening brackets (longest mention first) come before closing ones (shortest first).
    """
    cells: list[list[str]] = [[] for _ in range(length)]
    ordered = sorted(mentions, key=_outer_first)
    for cluster, start, end in ordered:
        cells[start].append(f"({cluster})" if end == start + 1 else f"({cluster}")
    for cluster, start, end in reversed(ordered):
        if end > start + 1:
            cells[end - 1].append(f"{cluster})")
    return ["|".join(cell) or "-" for cell in cells]


def _outer_first(span: Span) -> tuple[int, int]:
    return span.start, -span.end
