"""Makes the open data of SRL (CoNLL-2012 columns): PropBank's labels joined with the words of UD."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from elmo_bench.system.storage.files import open_text, read_text
from elmo_bench.text.brackets import spans
from elmo_bench.text.conll2012 import END, FRAME, LEMMA, NUMBER, PARSE, POS, WORD, begin, write_sentence

SPLITS = ("train", "dev", "test")
Rows = list[list[str]]  # a sentence, split into columns
ROLESET, ARGUMENTS = 7, 8  # columns of PropBank; the columns before are as in CoNLL-2012


def propbank(sources: Mapping[str, Path]) -> dict[str, str]:
    """The official splits of PropBank over the English Web Treebank.

    PropBank has `[WORD]` in place of each word. Left out: documents without annotation, sentences with another number
    of words in UD, and sentences whose predicates and columns of arguments do not match.

    Args:
        sources: `propbank` and `ud`, the folders of the repositories.

    Returns:
        the text of each file below data_root, by its name.
    """
    return {
        f"srl_ewt/{split}.conll{'.xz' * (split == 'train')}": "".join(
            text for name in _documents(sources["propbank"], split) for text in _document(name, sources)
        )
        for split in SPLITS
    }


def _documents(folder: Path, split: str) -> Iterator[str]:
    """Names of documents, such as weblog/00/NAME.xml."""
    with open_text(folder / f"docs/evaluation/ewt.{split}.txt") as lines:
        for line in lines:
            name = line.strip().removesuffix(".conllu")
            if (folder / f"data/google/ewt/{name}.gold_skel").is_file():
                yield name


def _document(name: str, sources: Mapping[str, Path]) -> Iterator[str]:
    document = f"google/ewt/{name.removesuffix('.xml')}"
    labelled = _blocks(sources["propbank"] / f"data/google/ewt/{name}.gold_skel", None)
    worded = _blocks(sources["ud"] / f"not-to-release/sources/{name.replace('/00/', '/')}.conllu", "\t")
    yield begin(document, "000")
    for labels, words in zip(labelled, worded, strict=False):  # one document lacks its last sentence in UD
        words = [row[1] for row in words if row[0].isdigit()]
        if len(words) != len(labels):
            continue
        arguments = list(zip(*(row[ARGUMENTS:] for row in labels), strict=True))
        if _consistent(labels, arguments):
            columns = {number: [row[number] for row in labels] for number in (NUMBER, POS, PARSE, LEMMA)}
            frames = [row[ROLESET].rpartition(".")[2] for row in labels]
            yield write_sentence(document, "0", {**columns, WORD: words, FRAME: frames}, arguments)
    yield END


def _blocks(path: Path, separator: str | None) -> Iterator[Rows]:
    """The sentences of a file without its comments."""
    for block in read_text(path).split("\n\n"):
        if rows := [line.split(separator) for line in block.split("\n") if line.strip() and line[0] != "#"]:
            yield rows


def _consistent(labels: Rows, arguments: Sequence[Sequence[str]]) -> bool:
    """Whether the V of the n-th column of arguments covers the n-th predicate."""
    predicates = [place for place, row in enumerate(labels) if row[ROLESET] != "-"]
    verbs = [[span for span in spans(column) if span.type == "V"] for column in arguments]
    return len(predicates) == len(arguments) and all(
        len(found) == 1 and found[0].start <= place < found[0].end
        for place, found in zip(predicates, verbs, strict=True)
    )
