"""Makes the files of a mini data set: data for all six tasks and plain text, in the formats of the real data sets.

lm/{train,dev,test}.txt         plain text, one tokenized sentence per line
lm/senses.tsv                   split, sentence and token (from 0), lemma, sense
ner/{train,dev,test}.iob2       word, IOB2 tag
srl/{train,dev,test}.conll      CoNLL-2012 columns with propositions
coref/{train,dev,test}.conll    CoNLL-2012 columns with clusters, each of two or more mentions
snli/{train,dev,test}.tsv       gold_label, sentence1, sentence2
squad/{train,dev,test}-v1.1.json  SQuAD v1.1; dev and test with three answers each
sst/{train,dev,test}.txt        trees with labels 0-4

The plain text has every kind of sentence in the tasks' data, and general statements that are in none of them. The
senses of its ambiguous words are recorded, to measure how well the layers of the biLM separate them.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.phrases import ENTITY, MENTION, Sentence
from elmo_bench.mini.language.sentences import SentenceWriter, Stories
from elmo_bench.mini.language.words import GRAMMAR, capitalised
from elmo_bench.mini.language.world import World
from elmo_bench.mini.opinions import OpinionTree, Reviews
from elmo_bench.mini.passages import Passage, Passages, spaced
from elmo_bench.mini.paths import FILES, SPLITS, Sizes
from elmo_bench.mini.scenes import LABELS, ScenePair, Scenes
from elmo_bench.system.storage import json_text
from elmo_bench.text.brackets import write_mentions, write_spans
from elmo_bench.text.columns import write_rows
from elmo_bench.text.conll2012 import END, FRAME, LEMMA, PARSE, POS, WORD, begin, write_sentence
from elmo_bench.text.tags import Span, encode

Columns = tuple[dict[int, Sequence[str]], list[list[str]]]  # by their numbers; those of arguments


def _ner(split: str, items: list[list[Sentence]]) -> str:
    """Word and IOB2 tag, tab-separated; a blank line after every sentence."""
    tagged = ((told.forms, encode(told.spans[ENTITY], len(told.words), "iob2")) for told in chain(*items))
    return "".join(write_rows([*zip(*columns, strict=True)], "\t") for columns in tagged)


def _srl(split: str, items: list[list[Sentence]]) -> str:
    """Twenty sentences a document."""
    return _conll(split, [map(_propositions, chain(*items[i : i + 20])) for i in range(0, len(items), 20)])


def _propositions(told: Sentence) -> Columns:
    """Words, parts of speech, parse bits, predicates' lemmas and rolesets; the columns of their arguments."""
    size = len(told.words)
    verbs = [(i, word.event) for i, word in enumerate(told.words) if word.event]
    arguments = [write_spans([*told.spans[event], Span("V", i, i + 1)], size) for i, event in verbs]
    rolesets = [(word.event.verb.lemma, word.event.verb.number) if word.event else "--" for word in told.words]
    lemmas, frames = zip(*rolesets, strict=True)
    parse = ["(TOP*", *["*"] * (size - 2), "*)"]
    tags = [word.tag for word in told.words]
    return {WORD: told.forms, POS: tags, PARSE: parse, LEMMA: lemmas, FRAME: frames}, arguments


def _clusters(story: list[Sentence]) -> Iterator[Columns]:
    """Words, XX as their parts of speech, and clusters of two or more mentions."""
    sizes = Counter(span.type for told in story for span in told.spans[MENTION])
    ids: dict[str, int] = {}
    for told in story:
        mentions = [span for span in told.spans[MENTION] if sizes[span.type] > 1]
        numbered = [span._replace(type=str(ids.setdefault(span.type, len(ids)))) for span in mentions]
        size = len(told.words)
        yield {WORD: told.forms, POS: ["XX"] * size, -1: write_mentions(numbered, size)}, []


def _conll(split: str, documents: Iterable[Iterable[Columns]]) -> str:
    lines = []
    for n, document in enumerate(documents):
        name = f"mini/{split}_{n:04}"
        lines += [begin(name, "000"), *(write_sentence(name, "0", *columns) for columns in document), END]
    return "".join(lines)


def _snli(split: str, items: list[ScenePair]) -> str:
    rows = (f"{pair.label}\t{pair.premise.text}\t{pair.hypothesis.text}" for pair in items)
    return _lines(["gold_label\tsentence1\tsentence2", *rows])


def _squad(split: str, items: list[Passage]) -> str:
    """SQuAD v1.1, an article with one paragraph each; dev and test have three answers, repeated if necessary."""
    articles = []
    for n, passage in enumerate(items):
        qas = [
            {
                "id": hashlib.md5(f"{split}-{n}-{i}".encode()).hexdigest()[:24],
                "question": spaced(question.forms),
                "answers": (answers * 3)[: 1 if split == "train" else 3],
            }
            for i, (question, answers) in enumerate(passage.questions)
        ]
        articles.append({"title": passage.title, "paragraphs": [{"context": passage.context, "qas": qas}]})
    return json_text.dumps({"version": "1.1", "data": articles}, ensure_ascii=False) + "\n"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


class Format(NamedTuple):
    """A task's files.

    Attributes:
        source: makes, from a stream of draws, what draws the items.
        told: the sentences of an item, which have a `text`.
        text: of a file, from a split and its items.
        labels: equally many items are drawn of each of so many labels, and then shuffled; 0: items have none.
    """

    source: Callable[[Chance, World], Any]
    told: Callable[[Any], Iterable[Sentence | OpinionTree]]
    text: Callable[[str, list[Any]], str]
    labels: int = 0


FORMATS = {
    "ner": Format(SentenceWriter, iter, _ner),
    "srl": Format(SentenceWriter, iter, _srl),
    "coref": Format(Stories, iter, lambda split, stories: _conll(split, map(_clusters, stories))),
    "snli": Format(Scenes, lambda pair: [pair.premise, pair.hypothesis], _snli, len(LABELS)),
    "squad": Format(Passages, lambda passage: passage.told, _squad),
    "sst": Format(Reviews, lambda tree: [tree], lambda _, trees: _lines(capitalised(str(tree)) for tree in trees), 5),
}


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
            yield from self._labelled(task, task in tasks, text)
        if text:
            yield from self._text()

    def _labelled(self, task: str, wanted: bool, held_out: bool) -> Iterator[tuple[str, str]]:
        """The file of each split, if wanted; what is to be held out is drawn all the same.

        No two splits share a sentence. Test is drawn first, train last.
        """
        made, taken = FORMATS[task], set()
        for split, path, size in reversed([*zip(SPLITS, FILES[task], getattr(self.sizes, task), strict=True)]):
            if not wanted and (split == "train" or not held_out):
                continue
            source = made.source(Chance(self.seed, task, split), self.world)
            items: list[Any] = []
            mine: set[str] = set()
            while len(items) < size:
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
            if wanted:
                yield path, made.text(split, items)

    def _text(self) -> Iterator[tuple[str, str]]:
        avoided = set(self._held_out)
        senses = ["split\tsentence\ttoken\tword\tsense"]
        for split, tokens in reversed(list(zip(SPLITS, self.sizes.lm, strict=True))):
            chance = Chance(self.seed, "lm", split)
            sources = {task: made.source(chance, self.world) for task, made in FORMATS.items()}
            lines: list[str] = []
            while tokens > 0:
                kind = chance.weighted(GRAMMAR["text"])
                general = kind == "statement"
                for told in [sources["ner"].general()] if general else FORMATS[kind].told(sources[kind].draw()):
                    tree = isinstance(told, OpinionTree)
                    text = sources[kind].advised(told) if tree else told.text
                    if tokens <= 0 or not avoided.isdisjoint((text, told.text)):
                        continue
                    for i, word in enumerate([] if tree else told.words):
                        if word.sense:
                            senses.append(f"{split}\t{len(lines)}\t{i}\t{word.sense.partition('%')[0]}\t{word.sense}")
                    lines.append(text)
                    tokens -= len(text.split())
            if split != "train":
                avoided.update(lines)
            yield f"lm/{split}.txt", _lines(lines)
        yield "lm/senses.tsv", _lines(senses)
