"""Tags that mark spans: the schemes IOB1, IOB2 and BIOES (also called IOBES, BILOU, BIOUL), and what they allow.

| scheme | "New York" and then "Rome", both LOC |
|---|---|
| iob1 | I-LOC I-LOC B-LOC (B only where a span directly follows one of the same type) |
| iob2 | B-LOC I-LOC B-LOC |
| bioes | B-LOC E-LOC S-LOC |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

PREFIXES = {"iob1": "BI", "iob2": "BI", "bioes": "BIES"}
SCHEMES = tuple(PREFIXES)
TOLERATED = 100  # fewer than 1 in so many entities of a file may break its scheme
_BILOU = {"U": "S", "L": "E"}  # BILOU's letters -> those of BIOES


class Span(NamedTuple):
    """The tokens [start, end) of a sentence and their type."""

    type: str
    start: int
    end: int  # the token after the last


class Constraints(NamedTuple):
    """What a scheme allows, over a list of K labels."""

    start: list[bool]  # (K,) may open a sentence
    pairs: list[list[bool]]  # (K, K) [i][j]: j may follow i
    end: list[bool]  # (K,) may close a sentence


def normal(tag: str) -> str:
    """The tag with U- and L- written S- and E-. Raises `ValueError` for a tag of no known scheme."""
    if tag == "O":
        return tag
    prefix, hyphen, kind = tag.partition("-")
    if len(prefix) != 1 or prefix not in "BIESUL":
        raise ValueError(f"the tag {tag!r} belongs to no known scheme: expected O, or B-, I-, E- or S- and a type")
    if not kind:
        raise ValueError(f"the tag {tag!r} has no type: expected {prefix}-TYPE, such as {prefix}-PER")
    return _BILOU.get(prefix, prefix) + hyphen + kind


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans as conlleval, the official scorer, reads them; sequences that no scheme allows are repaired.

    A span ends where the type changes, at O, before B and S and after E and S; it starts at B and S, and at I and E
    if no span of that type is open. (conlleval of 2004 has no S and joins E and a following B; its successors, such as
    seqeval, follow BIOES in both.) The metric counts through seqeval, which reads the same; to import that takes two
    seconds, as long as torch, and predicting does without.
    """
    found: list[Span] = []
    start = None  # of the open span
    for place, tag in enumerate((*tags, "O")):
        letter, kind = tag[0], tag[2:]
        if start is not None and not (letter in "IE" and kind == tags[start][2:]):
            found.append(Span(tags[start][2:], start, place))
            start = None
        if start is None and letter != "O":
            start = place
        if start is not None and letter in "ES":
            found.append(Span(kind, start, place + 1))
            start = None
    return found


def encode(spans: Iterable[Span], length: int, scheme: str) -> list[str]:
    """Tags of a sentence of `length` tokens with these spans, which must not overlap."""
    tags = ["O"] * length
    for kind, start, end in sorted(spans, key=lambda span: span.start):
        letters = ["I"] * (end - start)
        if scheme == "iob2" or (scheme == "iob1" and start > 0 and tags[start - 1][2:] == kind):
            letters[0] = "B"
        elif scheme == "bioes":
            letters[0], letters[-1] = ("S", "S") if end - start == 1 else ("B", "E")
        tags[start:end] = [f"{letter}-{kind}" for letter in letters]
    return tags


def convert(tags: Sequence[str], scheme: str) -> list[str]:
    """The same spans in another scheme."""
    return encode(spans(tags), len(tags), scheme)


@lru_cache(maxsize=1 << 16)
def follows(scheme: str, before: str, tag: str) -> bool:
    """Whether `tag` may stand after `before`; O stands for both ends of a sentence."""
    open_, kind = before[0] in "BI", before[2:]
    if tag[0] not in PREFIXES[scheme] + "O":
        return False
    if scheme == "iob1":
        return tag[0] != "B" or (open_ and tag[2:] == kind)
    if scheme == "iob2":
        return tag[0] != "I" or (open_ and tag[2:] == kind)
    return (tag[0] in "IE" and tag[2:] == kind) if open_ else tag[0] in "OBS"


def exceptions(tags: Sequence[str], found: Iterable[Span], scheme: str) -> list[int]:
    """Of every span that the scheme would write with other tags, the first token with a wrong one."""
    expected = encode(found, len(tags), scheme)
    wrong = [[i for i in range(start, end) if tags[i] != expected[i]] for _, start, end in found]
    return [tokens[0] for tokens in wrong if tokens]


class TagError(ValueError):
    """Tags that cannot be read, at a token (`index`) of a sentence (`sentence`), both counted from 0."""

    def __init__(self, message: str, sentence: int, index: int):
        super().__init__(message)
        self.sentence, self.index = sentence, index


def normals(tags: Sequence[str], sentence: int) -> list[str]:
    """The tags of a sentence, by `normal`. Raises `TagError`."""
    clean = []
    for i, tag in enumerate(tags):
        try:
            clean.append(normal(tag))
        except ValueError as error:
            raise TagError(str(error), sentence, i) from None
    return clean


class Settled(NamedTuple):
    """What the sentences of a file have shown."""

    scheme: str
    entities: int
    exceptions: list[tuple[int, int]]  # sentence and token of every entity that breaks the scheme


class TagReader:
    """Reads the sentences of one file, whose tags must follow one scheme.

    With "auto" this is the scheme that all but fewer than 1 in 100 of the file's entities follow. The exceptions are
    read as conlleval reads them: CoNLL-2003 has some itself. Each file settles by itself. As soon as it has an entity,
    it fits at most one scheme, so the splits of a data set agree whenever they are of one scheme.

    Args:
        scheme: one of SCHEMES, without exception; "auto"; or "conlleval" to read any tags as the official scorer does.
    """

    def __init__(self, scheme: str = "auto"):
        if scheme not in (*SCHEMES, "auto", "conlleval"):
            raise ValueError(f"unknown tag scheme {scheme!r}; choose from auto, {', '.join(SCHEMES)}, conlleval")
        self.scheme, self.sentences, self.entities = scheme, 0, 0
        candidates = SCHEMES if scheme == "auto" else [scheme] if scheme in SCHEMES else []
        self.exceptions: dict[str, list[tuple[int, int]]] = {candidate: [] for candidate in candidates}

    def __call__(self, tags: Sequence[str]) -> list[Span]:
        """The spans of a sentence. Raises `TagError`: a tag of no known scheme, or against the scheme asked for."""
        clean = normals(tags, self.sentences)
        found = spans(clean)
        for scheme, places in self.exceptions.items():
            wrong = exceptions(clean, found, scheme)
            if wrong and scheme == self.scheme:
                message = f"the tag {tags[wrong[0]]!r} does not follow {scheme} here; correct the file"
                raise TagError(message, self.sentences, wrong[0])
            places += [(self.sentences, index) for index in wrong]
        self.sentences += 1
        self.entities += len(found)
        return found

    def settle(self) -> Settled:
        """The scheme of all sentences read. Raises `TagError` if they follow none, where the last one is broken."""
        if self.scheme != "auto":
            return Settled(self.scheme, self.entities, [])
        scheme, places = min(self.exceptions.items(), key=lambda item: len(item[1]))
        if places and TOLERATED * len(places) >= self.entities:
            broken = {scheme: len(places) for scheme, places in self.exceptions.items()}
            shares = ", ".join(f"{scheme} in {n} ({n / self.entities:.1%})" for scheme, n in broken.items())
            told = (
                f"from here the file does not follow any tag scheme: of its {self.entities} entities it breaks "
                f"{shares}, and fewer than 1 in {TOLERATED} are accepted; correct the file, or read it as the official "
                "scorer does, with +task.data.source_scheme=conlleval"
            )
            raise TagError(told, *max(places[0] for places in self.exceptions.values()))
        return Settled(scheme, self.entities, places)


def labels(types: Iterable[str], scheme: str) -> list[str]:
    """Every tag of the scheme over these types: O first, then type by type."""
    return ["O"] + [f"{letter}-{kind}" for kind in sorted(set(types)) for letter in PREFIXES[scheme]]


def constraints(names: Sequence[str], scheme: str) -> Constraints:
    """Which labels may start, follow one another and end, for a CRF over these labels."""
    return Constraints(
        start=[follows(scheme, "O", name) for name in names],
        pairs=[[follows(scheme, before, name) for name in names] for before in names],
        end=[follows(scheme, name, "O") for name in names],
    )


def scheme_of(names: Iterable[str]) -> str:
    """The scheme of a list of labels: bioes if any is E- or S-, else iob2."""
    return "bioes" if any(name[0] in "ES" for name in names) else "iob2"
