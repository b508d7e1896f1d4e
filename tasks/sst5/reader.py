"""Reads the sentiment of sentences and phrases: trees of the Stanford Sentiment Treebank, in files or from the hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import PositiveInt

from elmo_bench.configuration.keys import valid
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.task import Batch, Row
from elmo_bench.text.batching import TextReader
from elmo_bench.text.labels import NO_GOLD
from elmo_bench.text.part import WHOLE, Part
from elmo_bench.text.source import DataSource, Table, tables, with_inputs
from elmo_bench.text.tokenizer import compounds, tokens_of, words
from elmo_bench.text.vocabulary import Vocabulary

from .trees import LABELS, Node, Tree, TreeError, labels, read_trees, unescaped

if TYPE_CHECKING:
    from datasets import DatasetDict

TREE = "ptb_tree"  # the hub's column of trees
PHRASES = ("long", "all", "sentences")


@dataclass(eq=False)
class Sst5Reader(TextReader):
    """A row is {"tokens": [str], "label": 0 to 4}.

    Phrases are for training only: dev and test are whole sentences. The vocabulary "words" has the words that occur at
    least `min_count` times in the training sentences.

    Args:
        data: the files of trees {train, dev, test}, below {folder} if given, or without a folder a data set of the hub
            {hub, configuration, revision}, with the trees in a column "ptb_tree". {train_sentences: n} trains on the
            first n.
        phrases: the training examples: "long" phrases of `long` or more words, "all" phrases, or "sentences". From a
            table of sentences without trees, all are used.
        long: minimum number of words in a long phrase.
        lower: look words up in lower case.
        min_count: minimum count of a word in the vocabulary.
        unescape: write brackets and quotes as in plain text, not as in the Penn Treebank.
    """

    fields, keys = ("tokens",), ("train_sentences", "labels")

    data: Mapping[str, Any]
    phrases: str = "long"
    long: int = 4
    lower: bool = False
    min_count: int = 1
    unescape: bool = True

    def __post_init__(self):
        valid(Literal[*PHRASES], self.phrases, "task.reader.phrases")
        self.train_sentences = self.data.get("train_sentences")
        if self.train_sentences is not None:
            valid(PositiveInt, self.train_sentences, "task.data.train_sentences")
        self.source = DataSource(self.data, keys=self.keys)

    def load(self, part: Part = WHOLE) -> DatasetDict:
        """Reads all splits and makes the vocabulary.

        A part of the training data is drawn from its sentences, each with all its phrases, which share its words.
        """
        found = self.source.load()
        trees = {split: list(self._trees(opened)) for split, opened in found.items()}
        train = trees["train"][: self.train_sentences]
        phrases = "sentences" if _is_of_sentences(found["train"]) else self.phrases
        train = part.of(train, "sentences", lambda tree: len(self._phrases(tree, phrases)))
        words = (word for tree in train for word in tree.words)
        self.vocabularies = {"words": Vocabulary.count(words, self.min_count, self.lower)}
        splits = {split: [_row(tree, -1) for tree in trees[split]] for split in found}
        splits["train"] = [_row(tree, i) for tree in train for i in self._phrases(tree, phrases)]
        if not splits["train"]:
            raise UserError(f"no training phrase has {self.long} words; set task.reader.long or task.reader.phrases")
        return tables(splits)

    def _phrases(self, tree: Tree, phrases: str) -> list[int]:
        """The nodes of a tree used for training."""
        if phrases == "sentences":
            return [-1]
        least = self.long if phrases == "long" else 1
        return [i for i, node in enumerate(tree.nodes) if node.end - node.start >= least]

    def _trees(self, source: Table | Path, labelled: bool = True) -> Iterator[Tree]:
        """The trees of a file, or of a table; if not `labelled`, its labels are ignored."""
        for number, tree in read_trees(source) if isinstance(source, Path) else self._parsed(source, labelled):
            for node in tree.nodes:
                if node.label not in LABELS:
                    why, remedy = f"label {node.label!r}", "labels are 0 to 4"
                    own = isinstance(source, Path)
                    raise UserError(f"{why}; {remedy}", source, number) if own else source.fault(number, why, remedy)
            yield tree._replace(words=[self._plain(word) for word in tree.words])

    def _parsed(self, table: Table, labelled: bool) -> Iterator[tuple[int, Tree]]:
        """The trees of a table with their row numbers; from columns `text` and `label`, without phrases."""
        if _is_of_sentences(table, labelled):
            found = labels(self.source.data).of_table(table) if labelled else repeat(LABELS[0])
            for row, (label, text) in enumerate(zip(found, table.texts("text"), strict=False)):
                words = self._tokenized(text)
                if not words or label == NO_GOLD:
                    raise table.fault(row, "label is empty" if words else "text has no words")
                yield row, Tree(words, [Node(label, 0, len(words))])
            return
        if TREE not in table.rows.column_names:
            raise table.unfit(f"has no column {TREE}" + (", and not both text and label" if table.path else ""))
        for row, text in enumerate(table.texts(TREE)):
            try:
                yield row, Tree.parse(text)
            except TreeError as error:
                raise table.fault(row, f"{TREE} is not a tree ({error})") from None

    def _tokenized(self, text: str) -> list[str]:
        """The words as in the treebank, perhaps with its escapes."""
        return tokenize(" ".join(map(self._plain, text.split())))

    def _plain(self, word: str) -> str:
        return unescaped(word) if self.unescape else word

    def collate(self, rows: Sequence[Row]) -> Batch:
        """Text field "tokens"; label "label" (B,) int64 if all rows have one."""
        text = self.text([row["tokens"] for row in rows])
        return Batch(list(rows), {"tokens": text}, self.gold(rows, "label"))

    def from_text(self, /, **raw: Any) -> Row:
        """A row from {"tokens": [...]} or {"text": "..."}; text is tokenized as in the treebank."""
        if isinstance(raw.get(TREE), str) and not {"tokens", "text"} & raw.keys():
            try:
                raw = {"tokens": Tree.parse(raw[TREE], limits.NESTING).words}
            except TreeError as error:
                raise UserError(f"{TREE} is not a tree ({error})") from None
        tokens = tokens_of(raw)
        if tokens is None:
            tokens = self._tokenized(raw["text"])
        return {"tokens": [self._plain(token) for token in tokens]}

    def from_file(self, path: str) -> list[Row]:
        """A row without a label for each sentence of a file, of trees or a table."""
        opened = self.source.open(path)
        return with_inputs([{"tokens": tree.words} for tree in self._trees(opened, labelled=False)], opened)

    def official(self, predictions: Sequence[int], rows: Sequence[Row]) -> str:
        """One label per line."""
        return "".join(f"{label}\n" for label in predictions)


def tokenize(text: str) -> list[str]:
    """The words of a text; words joined by a hyphen or a slash stay one word, as in the treebank."""
    return compounds(words(text), joints=("-", "/"), clitics=True)


def _is_of_sentences(table: Table | Path, labelled: bool = True) -> bool:
    """Whether it is a file of sentences without trees, with labels if `labelled`."""
    if isinstance(table, Path) or table.path is None:
        return False
    return {"text", *["label"] * labelled} <= {*table.rows.column_names}


def _row(tree: Tree, index: int) -> Row:
    node = tree.nodes[index]
    return {"tokens": tree.words[node.start : node.end], "label": int(node.label)}
