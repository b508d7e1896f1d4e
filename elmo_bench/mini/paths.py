"""What identifies generated data: the version of the generator, the tables of the language and the sizes; its files."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from elmo_bench.configuration.keys import valid
from elmo_bench.system.errors import UserError

VERSION = 5  # of the generator; raised whenever the same seed gives different bytes
LANGUAGE = Path(__file__).parent / "language"
# The digests of the tables that come with this version of the generator.
SHIPPED = {"grammar.yaml": "cf691868e37d6592", "reviews.yaml": "11947a9d2c6e174d", "words.yaml": "ccace3c661fdacb5"}

SPLITS = ("train", "dev", "test")
ENDINGS = {"ner": ".iob2", "srl": ".conll", "coref": ".conll", "snli": ".tsv", "squad": "-v1.1.json", "sst": ".txt"}
FILES = {task: [f"{task}/{split}{ending}" for split in SPLITS] for task, ending in ENDINGS.items()}
TEXT = (*(f"lm/{split}.txt" for split in SPLITS), "lm/senses.tsv")


LEAST = {"names": 200, "invented": 2}


@dataclass(frozen=True)
class Sizes:
    """How much to generate, as (train, dev, test), and how rich the world is."""

    lm: tuple[int, int, int] = (700_000, 10_000, 40_000)  # tokens
    ner: tuple[int, int, int] = (400, 300, 1000)  # sentences
    srl: tuple[int, int, int] = (600, 200, 600)  # sentences
    coref: tuple[int, int, int] = (100, 40, 100)  # documents
    snli: tuple[int, int, int] = (2000, 400, 1200)  # pairs
    squad: tuple[int, int, int] = (4500, 150, 400)  # paragraphs of about two questions
    sst: tuple[int, int, int] = (400, 300, 1000)  # sentences
    names: int = 8000  # different names
    invented: int = 12  # invented words per group of nouns and per frame of verbs

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Sizes:
        """The defaults with the given changes.

        Raises:
            UserError: an unknown name, or a value that is not a number or is too small.
        """
        values = asdict(cls())
        for key, value in (given or {}).items():
            if key not in values:
                raise UserError(f"sizes.{key}: there is no such size; choose from {', '.join(sorted(values))}")
            single = isinstance(values[key], int)
            numbers: Any = [value] if single else value
            if not isinstance(numbers, Sequence) or len(numbers) != (1 if single else 3):
                raise UserError(f"sizes.{key}={value}: three numbers are needed: of train, dev, test")
            for number in numbers:
                valid(Annotated[int, Field(ge=LEAST.get(key, 1))], number, f"sizes.{key}")
            values[key] = value if single else tuple(value)
        return cls(**values)


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
