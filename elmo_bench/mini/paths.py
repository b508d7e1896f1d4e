"""The files of the generated data, below its folder, and the tables of the language that they are made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from elmo_bench.system.errors import UserError

LANGUAGE = Path(__file__).parent / "language"
# The digests of the tables that come with this version of the generator.
SHIPPED = {"grammar.yaml": "36a04f19c852ea0e", "reviews.yaml": "652bca7be94fcc10", "words.yaml": "e92a103f7c75823b"}

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
def edited_language() -> dict[str, Any]:
    """What an edited language adds to the identity of the data: the digests of its tables, comments aside."""
    digests = {}
    for path in sorted(LANGUAGE.glob("*.yaml")):
        lines = re.sub(r"(?m)(^| +)#.*$", "", path.read_text(encoding="utf-8")).splitlines()
        digests[path.name] = hashlib.sha256("\n".join(filter(str.strip, lines)).encode()).hexdigest()[:16]
    return {} if digests == SHIPPED else {"language": digests}


@contextmanager
def edited_tables_named() -> Iterator[None]:
    """A fault in edited tables, such as a word that is missing, becomes one line that names their files."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        found = edited_language().get("language", SHIPPED)
        edited = sorted(name for name, _ in found.items() ^ SHIPPED.items())
        if not edited:
            raise  # a fault of the generator itself
        reason = f"{type(error).__name__}: {error}"
        raise UserError(
            f"the tables of the language do not fit together ({reason}); correct what was edited",
            LANGUAGE / ", ".join(dict.fromkeys(edited)),
        ) from error
