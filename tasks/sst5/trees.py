"""The trees of the Stanford Sentiment Treebank, one per line: `(3 (2 a) (4 gem))`.

The five labels are 0 (very negative) to 4 (very positive).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.files import numbered_lines
from elmo_bench.text.labels import Labels

LABELS = ("0", "1", "2", "3", "4")
NAMES = ("very negative", "negative", "neutral", "positive", "very positive")
# "(" with a label, ")", a word; not \S, because a no-break space may occur inside a word
_PARTS = re.compile(r"\([ \t\r\n]*([^() \t\r\n]*)|(\))|([^() \t\r\n]+)").finditer
_ESCAPED = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
            "``": '"', "''": '"', "`": "'"}  # fmt: skip


class TreeError(ValueError):
    """A line that is not a tree."""


class Node(NamedTuple):
    """A phrase: the words [start, end)."""

    label: str
    start: int
    end: int


class Tree(NamedTuple):
    """A sentence and its phrases, each after its parts, so that the whole sentence comes last."""

    words: list[str]
    nodes: list[Node]

    @classmethod
    def parse(cls, text: str, deepest: int | None = None) -> Tree:
        """Parses one line. Raises `TreeError` if it is not a tree, or nested more than `deepest` deep."""
        words: list[str] = []
        nodes: list[Node] = []
        open_nodes: list[tuple[str, int, int]] = []  # label, first word, number of nodes closed before it
        for match in _PARTS(text):
            opened, closed, word = match.groups()
            if nodes and not open_nodes:
                raise TreeError(f"{match[0]!r} after the end of the tree")
            if not open_nodes and opened is None:
                raise TreeError("unbalanced: a bracket is closed that is not open" if closed else "not a tree")
            if opened == "":
                raise TreeError("unbalanced, or a node without a label")
            label, start, before = open_nodes[-1] if open_nodes else ("", 0, 0)
            empty, has_word = start == len(words), start < len(words) and before == len(nodes)
            if closed and empty:
                raise TreeError("a node without a word")
            if not closed and (has_word or (word and not empty)):
                raise TreeError(f"{match[0]!r} is beside other parts of its node; every word needs its own node")
            if closed:
                nodes.append(Node(label, start, len(words)))
                open_nodes.pop()
            elif word:
                words.append(word)
            elif len(open_nodes) == deepest:
                raise TreeError(f"nested more than {deepest} deep")
            else:
                open_nodes.append((opened, len(words), len(nodes)))
        if open_nodes or not nodes:
            raise TreeError(f"unbalanced: {len(open_nodes)} bracket(s) not closed" if open_nodes else "not a tree")
        return cls(words, nodes)


def read_trees(path: StrPath) -> Iterator[tuple[int, Tree]]:
    """The trees of a file, plain, .gz or .xz, with their line numbers; empty lines are skipped."""
    path, has_tree = Path(path), False
    for number, line in numbered_lines(path):
        try:
            yield number, Tree.parse(line, limits.NESTING)
        except TreeError as error:
            raise UserError(f"{error}; expected one tree per line, such as (3 (2 a) (4 gem))", path, number) from None
        has_tree = True
    if not has_tree:
        raise UserError("contains no tree; expected one per line, such as (3 (2 a) (4 gem))", path)


def unescaped(word: str) -> str:
    """A word without the treebank's escapes (-LRB- in any case becomes a bracket, `` a quote, \\/ a slash)."""
    return _ESCAPED.get(word.upper(), word).replace("\\/", "/").replace("\\*", "*")


def labels(data: Mapping[str, Any]) -> Labels:
    """The five labels, with the additional names of `task.data.labels`."""
    return Labels(LABELS, NAMES, data.get("labels"))
