"""Makes the files of the open data of NER (word, tab, IOB2 tag) of the public sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from elmo_bench.system.storage.files import open_text
from elmo_bench.text.columns import read_blocks
from elmo_bench.text.documents import ENDING, in_comments

SENTENCE = "# sent_id = "


def uner(sources: Mapping[str, Path]) -> dict[str, str]:
    """Universal NER over EWT: PER, LOC, ORG.

    The final training file is larger than a hosted repository shows of it, so that train is its first version, with the
    two changes that the authors made later: class OTH is dropped, and the tag B-O, which stands at the last token of a
    document's first sentence by mistake, is replaced. Beside dev and test stands the document of each sentence.

    Args:
        sources: `final` and `first`, the folders of the two versions of the repository.

    Returns:
        the text of each file below data_root, by its name.
    """
    paths = {split: sources["final"] / f"en_ewt-ud-{split}.iob2" for split in ("dev", "test")}
    made = {f"ner_uner_ewt/{split}.iob2": _columns(_uner_rows(path)) for split, path in paths.items()}
    made |= {f"ner_uner_ewt/{split}.iob2{ENDING}": _documents(path) for split, path in paths.items()}
    first = _uner_rows(sources["first"] / "en_ewt-ud-train.iob2")
    return {**made, "ner_uner_ewt/train.iob2": _columns(_repaired(first))}


def resplit(sources: Mapping[str, Path]) -> dict[str, str]:
    """The same sentences with more documents in test, as intervals are over documents.

    Dev is every tenth document of UNER's train, in the order of the file; test is UNER's dev and test together.

    Args:
        sources: `made`, the data folder with `ner_uner_ewt` and, for the documents, `ud_ewt`.

    Returns:
        the text of each file below data_root, by its name.
    """
    split = {name: list(_with_documents(sources["made"], name)) for name in ("train", "dev", "test")}
    numbers = {name: number for number, name in enumerate(dict.fromkeys(name for _, name in split["train"]))}
    parts: dict[str, list[tuple[str, str]]] = {"train": [], "dev": [], "test": split["dev"] + split["test"]}
    for sentence, name in split["train"]:
        parts["dev" if numbers[name] % 10 == 9 else "train"].append((sentence, name))
    names = {part: f"ner_uner_resplit/resplit-{part}.iob2" for part in parts}
    made = {names[part]: "".join(sentence for sentence, _ in both) for part, both in parts.items()}
    return made | {
        f"{names[part]}{ENDING}": "".join(f"{name}\n" for _, name in parts[part]) for part in ("dev", "test")
    }


Row = tuple[str, str] | None  # a word and its tag; None between sentences


def _uner_rows(path: Path) -> Iterator[Row]:
    """Words and tags: the second and third of five columns."""
    with open_text(path) as lines:
        for line in lines:
            columns = line.rstrip("\n").split("\t")
            if columns == [""]:
                yield None
            elif re.fullmatch(r"\d+", columns[0]):
                yield columns[1], columns[2]


def _with_documents(folder: Path, split: str) -> Iterator[tuple[str, str]]:
    """The lines of each sentence, and its document as the treebank of the same sentences names it."""
    (treebank,) = folder.glob(f"ud_ewt/en_ewt-ud-{split}.conllu*")
    ours = read_blocks(folder / f"ner_uner_ewt/{split}.iob2")
    for block, (_, name) in zip(ours, in_comments(read_blocks(treebank, comment="#")), strict=True):
        yield _columns((word, tag) for word, tag in block.rows), str(name)


def _documents(path: Path) -> str:
    """The document of each sentence, a line each: `# sent_id = NAME-0001` without the number."""
    with open_text(path) as lines:
        ids = [line.rstrip("\n").removeprefix(SENTENCE) for line in lines if line.startswith(SENTENCE)]
    return "".join(f"{name.rpartition('-')[0]}\n" for name in ids)


def _repaired(rows: Iterable[Row]) -> Iterator[Row]:
    before = "O"
    for row in rows:
        if row is None:
            before = "O"
            yield None
            continue
        word, tag = row
        if tag == "B-O":  # an entity before it goes on, unless this is a mark
            tag = f"I-{before[2:]}" if before != "O" and any(map(str.isalnum, word)) else "O"
        before = "O" if tag.endswith("-OTH") else tag
        yield word, before


def _columns(rows: Iterable[Row]) -> str:
    """A row a line, one empty line after each sentence."""
    lines: list[str] = []
    for row in [*rows, None]:
        if row is not None:
            lines.append("\t".join(row))
        elif lines and lines[-1]:
            lines.append("")
    return "\n".join(lines) + "\n"
