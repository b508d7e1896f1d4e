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
TOLERATED = 100  # fewer than 1 in this many entities of a file may break its scheme
_BILOU = {"U": "S", "L": "E"}  # BILOU's letters -> those of BIOES


class Span(NamedTuple):
    """The tokens [start, end) of a sentence and their type."""

    type: str
    start: int
    end: int  # the token after the last


class TagError(ValueError):
    """Tags that cannot be read, at a token (`index`) of a sentence (`sentence`), both counted from 0."""

    def __init__(self, message: str, sentence: int, index: int):
        super().__init__(message)
        self.sentence, self.index = sentence, index


def normalised(tags: Sequence[str], sentence: int = 0) -> list[str]:
    """The tags of a sentence with S- and E- for U- and L-. Raises `TagError` for a tag of no known scheme."""
    clean = []
    for i, tag in enumerate(tags):
        prefix, _, kind = tag.partition("-")
        if tag != "O" and (len(prefix) != 1 or prefix not in "BIESUL"):
            expected = "expected O, or B-, I-, E- or S- and a type"
            raise TagError(f"the tag {tag!r} belongs to no known scheme: {expected}", sentence, i)
        if tag != "O" and not kind:
            expected = f"expected {prefix}-TYPE, such as {prefix}-PER"
            raise TagError(f"the tag {tag!r} has no type: {expected}", sentence, i)
        clean.append(_BILOU.get(prefix, prefix) + tag[1:])
    return clean


def spans(tags: Sequence[str]) -> list[Span]:
    """The spans as conlleval, the official scorer, reads them; sequences that no scheme allows are repaired.

    A span ends where the type changes, at O, before B and S and after E and S; it starts at B and S, and at I and E
    if no span of that type is open. (conlleval of 2004 has no S and joins E and a following B; its successors, such as
    seqeval, follow BIOES in both.) The metric uses seqeval, which reads spans in the same way; its import takes two
    seconds, as long as torch's, which prediction avoids.
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
    """Whether `tag` may follow `before`; O stands for both ends of a sentence."""
    open_, kind = before[0] in "BI", before[2:]
    if tag[0] not in PREFIXES[scheme] + "O":
        return False
    if scheme == "iob1":
        return tag[0] != "B" or (open_ and tag[2:] == kind)
    if scheme == "iob2":
        return tag[0] != "I" or (open_ and tag[2:] == kind)
    return (tag[0] in "IE" and tag[2:] == kind) if open_ else tag[0] in "OBS"


def exceptions(tags: Sequence[str], found: Iterable[Span], scheme: str) -> list[int]:
    """For every span that the scheme would tag differently, the first token with a wrong tag."""
    expected = encode(found, len(tags), scheme)
    wrong = [[i for i in range(start, end) if tags[i] != expected[i]] for _, start, end in found]
    return [tokens[0] for tokens in wrong if tokens]


class TaggedFile(NamedTuple):
    """The entities of the sentences of one file, and the exceptions from its scheme."""

    spans: list[list[Span]]  # by sentence
    scheme: str
    exceptions: list[tuple[int, int]]  # sentence and token of every entity that breaks the scheme


def read_tags(sentences: Iterable[Sequence[str]], scheme: str = "auto") -> TaggedFile:
    """Reads the tags of one file, which must follow one scheme.

    With "auto" this is the scheme that more than 99 in 100 of the file's entities follow. The exceptions are read as by
    conlleval: even CoNLL-2003 has some. Each file may have another scheme. A file with an entity fits at most one
    scheme, so the splits of a data set agree whenever they use one scheme.

    Args:
        sentences: the tags of each sentence of the file.
        scheme: one of SCHEMES, without exception; "auto"; or "conlleval" to read any tags as the official scorer does.

    Raises:
        TagError: a tag of no known scheme, or against the given scheme; tags that follow no scheme, at the token
            where the last possible scheme is broken.
    """
    broken: dict[str, list[tuple[int, int]]] = {each: [] for each in SCHEMES if scheme in ("auto", each)}
    found: list[list[Span]] = []
    for number, tags in enumerate(sentences):
        clean = normalised(tags, number)
        found.append(spans(clean))
        for name, places in broken.items():
            wrong = exceptions(clean, found[-1], name)
            if wrong and name == scheme:
                message = f"the tag {tags[wrong[0]]!r} does not follow {name} here; correct the file"
                raise TagError(message, number, wrong[0])
            places += [(number, index) for index in wrong]
    if scheme != "auto":
        return TaggedFile(found, scheme, [])
    best, places = min(broken.items(), key=lambda item: len(item[1]))
    entities = sum(map(len, found))
    if places and TOLERATED * len(places) >= entities:
        shares = ", ".join(f"{name} in {len(each)} ({len(each) / entities:.1%})" for name, each in broken.items())
        message = (
            f"from here the file does not follow any tag scheme: of its {entities} entities it breaks {shares}, and "
            f"fewer than 1 in {TOLERATED} are accepted; correct the file, or read it as the official scorer does, with "
            "+task.data.source_scheme=conlleval"
        )
        raise TagError(message, *max(each[0] for each in broken.values()))
    return TaggedFile(found, best, places)


def labels(types: Iterable[str], scheme: str) -> list[str]:
    """Every tag of the scheme over these types: O first, then type by type."""
    return ["O"] + [f"{letter}-{kind}" for kind in sorted(set(types)) for letter in PREFIXES[scheme]]


class Constraints(NamedTuple):
    """The tags and transitions that a scheme allows, over a list of K labels."""

    start: list[bool]  # (K,) may open a sentence
    pairs: list[list[bool]]  # (K, K) [i][j]: j may follow i
    end: list[bool]  # (K,) may close a sentence


def constraints(names: Sequence[str], scheme: str) -> Constraints:
    """Which labels may start, follow one another and end, for a CRF over these labels."""
    pairs = [[follows(scheme, before, name) for name in names] for before in names]
    outside = names.index("O")  # stands for both ends of a sentence
    return Constraints(pairs[outside], pairs, [row[outside] for row in pairs])


def scheme_of(names: Iterable[str]) -> str:
    """The scheme of a list of labels: bioes if any is E- or S-, else iob2."""
    return "bioes" if any(name[0] in "ES" for name in names) else "iob2"
