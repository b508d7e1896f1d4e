"""The files of the generated data, below its folder, and the tables of the language that they are made of."""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

LANGUAGE = Path(__file__).parent / "language"
SHIPPED = "277394fee769fb2d"  # the digest of the tables that come with this version of the generator

SPLITS = ("train", "dev", "test")
PATHS = {  # of the file of each split, by task
    "ner": "ner/{}.iob2",
    "srl": "srl/{}.conll",
    "coref": "coref/{}.conll",
    "snli": "snli/{}.tsv",
    "squad": "squad/{}-v1.1.json",
    "sst": "sst/{}.txt",
}
TEXT = (*(f"lm/{split}.txt" for split in SPLITS), "lm/senses.tsv")


@cache
def edited_language() -> dict[str, str]:
    """What an edited language adds to the identity of the data: the digest of its tables, comments aside."""
    tables = "\n".join(path.read_text(encoding="utf-8") for path in sorted(LANGUAGE.glob("*.yaml")))
    lines = re.sub(r"(?m)(^| +)#.*$", "", tables).splitlines()
    digest = hashlib.sha256("\n".join(filter(str.strip, lines)).encode()).hexdigest()[:16]
    return {} if digest == SHIPPED else {"language": digest}
