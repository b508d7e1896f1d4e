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
from typing import Any

from elmo_bench.mini import columns
from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.phrases import sentence
from elmo_bench.mini.opinions import Opinions
from elmo_bench.mini.passages import Passage, Passages, detokenized
from elmo_bench.mini.plain import PlainText, Setting, news
from elmo_bench.mini.scenes import LABELS, Scenes
from elmo_bench.mini.stories import Stories
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text

VERSION = 3  # of the generator; raised whenever the same seed gives different bytes
SPLITS = ("train", "dev", "test")

Progress = Callable[[str, int], None]  # (what is being written, how many units are done)


@dataclass(frozen=True)
class Sizes:
    """How much to generate, as (train, dev, test), and how rich the world is."""

    lm: tuple[int, int, int] = (700_000, 10_000, 40_000)  # tokens
    ner: tuple[int, int, int] = (300, 400, 600)  # sentences
    srl: tuple[int, int, int] = (1200, 300, 500)  # sentences
    coref: tuple[int, int, int] = (120, 20, 30)  # documents
    snli: tuple[int, int, int] = (1500, 600, 900)  # pairs
    squad: tuple[int, int, int] = (240, 40, 60)  # paragraphs of about five questions
    sst: tuple[int, int, int] = (1200, 300, 600)  # sentences
    names: int = 4000  # different names
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
        labelled = [n for task in (self.ner, self.srl, self.coref, self.snli, self.squad, self.sst) for n in task]
        return sum(labelled) + sum(self.lm) // 100


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

    def files(self) -> Iterator[tuple[str, str]]:
        """(path in the folder, text) of every file. Plain text comes last, without the sentences of dev and test."""
        for task in ("ner", "srl", "coref", "snli", "squad", "sst"):
            yield from getattr(self, f"_{task}")()
        yield from self._lm()

    # Shared by the tasks.

    def _chance(self, task: str, split: str) -> Chance:
        return Chance(self.seed, task, split)

    def _collect(
        self, task: str, draw: Callable[[str], Callable[[int], tuple[Any, list[str]]]]
    ) -> dict[str, list[Any]]:
        """Items of every split; no two splits share a sentence.

        `draw(split)` returns a function that draws item number i and its sentences.
        """
        owner: dict[str, str] = {}
        result: dict[str, list[Any]] = {}
        for split, n in zip(SPLITS, getattr(self.sizes, task), strict=True):
            draw_item = draw(split)
            items: list[Any] = []
            while len(items) < n:
                item, sentences = draw_item(len(items))
                if any(owner.get(text, split) != split for text in sentences):
                    continue
                for text in sentences:
                    owner[text] = split
                items.append(item)
                self._tell(task, 1)
            result[split] = items
        self._held_out.update(text for text, split in owner.items() if split != "train")
        return result

    def _tell(self, task: str, units: int) -> None:
        self._done += units
        self._progress(task, self._done)

    # One method per task.

    def _ner(self) -> Iterator[tuple[str, str]]:
        for split, items in self._collect("ner", lambda split: self._news("ner", split)).items():
            yield f"ner/{split}.iob2", columns.iob2(items)

    def _srl(self) -> Iterator[tuple[str, str]]:
        for split, items in self._collect("srl", lambda split: self._news("srl", split)).items():
            parts = [columns.srl(f"mini/{split}_{i // 20:04}", items[i : i + 20]) for i in range(0, len(items), 20)]
            yield f"srl/{split}.conll", "".join(parts)

    def _news(self, task: str, split: str):
        sentences = news(self._chance(task, split), self.setting)

        def draw(i: int):
            told = sentence(sentences.draw())
            return told, [told.text]

        return draw

    def _coref(self) -> Iterator[tuple[str, str]]:
        def source(split: str):
            stories = Stories(self._chance("coref", split), self.setting.lexicon, self.setting.world)

            def draw(i: int):
                document = stories.document(f"mini/{split}_{i:04}")
                return document, [told.text for told in document.sentences]

            return draw

        for split, documents in self._collect("coref", source).items():
            yield f"coref/{split}.conll", "".join(map(columns.coref, documents))

    def _snli(self) -> Iterator[tuple[str, str]]:
        def source(split: str):
            scenes = Scenes(self._chance("snli", split), self.setting.lexicon)

            def draw(i: int):
                pair = scenes.pair(LABELS[i % len(LABELS)])
                return pair, [pair.premise.text, pair.hypothesis.text]

            return draw

        for split, pairs in self._collect("snli", source).items():
            rows = [f"{pair.label}\t{pair.premise.text}\t{pair.hypothesis.text}" for pair in pairs]
            rows = self._chance("snli order", split).shuffled(rows)
            yield f"snli/{split}.tsv", "\n".join(["gold_label\tsentence1\tsentence2", *rows]) + "\n"

    def _squad(self) -> Iterator[tuple[str, str]]:
        def source(split: str):
            passages = Passages(self._chance("squad", split), self.setting.lexicon, self.setting.world)

            def draw(i: int):
                passage = passages.passage()
                told = [*passage.sentences, *(question.question for question in passage.questions)]
                return passage, [one.text for one in told]

            return draw

        for split, passages in self._collect("squad", source).items():
            answers = 1 if split == "train" else 3
            articles = [_article(passage, f"{split}-{i}", answers) for i, passage in enumerate(passages)]
            text = json_text.dumps({"version": "1.1", "data": articles}, ensure_ascii=False)
            yield f"squad/{split}-v1.1.json", text + "\n"

    def _sst(self) -> Iterator[tuple[str, str]]:
        lexicon, world, words = self.setting

        def source(split: str):
            opinions = Opinions(self._chance("sst", split), lexicon, world, words)

            def draw(i: int):
                while (tree := opinions.review()).label != i % 5:  # equally many of each label
                    pass
                return tree, [" ".join(tree.words())]

            return draw

        for split, trees in self._collect("sst", source).items():
            trees = self._chance("sst order", split).shuffled(trees)
            yield f"sst/{split}.txt", "\n".join(map(str, trees)) + "\n"

    # Plain text.

    def _lm(self) -> Iterator[tuple[str, str]]:
        avoided = set(self._held_out)
        senses: list[str] = []
        for split, tokens in reversed(list(zip(SPLITS, self.sizes.lm, strict=True))):
            lines: list[str] = []
            for line in PlainText(self._chance("lm", split), self.setting).lines():
                text = " ".join(line.words)
                if text in avoided:
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
