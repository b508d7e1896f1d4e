"""Reads pairs of sentences from SNLI's files (TSV or the release's JSON lines) or the hub (`stanfordnlp/snli`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from elmo_bench.metrics.accuracy import NO_GOLD
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import open_text
from elmo_bench.task import Batch, Row
from elmo_bench.text.batching import pad_tokens
from elmo_bench.text.part import WHOLE, Part
from elmo_bench.text.rows import tables
from elmo_bench.text.source import SPLITS, Source
from elmo_bench.text.tokenizer import Word, words
from elmo_bench.text.vocabulary import Vocabulary

from .metric import LABELS

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

COLUMNS = ("gold_label", "sentence1", "sentence2")  # of both file formats, with the release's names


class Pair(NamedTuple):
    """One pair as in its source, and where it comes from."""

    label: str
    premise: str
    hypothesis: str
    path: Path | None = None
    line: int | None = None


class SnliReader:
    """A row is {"premise": [str], "hypothesis": [str], "label": str}.

    All texts, whatever their split or source and also in `predict`, are tokenized in the same way: see `tokenize`.
    Pairs without a gold label ("-") are always left out, pairs with an empty sentence in training only; `left_out`
    counts both for each split, and `load` prints the counts.

    Vocabularies: "words", those of the training split that occur at least `min_count` times; "labels", the three
    labels.

    Args:
        data: the files {train, dev, test}, below {folder} if given, `.jsonl` or TSV with a header, plain, `.gz` or
            `.xz`; or without a folder {hub, revision}.
        lower: look words up in lower case.
        min_count: how often a word must occur to be in the vocabulary; rarer ones are the unknown word.
    """

    fields = ("premise", "hypothesis")

    def __init__(self, data: Mapping[str, Any], lower: bool = False, min_count: int = 1):
        self.source, self.lower, self.min_count = Source(data, native=(".jsonl", ".tsv")), lower, min_count
        self.vocabularies: dict[str, Vocabulary] = {}
        self.left_out: dict[str, int] = {}

    def load(self, part: Part = WHOLE) -> DatasetDict:
        """Reads all splits and makes the vocabularies.

        A part of the training data is drawn from its pairs, each of which has a label.

        Raises:
            UserError: a missing setting or file, a missing column, an unknown label, a line that is not a JSON object,
                an empty sentence in dev or test, a split without pairs; it names file and line.
        """
        if self.source.tabular:
            sources = {split: _hub_pairs(rows, self.source) for split, rows in self.source.load().items()}
        else:
            sources = {split: read_pairs(self.source.path(split)) for split in SPLITS}
        splits = {split: self._rows(pairs, split) for split, pairs in sources.items()}
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
            row = {"premise": tokenize(pair.premise), "hypothesis": tokenize(pair.hypothesis), "label": pair.label}
            if row["premise"] and row["hypothesis"]:
                rows.append(row)
            elif split == "train":
                empty += 1
            else:
                raise UserError("a sentence of the pair is empty; correct the file", pair.path, pair.line)
        self.left_out[split] = unlabelled + empty
        if unlabelled or empty:
            print(f"snli {split}: left out {unlabelled} pairs without a gold label, {empty} with an empty sentence",
                  file=sys.stderr)  # fmt: skip
        if not rows:
            raise UserError(f"no labelled pair for {split}", None if self.source.tabular else self.source.path(split))
        return rows

    def collate(self, rows: Sequence[Row]) -> Batch:
        """Text fields "premise" and "hypothesis"; "label" (B,) int64 if all rows have one."""
        known, labels = self.vocabularies["words"], {}
        texts = {field: pad_tokens([row[field] for row in rows], known, lower=self.lower) for field in self.fields}
        if all(row.get("label") is not None for row in rows):
            labels["label"] = torch.tensor([self.vocabularies["labels"][row["label"]] for row in rows])
        return Batch(list(rows), texts, labels)

    def from_text(self, **raw: Any) -> Row:
        """A row from {"premise": "...", "hypothesis": "..."}, both raw text.

        Raises:
            UserError: a key is missing, or its value is not text or has no words.
        """
        for field in self.fields:
            if not isinstance(raw.get(field), str):
                raise UserError('expected {"premise": "a sentence", "hypothesis": "a sentence"}')
        row = {field: tokenize(raw[field]) for field in self.fields}
        if not all(row.values()):
            raise UserError("a sentence of the pair has no words")
        return row


# Words.


def tokenize(text: str) -> list[str]:
    """The words of a sentence; raw text and tokenized text give the same words.

    As `elmo_bench.text.tokenizer`, but hyphenated compounds stay whole and all double quotes become `"`, as in SNLI's
    tokenized distributions (Penn Treebank style) and in the text that the open biLM was trained on.
    """
    pieces = words(text)
    merged: list[list[str]] = []
    for before, word in zip([None, *pieces], pieces, strict=False):
        if before is not None and before.end == word.start and _joined(before, word, merged[-1], text):
            merged[-1].append(word.form)
        else:
            merged.append(['"' if word.form in ("''", "``") else word.form])
    return ["".join(parts) for parts in merged]


def _joined(before: Word, word: Word, so_far: list[str], text: str) -> bool:
    """Whether a hyphen, or the part after one, continues the compound of `so_far`, whose last word is `before`."""
    if word.form == "-":
        return before.form[-1].isalnum() and so_far[0][0].isalnum() and text[word.end : word.end + 1].isalnum()
    return before.form == "-" and len(so_far) > 1 and word.form[0].isalnum()


# Sources.


def read_pairs(path: Path) -> Iterator[Pair]:
    """The pairs of a file as a stream: JSON lines if its name contains `.jsonl`, else TSV.

    Raises:
        UserError: no such file, not UTF-8, a malformed line (the error names it).
    """
    parse = _parse_json if ".jsonl" in path.suffixes else _tsv_parser()
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            try:
                values = parse(line.rstrip("\r\n"))
                if values is not None:
                    label, premise, hypothesis = values
                    yield Pair(_label(label), premise, hypothesis, path, number)
            except ValueError as error:
                raise UserError(str(error), path, number) from None


def _tsv_parser() -> Callable[[str], Sequence[str] | None]:
    """A parser for the lines of one file, of which the first is the header; columns may be in any order."""
    header: list[str] = []

    def parse(line: str) -> Sequence[str] | None:
        row = line.split("\t")
        if not header:
            if missing := [name for name in COLUMNS if name not in row]:
                raise ValueError(f"the header lacks the column {', '.join(missing)}; expected {', '.join(COLUMNS)}")
            header.extend(row)
            return None
        if len(row) > len(header):
            raise ValueError(f"{len(row)} columns, but the header has {len(header)}; correct the file")
        by_name = dict(zip(header, row, strict=False))
        if missing := [name for name in COLUMNS if name not in by_name]:
            raise ValueError(f"the column {', '.join(missing)} is missing; correct the file")
        return [by_name[name] for name in COLUMNS]

    return parse


def _parse_json(line: str) -> list[str]:
    try:
        pair = json_text.parse(line)
    except ValueError as error:
        raise ValueError(f"{error}; correct the file") from None
    if not isinstance(pair, dict):
        raise ValueError("not a JSON object; correct the file")
    values = [pair.get(name) for name in COLUMNS]
    for name, value in zip(COLUMNS, values, strict=True):
        if not isinstance(value, str):
            raise ValueError(f"{name} is {'missing' if name not in pair else 'not text'}; correct the file")
    return values  # type: ignore[return-value]


def _label(text: str) -> str:
    if text not in (*LABELS, NO_GOLD):
        raise ValueError(f"unknown gold label {text!r}; expected {', '.join(LABELS)}, or {NO_GOLD} for none")
    return text


def _hub_pairs(split: Dataset, source: Source) -> Iterator[Pair]:
    """Of a table. Labels are words, or numbers in the order of LABELS and -1 for none, as on the hub."""
    names = ("label", "premise", "hypothesis")
    if not {*names} <= {*split.column_names}:
        raise source.unfit("lacks premise, hypothesis or label")
    for label, premise, hypothesis in zip(*(split[column] for column in names), strict=True):
        named = dict(enumerate(LABELS)) | {each: each for each in (*LABELS, NO_GOLD)} | {-1: NO_GOLD, None: NO_GOLD}
        if label not in named:
            raise source.unfit(f"has the unknown label {label}")
        yield Pair(named[label], premise, hypothesis)
