"""Makes the files of a mini data set: data for all six tasks and plain text, in the formats of the real data sets.

lm/{train,dev,test}.txt         plain text, one tokenized sentence per line
lm/senses.tsv                   split, sentence and token (from 0), lemma, sense
ner/{train,dev,test}.iob2       word, IOB2 tag
srl/{train,dev,test}.conll      CoNLL-2012 columns with propositions
coref/{train,dev,test}.conll    CoNLL-2012 columns with clusters, each of two or more mentions
snli/{train,dev,test}.tsv       gold_label, sentence1, sentence2
squad/{train,dev,test}-v1.1.json  SQuAD v1.1; dev and test with three answers each
sst/{train,dev,test}.txt        trees with labels 0-4
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

from elmo_bench.mini.formats import FORMATS
from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.world import World
from elmo_bench.mini.paths import PATHS, SPLITS
from elmo_bench.mini.text import PlainText
from elmo_bench.system.errors import UserError

VERSION = 5  # of the generator; raised whenever the same seed gives different bytes


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
        known = sorted(field.name for field in fields(cls))
        values: dict[str, Any] = {}
        for key, value in (given or {}).items():
            if key not in known:
                raise UserError(f"sizes.{key}: there is no such size; choose from {', '.join(known)}")
            least = {"names": 200, "invented": 2}.get(key)
            numbers = [value] if least else list(value) if isinstance(value, Iterable) else []
            if len(numbers) != (1 if least else 3) or any(type(n) is not int or n < (least or 1) for n in numbers):
                form = f"a whole number, at least {least}" if least else "three positive numbers: train, dev, test"
                raise UserError(f"sizes.{key}={value}: must be {form}")
            values[key] = value if least else tuple(numbers)
        return cls(**values)


class Builder:
    """Generates the files of a seed, one by one.

    Args:
        seed: any whole number.
        sizes: how much to generate.
    """

    def __init__(self, seed: int, sizes: Sizes):
        self.seed, self.sizes = seed, sizes
        self.world = World(seed, sizes.names, sizes.invented)
        self._held_out: set[str] = set()  # sentences of labelled dev and test sets

    def files(self, tasks: Iterable[str] = tuple(FORMATS), text: bool = True) -> Iterator[tuple[str, str]]:
        """(path in the folder, text) of every file of the tasks and, with `text`, of the plain text. It comes last, and
        without the sentences of dev and test of any task, so that it is the same whatever `tasks` are.
        """
        for task in FORMATS:
            if task in tasks:
                yield from self._labelled(task, SPLITS)
            elif text:
                for _ in self._labelled(task, SPLITS[1:]):
                    pass
        if text:
            yield from self._text()

    def _labelled(self, task: str, splits: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """The file of each split; no two splits share a sentence. Test is drawn first, train last."""
        made, sizes = FORMATS[task], getattr(self.sizes, task)
        taken: set[str] = set()
        for split in reversed(splits):
            source = made.source(Chance(self.seed, task, split), self.world)
            items: list[Any] = []
            mine: set[str] = set()
            while len(items) < sizes[SPLITS.index(split)]:
                item = source.draw(len(items) % made.labels) if made.labels else source.draw()
                sentences = [told.text for told in made.told(item)]
                if taken.isdisjoint(sentences):
                    mine.update(sentences)
                    items.append(item)
            taken |= mine
            if split != "train":
                self._held_out |= mine
            if made.labels:
                items = Chance(self.seed, f"{task} order", split).shuffled(items)
            yield PATHS[task].format(split), made.text(split, items)

    def _text(self) -> Iterator[tuple[str, str]]:
        avoided = set(self._held_out)
        senses = ["split\tsentence\ttoken\tword\tsense"]
        for split, tokens in reversed(list(zip(SPLITS, self.sizes.lm, strict=True))):
            lines: list[str] = []
            for text, said, words in PlainText(Chance(self.seed, "lm", split), self.world).lines():
                if avoided.isdisjoint((text, said)):
                    senses += [f"{split}\t{len(lines)}\t{i}\t{key.partition('%')[0]}\t{key}" for i, key in words]
                    lines.append(text)
                    tokens -= len(text.split())
                    if tokens <= 0:
                        break
            if split != "train":
                avoided.update(lines)
            yield f"lm/{split}.txt", "\n".join(lines) + "\n"
        yield "lm/senses.tsv", "\n".join(senses) + "\n"
