"""Reads pairs of sentences from SNLI's files (TSV or the release's JSON lines) or the hub (`stanfordnlp/snli`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elmo_bench.system.errors import UserError, notice
from elmo_bench.task import Batch, Row
from elmo_bench.text.batching import TextReader
from elmo_bench.text.labels import NO_GOLD
from elmo_bench.text.part import WHOLE, Part
from elmo_bench.text.source import DataSource, tables
from elmo_bench.text.tokenizer import compounds, words
from elmo_bench.text.vocabulary import Vocabulary

from .pairs import LABELS, Pair, is_release, labels, read

if TYPE_CHECKING:
    from datasets import DatasetDict


@dataclass(eq=False)
class SnliReader(TextReader):
    """A row is {"premise": [str], "hypothesis": [str], "label": str}.

    All texts, whatever their split or source, are tokenized in the same way: see `tokenize`.
    Pairs without a gold label ("-") are always left out, pairs with an empty sentence in training only; `load` prints
    their numbers.

    Vocabularies: "words" that occur at least `min_count` times in the training split; "labels", the three labels.

    Args:
        data: the files {train, dev, test}, below {folder} if given, `.jsonl` or TSV with a header, plain, `.gz` or
            `.xz`, or tables of premise, hypothesis and label; or without a folder {hub, revision}.
        lower: look words up in lower case.
        min_count: minimum count of a word in the vocabulary; rarer words become the unknown word.
        apart: also split the data set's texts at apostrophes and accents inside words, as in all runs so far; see
            `tokenizer.words`. Never applies to `predict`.
    """

    fields, keys = ("premise", "hypothesis"), ("labels",)
    json_keys = frozenset({"sentence1", "sentence2"})

    data: Mapping[str, Any]
    lower: bool = False
    min_count: int = 1
    apart: bool = True

    def __post_init__(self):
        self.source = DataSource(self.data, native=is_release, keys=self.keys)

    def load(self, part: Part = WHOLE) -> DatasetDict:
        """Reads all splits and makes the vocabularies.

        A part of the training data is drawn from its pairs, each of which has a label.
        """
        known = labels(self.source.data)
        splits = {split: self._rows(read(opened, known), split) for split, opened in self.source.load().items()}
        splits["train"] = part.of(splits["train"], "pairs")
        train_words = (word for row in splits["train"] for field in self.fields for word in row[field])
        self.vocabularies = {
            "words": Vocabulary.count(train_words, self.min_count, self.lower),
            "labels": Vocabulary(LABELS, special=False),
        }
        return tables(splits)

    def _rows(self, pairs: Iterator[Pair], split: str) -> list[Row]:
        rows, unlabelled, empty = [], 0, 0
        for pair in pairs:
            if pair.label == NO_GOLD:
                unlabelled += 1
                continue
            row = self._row(pair) | {"label": pair.label}
            if row["premise"] and row["hypothesis"]:
                rows.append(row)
            elif split == "train":
                empty += 1
            else:
                raise pair.fault("a sentence of the pair is empty; correct the file")
        if unlabelled or empty:
            notice(f"snli {split}: left out {unlabelled} pairs without a gold label, {empty} with an empty sentence")
        if not rows:
            raise UserError(f"no labelled pair for {split}", None if self.source.from_hub else self.source.path(split))
        return rows

    def collate(self, rows: Sequence[Row]) -> Batch:
        """Text fields "premise" and "hypothesis"; "label" (B,) int64 if all rows have one."""
        texts = {field: self.text([row[field] for row in rows]) for field in self.fields}
        return Batch(list(rows), texts, self.gold(rows, "label", self.vocabularies["labels"].__getitem__))

    def from_text(self, /, **raw: Any) -> Row:
        """A row from {"premise": "...", "hypothesis": "..."}, both raw text."""
        for field in self.fields:
            if not isinstance(raw.get(field), str):
                raise UserError('expected {"premise": "a sentence", "hypothesis": "a sentence"}')
        row = {field: tokenize(raw[field]) for field in self.fields}
        if not all(row.values()):
            raise UserError("a sentence of the pair has no words")
        return row

    def from_file(self, path: str) -> list[Row]:
        """A row without a label for each pair of a file, with or without a gold label."""
        rows = []
        for pair in read(self.source.open(path), labels(self.source.data), labelled=False):
            rows.append(self._row(pair) | {"input": pair.input})
            if not all(rows[-1][field] for field in self.fields):
                raise pair.fault("a sentence of the pair is empty; correct the file")
        return rows

    def _row(self, pair: Pair) -> Row:
        return {"premise": tokenize(pair.premise, self.apart), "hypothesis": tokenize(pair.hypothesis, self.apart)}

    def official(self, predictions: Sequence[str], rows: Sequence[Row]) -> str:
        """One label per line."""
        return "".join(f"{label}\n" for label in predictions)


# Words.


def tokenize(text: str, apart: bool = False) -> list[str]:
    """The words of a sentence; raw text and tokenized text give the same words. For `apart` see `tokenizer.words`.

    As `elmo_bench.text.tokenizer`, but hyphenated compounds stay whole and all double quotes become `"`, as in SNLI's
    tokenized distributions (Penn Treebank style) and in the text that the open biLM was trained on.
    """
    cut = compounds(words(text, apart), joints=("-",), clitics=False)
    return ['"' if word in ("''", "``") else word for word in cut]
