"""Makes the open data of coreference (CoNLL-2012 columns) from LitBank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import open_text
from elmo_bench.text.brackets import BracketError, mentions, write_mentions
from elmo_bench.text.conll2012 import END, NUMBER, POS, SPEAKER, WORD, begin, write_sentence

SUFFIX = "_brat.conll"
COLUMNS = 13  # the last, coreference, is empty at a word outside all mentions
SPLITS = {8: "dev", 9: "test"}  # by the last digit of a novel's place, from 0; the others are train


def litbank(sources: Mapping[str, Path]) -> dict[str, str]:
    """The hundred novels; of every ten in the order of file names, the ninth is dev and the tenth test.

    Args:
        sources: `litbank`, the folder of the repository.

    Returns:
        the text of each file below data_root, by its name.
    """
    texts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for place, path in enumerate(sorted((sources["litbank"] / "coref/conll").glob(f"*{SUFFIX}"))):
        texts[SPLITS.get(place % 10, "train")].extend(_document(path))
    return {f"coref_litbank/{split}.conll{'.xz' * (split == 'train')}": "".join(text) for split, text in texts.items()}


def _document(path: Path) -> Iterator[str]:
    name = path.name.removesuffix(SUFFIX)
    yield begin(name, "000")
    with open_text(path) as lines:
        rows = [(number, line.rstrip("\n").split("\t")) for number, line in enumerate(lines, start=1) if line[0] != "#"]
    for full, sentence in groupby(rows, key=lambda row: row[1] != [""]):
        if full:
            yield _sentence(name, list(sentence), path)
    yield END


def _sentence(name: str, rows: Sequence[tuple[int, list[str]]], path: Path) -> str:
    """Rows of twelve columns: no part of speech, parse or predicate, but the speaker and the coreference."""
    for number, row in rows:
        if len(row) != COLUMNS:
            raise UserError(f"expected {COLUMNS} columns and found {len(row)}", path, number)
    try:
        spans = mentions([row[-1] or "-" for _, row in rows])
    except BracketError as error:
        raise UserError(str(error), path, rows[error.index][0]) from None
    cells = [row for _, row in rows]
    columns = {number: [row[number] for row in cells] for number in (NUMBER, WORD)}
    speakers = [row[SPEAKER].replace("_", "-") for row in cells]
    known = {POS: ["XX"] * len(rows), SPEAKER: speakers, -1: write_mentions(spans, len(rows))}
    return write_sentence(name, cells[0][1], columns | known)
