"""Mutations of files: small damage, hostile values, and what editors and downloads do to text."""

import gzip
import lzma
import random
import re
from collections.abc import Callable

# What often breaks a reader: numbers that are none, marks of formats, white space that is not ASCII, halves of
# characters, and very much of one thing.
HOSTILE = [
    *r"""
    ² ٣ -1 1e999 -0 0x1 1_0 NaN Infinity true null None 3.5 9223372036854775808 \ud800 "\udc00" \u0000 \ " ' { } [ ] ,
    : {} [] "" ~ .. (²) ( ) * (A0* *) (V*) (0 0) (0) (0)|(0) (0|(0 0)|0) (1)|(0) | - _ O B- I-PER S-X E-X L-X U-PER
    B-B-B i-per -DOCSTART- # </S> <UNK> é / İ ß
    """.split(),
    *("\0", "\ufeff", "\x85", "\u2028", "\u00a0", "\r", "\r\n", "\t", "\v", "\x1c", " ", "  ", "\n", "\n\n", ""),
    *('{"a": 1, "a": 2}', "# text", "e\u0301", "\U0001f600", "\u200d"),
    *("#begin document (x); part 000", "#begin document x", "#end document", "#begin document (a/b); part ²"),
    *("1" * 5000, "a" * 3000, "*" * 300, "(" * 400, "[" * 400),
    *("[" * 100_000, "(3 " * 100_000, '{"a":' * 10_000, "a-" * 2000, "\n" * 3000, "..." * 500),
]  # fmt: skip
HOSTILE_BYTES = [b"\xff", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88", b"\x80", b"\0\0\0\0"]
_TOKEN = re.compile(rb"[^\s\"(){}\[\]:,*|]+")
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
_MARK = re.compile(rb"[\s\"(){}\[\]:,*|-]")
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda content: gzip.compress(content, 1, mtime=0),  # else other bytes at another time
    ".xz": lambda content: lzma.compress(content, preset=0),
}


def mutated(content: bytes, chance: random.Random) -> bytes:
    """The content after one to four changes."""
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        content = chance.choice(CHANGES)(content, chance)
    return content


def hostile(chance: random.Random) -> bytes:
    """A value that readers do not expect."""
    return chance.choice(HOSTILE_BYTES) if chance.random() < 0.1 else chance.choice(HOSTILE).encode()


def _flip(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content) or 1)
    return content[:place] + bytes([chance.randrange(256)]) + content[place + 1 :]


def _delete(content: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(content) + 1)
    return content[:first] + content[first + chance.choice((1, 1, 2, 5, 20, 200)) :]


def _cut(content: bytes, chance: random.Random) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _insert(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content) + 1)
    return content[:place] + hostile(chance) + content[place:]


def _repeat(content: bytes, chance: random.Random) -> bytes:
    first = chance.randrange(len(content) + 1)
    piece = content[first : first + chance.choice((1, 3, 10, 50))]
    return content[:first] + piece * chance.choice((2, 2, 3, 100)) + content[first + len(piece) :]


def _replacing(pattern: re.Pattern[bytes]) -> Callable[[bytes, random.Random], bytes]:
    """A change that puts something hostile, or something else of the file, where the pattern matches."""

    def change(content: bytes, chance: random.Random) -> bytes:
        found = list(pattern.finditer(content[:20_000]))
        if not found:
            return content
        one, other = chance.choice(found), chance.choice(found)
        value = other.group() if chance.random() < 0.3 else hostile(chance)
        return content[: one.start()] + value + content[one.end() :]

    return change


def _swap_lines(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    one, other = (chance.randrange(len(lines)) for _ in range(2))
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def _lose_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    del lines[chance.randrange(len(lines))]
    return b"\n".join(lines)


def _double_line(content: bytes, chance: random.Random) -> bytes:
    lines = content.split(b"\n")
    place = chance.randrange(len(lines))
    lines[place:place] = [lines[place]] * chance.choice((1, 1, 2, 30))
    return b"\n".join(lines)


def _rewrite(content: bytes, chance: random.Random) -> bytes:
    """What an editor may do to all of a file."""
    swaps = [(b"\n", b"\r\n"), (b"\n", b"\r"), (b"\n", b"\n\n"), (b" ", b"\t"), (b"\t", b" "), (b"\n", b"")]
    before, after = chance.choice(swaps)
    return content.replace(before, after)


def _encode(content: bytes, chance: random.Random) -> bytes:
    text = content.decode("utf-8", "replace")
    codec = chance.choice(("utf-16", "utf-32", "latin-1", "utf-8-sig"))
    return text.encode(codec, "replace")


CHANGES: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    *(_flip, _delete, _cut, _insert, _insert, _repeat, _swap_lines, _lose_line, _double_line, _rewrite, _encode),
    *(3 * [_replacing(_TOKEN)]), *(2 * [_replacing(_NUMBER)]), _replacing(_MARK),
)  # fmt: skip
