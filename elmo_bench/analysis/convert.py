"""Makes the open data of the studies.

Word senses (word, part of speech, lemma, sense key, number) of SemCor 3.0; parts of speech of UD English-EWT (CoNLL-U),
as in its repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path

from elmo_bench.system.storage.files import read_text

SPLITS = {8: "dev", 9: "test"}  # by the last digit of a document's index, from 0; the others are train
ELEMENT = re.compile(r"<(wf|punc)([^>]*)>(.*)</\1>")
ATTRIBUTE = re.compile(r"(\w+)=(\S+)")


def semcor(sources: Mapping[str, Path]) -> dict[str, str]:
    """Of every ten documents with all senses, in the order of their names, the ninth is dev and the tenth test.

    Documents with senses of verbs only are all in train.

    Args:
        sources: `semcor`, the folder of the repository.

    Returns:
        the text of each file below data_root, by its name.
    """
    root = sources["semcor"] / "data/semcor3.0"
    full = sorted([*root.glob("brown1/tagfiles/*"), *root.glob("brown2/tagfiles/*")])
    texts: dict[str, list[str]] = {"train": [], "dev": [], "test": []}
    for place, path in enumerate(full):
        texts[SPLITS.get(place % 10, "train")].extend(_document(path))
    for path in sorted(root.glob("brownv/tagfiles/*")):
        texts["train"].extend(_document(path))
    return {f"wsd_semcor/{split}.tsv{'.xz' * (split == 'train')}": "".join(text) for split, text in texts.items()}


def _document(path: Path) -> Iterator[str]:
    yield f"# doc = {path.parent.parent.name}/{path.name}\n"
    for sentence in read_text(path).split("</s>")[:-1]:
        yield from ("\t".join(row) + "\n" for element in ELEMENT.finditer(sentence) for row in _rows(element))
        yield "\n"


def _rows(element: re.Match[str]) -> Iterator[list[str]]:
    """A row for each word of an expression; rows after the first have "=" for the expression's columns."""
    name, attributes, text = element.groups()
    given = dict(ATTRIBUTE.findall(attributes))
    lemma, number = given.get("lemma", "-"), given.get("wnsn", "0")
    known = all(int(part) > 0 for part in number.split(";"))  # 0: a sense that WordNet no longer has
    keys = ";".join(f"{lemma}%{place}" for place in given.get("lexsn", "").split(";"))
    annotation = [lemma, keys, number] if known else [lemma, "-", "-"]
    for word in filter(None, unescape(text).split("_")):
        yield [word, "PUNCT" if name == "punc" else given["pos"], *annotation]
        annotation = ["=", "=", "="]


def ewt(sources: Mapping[str, Path]) -> dict[str, str]:
    """The official splits. Train, too large a file for some copies of the repository, is joined from its documents.

    Args:
        sources: `ud`, the folder of the repository.

    Returns:
        the text of each file below data_root, by its name.
    """
    parts = sources["ud"] / "not-to-release"
    train = "".join(read_text(parts / "sources" / name) for name in read_text(parts / "file-lists/files.train").split())
    held = [f"en_ewt-ud-{split}.conllu" for split in ("dev", "test")]
    return {"ud_ewt/en_ewt-ud-train.conllu.xz": train} | {
        f"ud_ewt/{name}": read_text(sources["ud"] / name) for name in held
    }
