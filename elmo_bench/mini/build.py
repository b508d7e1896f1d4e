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

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from elmo_bench.mini import columns
from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.phrases import Sentence, sentence
from elmo_bench.mini.opinions import Tree
from elmo_bench.mini.passages import Passage, detokenized
from elmo_bench.mini.scenes import LABELS, Pair
from elmo_bench.mini.stories import Document
from elmo_bench.mini.text import PlainText, Setting
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text

VERSION = 4  # of the generator; raised whenever the same seed gives different bytes
SPLITS = ("train", "dev", "test")
Progress = Callable[[str, int], None]  # (what is being written, how many units are done)


class Format(NamedTuple):
    """The files of a task.

    Attributes:
        path: of the file of a split.
        source: from a setting and a stream of draws, a function that draws item number i of a split.
        sentences: of an item, as texts.
        text: of a file, from a split, its items and a stream of draws.
    """

    path: str
    source: Callable[[Setting, Chance], Callable[[int, str], Any]]
    sentences: Callable[[Any], Iterable[str]]
    text: Callable[[str, list[Any], Chance], str]


def _news(setting: Setting, chance: Chance) -> Callable[[int, str], Sentence]:
    news = setting.news(chance)
    return lambda i, split: sentence(news.draw())


def _stories(setting: Setting, chance: Chance) -> Callable[[int, str], Document]:
    stories = setting.stories(chance)
    return lambda i, split: stories.document(f"mini/{split}_{i:04}")


def _pairs(setting: Setting, chance: Chance) -> Callable[[int, str], Pair]:
    scenes = setting.scenes(chance)
    return lambda i, split: scenes.pair(LABELS[i % len(LABELS)])


def _passages(setting: Setting, chance: Chance) -> Callable[[int, str], Passage]:
    passages = setting.passages(chance)
    return lambda i, split: passages.passage()


def _reviews(setting: Setting, chance: Chance) -> Callable[[int, str], Tree]:
    reviews = setting.reviews(chance)

    def draw(i: int, split: str) -> Tree:
        while (tree := reviews.review()).label != i % 5:  # equally many of each label
            pass
        return tree

    return draw


def _srl(split: str, items: list[Sentence], chance: Chance) -> str:
    documents = [items[i : i + 20] for i in range(0, len(items), 20)]
    return "".join(columns.srl(f"mini/{split}_{i:04}", part) for i, part in enumerate(documents))


def _snli(split: str, items: list[Pair], chance: Chance) -> str:
    rows = [f"{pair.label}\t{pair.premise.text}\t{pair.hypothesis.text}" for pair in items]
    return "\n".join(["gold_label\tsentence1\tsentence2", *chance.shuffled(rows)]) + "\n"


def _squad(split: str, items: list[Passage], chance: Chance) -> str:
    answers = 1 if split == "train" else 3
    articles = [_article(passage, f"{split}-{i}", answers) for i, passage in enumerate(items)]
    return json_text.dumps({"version": "1.1", "data": articles}, ensure_ascii=False) + "\n"


def _article(passage: Passage, key: str, answers: int) -> dict[str, Any]:
    """An article with one paragraph; if a question has too few answers, they are repeated from the first on."""
    qas = []
    for i, question in enumerate(passage.questions):
        given = [question.answers[j % len(question.answers)] for j in range(answers)]
        qas.append(
            {
                "id": hashlib.md5(f"{key}-{i}".encode()).hexdigest()[:24],
                "question": detokenized([question.question])[0],
                "answers": [{"answer_start": answer.start, "text": answer.text} for answer in given],
            }
        )
    return {"title": passage.title, "paragraphs": [{"context": passage.context, "qas": qas}]}


FORMATS = {
    "ner": Format("ner/{}.iob2", _news, lambda told: [told.text], lambda split, items, _: columns.iob2(items)),
    "srl": Format("srl/{}.conll", _news, lambda told: [told.text], _srl),
    "coref": Format(
        "coref/{}.conll",
        _stories,
        lambda document: (told.text for told in document.sentences),
        lambda split, items, _: "".join(map(columns.coref, items)),
    ),
    "snli": Format("snli/{}.tsv", _pairs, lambda pair: [pair.premise.text, pair.hypothesis.text], _snli),
    "squad": Format(
        "squad/{}-v1.1.json",
        _passages,
        lambda passage: (told.text for told in passage.told()),
        _squad,
    ),
    "sst": Format(
        "sst/{}.txt",
        _reviews,
        lambda tree: [" ".join(tree.words())],
        lambda split, trees, chance: "\n".join(map(str, chance.shuffled(trees))) + "\n",
    ),
}


@dataclass(frozen=True)
class Sizes:
    """How much to generate, as (train, dev, test), and how rich the world is."""

    lm: tuple[int, int, int] = (700_000, 10_000, 40_000)  # tokens
    ner: tuple[int, int, int] = (400, 300, 1000)  # sentences
    srl: tuple[int, int, int] = (600, 200, 600)  # sentences
    coref: tuple[int, int, int] = (100, 40, 100)  # documents
    snli: tuple[int, int, int] = (2000, 400, 1200)  # pairs
    squad: tuple[int, int, int] = (3000, 150, 400)  # paragraphs of about two questions
    sst: tuple[int, int, int] = (400, 300, 1000)  # sentences
    names: int = 8000  # different names
    invented: int = 12  # invented words per group of nouns and per frame of verbs

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> Sizes:
        """The defaults with the given changes.

        Raises:
            UserError: an unknown name, or a value that is not a number or is too small.
        """
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {}
        for key, value in (given or {}).items():
            if key not in known:
                raise UserError(f"sizes.{key}: there is no such size; choose from {', '.join(sorted(known))}")
            single = key in ("names", "invented")
            numbers = [value] if single else list(value) if isinstance(value, Iterable) else []
            least = {"names": 200, "invented": 2}.get(key, 1)
            if len(numbers) != (1 if single else 3) or any(type(n) is not int or n < least for n in numbers):
                form = f"a whole number, at least {least}" if single else "three positive numbers: train, dev, test"
                raise UserError(f"sizes.{key}={value}: must be {form}")
            values[str(key)] = value if single else tuple(numbers)
        return cls(**values)

    @property
    def total(self) -> int:
        """Units of progress: one per labelled example and per hundred tokens of plain text."""
        return sum(sum(getattr(self, task)) for task in FORMATS) + sum(self.lm) // 100


class Builder:
    """Generates the files of a seed, one by one.

    Args:
        seed: any whole number.
        sizes: how much to generate.
        progress: called from time to time.
    """

    def __init__(self, seed: int, sizes: Sizes, progress: Progress | None = None):
        self.seed, self.sizes = seed, sizes
        self._progress = progress or (lambda what, done: None)
        self._done = 0
        self.setting = Setting.of(seed, sizes.names, sizes.invented)
        self._held_out: set[str] = set()  # sentences of labelled dev and test sets

    def files(self, tasks: Iterable[str] = tuple(FORMATS), text: bool = True) -> Iterator[tuple[str, str]]:
        """(path in the folder, text) of every file of the tasks and, with `text`, of the plain text. It comes last, and
        without the sentences of dev and test of any task, so that it is the same whatever `tasks` are.
        """
        for task, made in FORMATS.items():
            if task in tasks:
                for split, items in self._collected(task, SPLITS):
                    yield made.path.format(split), made.text(split, items, Chance(self.seed, f"{task} order", split))
            elif text:
                for _ in self._collected(task, SPLITS[1:]):
                    pass
        if text:
            yield from self._lm()

    def _collected(self, task: str, splits: Iterable[str]) -> Iterator[tuple[str, list[Any]]]:
        """Items of each split; no two splits share a sentence. Test is drawn first, train last."""
        sizes: dict[str, int] = dict(zip(SPLITS, getattr(self.sizes, task), strict=True))
        taken: set[str] = set()
        for split in reversed(list(splits)):
            draw = FORMATS[task].source(self.setting, Chance(self.seed, task, split))
            items: list[Any] = []
            mine: set[str] = set()
            while len(items) < sizes[split]:
                item = draw(len(items), split)
                sentences = list(FORMATS[task].sentences(item))
                if taken.isdisjoint(sentences):
                    mine.update(sentences)
                    items.append(item)
                    self._tell(task, 1)
            taken |= mine
            if split != "train":
                self._held_out |= mine
            yield split, items

    def _tell(self, task: str, units: int) -> None:
        self._done += units
        self._progress(task, self._done)

    def _lm(self) -> Iterator[tuple[str, str]]:
        avoided = set(self._held_out)
        senses: list[str] = []
        for split, tokens in reversed(list(zip(SPLITS, self.sizes.lm, strict=True))):
            lines: list[str] = []
            for line in PlainText(Chance(self.seed, "lm", split), self.setting).lines():
                text = " ".join(line.words)
                if text in avoided or line.said in avoided:
                    continue
                senses += [f"{split}\t{len(lines)}\t{i}\t{key.split('%')[0]}\t{key}" for i, key in line.senses]
                lines.append(text)
                tokens -= len(line.words)
                if len(lines) % 100 == 0:  # of about ten tokens each
                    self._tell("lm", 10)
                if tokens <= 0:
                    break
            if split != "train":
                avoided.update(lines)
            yield f"lm/{split}.txt", "\n".join(lines) + "\n"
        yield "lm/senses.tsv", "\n".join(["split\tsentence\ttoken\tword\tsense", *senses]) + "\n"
