"""Makes the open data of NER (word, tab, IOB2 tag) from the public sources."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from elmo_bench.system.storage.files import open_text
from elmo_bench.text.columns import DOCUMENTS, in_comments, read_blocks

SENTENCE = "# sent_id = "
Row = tuple[str, str]  # a word and its tag


def uner(sources: Mapping[str, Path]) -> dict[str, str]:
    """Universal NER over EWT: PER, LOC, ORG.

    The hosted repository has only a part of the final training file, so train is its first version, with the two
    changes that the authors made later: class OTH is dropped, and the tag B-O, which marks the last token of a
    document's first sentence by mistake, is replaced. Files beside dev and test name the document of each sentence.

    Args:
        sources: `final` and `first`, the folders of the two versions of the repository.

    Returns:
        the text of each file below data_root, by its name.
    """
    texts = {}
    for split in ("dev", "test"):
        sentences = list(_sentences(sources["final"] / f"en_ewt-ud-{split}.iob2"))
        texts[f"ner_uner_ewt/{split}.iob2"] = "".join(_columns(rows) for _, rows in sentences)
        texts[f"ner_uner_ewt/{split}.iob2{DOCUMENTS}"] = "".join(f"{name}\n" for name, _ in sentences)
    first = _sentences(sources["first"] / "en_ewt-ud-train.iob2")
    return texts | {"ner_uner_ewt/train.iob2": "".join(_columns(_repaired(rows)) for _, rows in first)}


def resplit(sources: Mapping[str, Path]) -> dict[str, str]:
    """The same sentences with more documents in test, because intervals are over documents.

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
    texts = {}
    for part, sentences in parts.items():
        path = f"ner_uner_resplit/resplit-{part}.iob2"
        texts[path] = "".join(sentence for sentence, _ in sentences)
        if part != "train":
            texts[f"{path}{DOCUMENTS}"] = "".join(f"{name}\n" for _, name in sentences)
    return texts


def _sentences(path: Path) -> Iterator[tuple[str, list[Row]]]:
    """Document, and words and tags (the second and third of five columns) of each sentence.

    The document is in `# sent_id = NAME-0001`, without the number.
    """
    name, rows = "", []
    with open_text(path) as lines:
        for line in (*lines, ""):
            columns = line.rstrip("\n").split("\t")
            if line.startswith(SENTENCE):
                name = line.rstrip("\n").removeprefix(SENTENCE).rpartition("-")[0]
            elif columns[0].isdecimal():
                rows.append((columns[1], columns[2]))
            elif columns == [""] and rows:
                yield name, rows
                rows = []


def _with_documents(folder: Path, split: str) -> Iterator[tuple[str, str]]:
    """The lines of each sentence, and its document's name in the treebank of the same sentences."""
    (treebank,) = folder.glob(f"ud_ewt/en_ewt-ud-{split}.conllu*")
    ours = read_blocks(folder / f"ner_uner_ewt/{split}.iob2")
    for block, (_, name) in zip(ours, in_comments(read_blocks(treebank, comment="#")), strict=True):
        yield _columns((word, tag) for word, tag in block.rows), str(name)


def _repaired(rows: Iterable[Row]) -> Iterator[Row]:
    before = "O"
    for word, tag in rows:
        if tag == "B-O":  # an entity before it continues, unless this is punctuation
            tag = f"I-{before[2:]}" if before != "O" and any(map(str.isalnum, word)) else "O"
        before = "O" if tag.endswith("-OTH") else tag
        yield word, before


def _columns(rows: Iterable[Row]) -> str:
    """One row per line, and an empty line after them."""
    return "".join(f"{word}\t{tag}\n" for word, tag in rows) + "\n"
