"""Makes the open data of SNLI (tab-separated: label, premise, hypothesis) from the public sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import open_text

HEADER = ("gold_label", "sentence1", "sentence2")
LABELS = {"1": "neutral", "2": "contradiction", "3": "entailment"}  # the numbers in the subset
Pair = tuple[str, str, str]  # label, premise, hypothesis


def subset(sources: Mapping[str, Path]) -> dict[str, str]:
    """All of dev and test, and 20 thousand of the training pairs.

    Left out of train: pairs whose premise is in dev or test, and repeated pairs.

    Args:
        sources: `splits` (e-SNLI's repository) and `subset`, folders.

    Returns:
        the text of each file below data_root, by its name.
    """
    folder = sources["splits"] / "dataset/eSNLI"  # one file of labels and two files of sentences, one per line
    held = {
        split: list(zip(*(_lines(folder / f"{name}.{split}") for name in ("labels", "s1", "s2")), strict=True))
        for split in ("dev", "test")
    }
    premises = {_letters(premise) for pairs in held.values() for _, premise, _ in pairs}
    rows = [row for name in ("train", "test") for row in _numbered(sources["subset"] / "data/snli" / f"{name}.csv")]
    train = dict.fromkeys(row for row in rows if _letters(row[1]) not in premises)
    return {
        f"snli/{split}.tsv": "".join("\t".join(row) + "\n" for row in [HEADER, *pairs])
        for split, pairs in {"train": train, **held}.items()
    }


def _numbered(path: Path) -> Iterator[Pair]:
    """The pairs of a file with two labels as numbers, which agree, and two sentences."""
    for number, line in enumerate(_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 4 or columns[0] not in LABELS:
            raise UserError("expected a label from 1 to 3 twice and two sentences, separated by tabs", path, number)
        premise, hypothesis = (" ".join(text.split()) for text in columns[2:])
        yield LABELS[columns[0]], premise, hypothesis


def _lines(path: Path) -> list[str]:
    with open_text(path) as lines:
        return [line.strip() for line in lines]


def _letters(text: str) -> str:
    """The letters and digits of a sentence, which are independent of its tokenization."""
    return "".join(char for char in text.lower() if char.isalnum())
