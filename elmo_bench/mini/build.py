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

from elmo_bench.mini.files import FILES, SPLITS, Sizes
from elmo_bench.mini.language.clauses import ENTITY, MENTION, Sentence
from elmo_bench.mini.language.lexicon import GRAMMAR, Chance, capitalised
from elmo_bench.mini.language.sentences import SentenceWriter, Stories
from elmo_bench.mini.language.world import World
from elmo_bench.mini.opinions import OpinionTree, Reviews
from elmo_bench.mini.passages import Passage, Passages, spaced
from elmo_bench.mini.scenes import LABELS, ScenePair, Scenes
from elmo_bench.system.storage import json_text
from elmo_bench.text.brackets import write_mentions, write_spans
from elmo_bench.text.columns import write_rows
from elmo_bench.text.conll2012 import END, FRAME, LEMMA, PARSE, POS, WORD, begin, write_sentence
from elmo_bench.text.tags import Span, encode

Columns = tuple[dict[int, Sequence[str]], list[list[str]]]  # by their numbers; those of arguments


def _ner(split: str, items: list[list[Sentence]]) -> str:
    tagged = ((each.forms, encode(each.spans[ENTITY], len(each.words), "iob2")) for each in chain(*items))
    return "".join(write_rows([*zip(*columns, strict=True)], "\t") for columns in tagged)


def _srl(split: str, items: list[list[Sentence]]) -> str:
    """Twenty sentences a document."""
    return _conll(split, [map(_propositions, chain(*items[i : i + 20])) for i in range(0, len(items), 20)])


def _propositions(sentence: Sentence) -> Columns:
    size = len(sentence.words)
    verbs = [(i, word.event) for i, word in enumerate(sentence.words) if word.event]
    arguments = [write_spans([*sentence.spans[event], Span("V", i, i + 1)], size) for i, event in verbs]
    rolesets = [(word.event.verb.lemma, word.event.verb.number) if word.event else "--" for word in sentence.words]
    lemmas, frames = zip(*rolesets, strict=True)
    parse = ["(TOP*", *["*"] * (size - 2), "*)"]
    tags = [word.tag for word in sentence.words]
    return {WORD: sentence.forms, POS: tags, PARSE: parse, LEMMA: lemmas, FRAME: frames}, arguments


def _clusters(story: list[Sentence]) -> Iterator[Columns]:
    sizes = Counter(span.type for sentence in story for span in sentence.spans[MENTION])
    ids: dict[str, int] = {}
    for sentence in story:
        mentions = [span for span in sentence.spans[MENTION] if sizes[span.type] > 1]
        numbered = [span._replace(type=str(ids.setdefault(span.type, len(ids)))) for span in mentions]
        size = len(sentence.words)
        yield {WORD: sentence.forms, POS: ["XX"] * size, -1: write_mentions(numbered, size)}, []


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
    articles, number = [], 1 if split == "train" else 3
    for n, passage in enumerate(items):
        qas = []
        for i, (question, answers) in enumerate(passage.questions):
            name = hashlib.md5(f"{split}-{n}-{i}".encode()).hexdigest()[:24]
            qas.append({"id": name, "question": spaced(question.forms), "answers": (answers * 3)[:number]})
        articles.append({"title": passage.title, "paragraphs": [{"context": passage.context, "qas": qas}]})
    return json_text.dumps({"version": "1.1", "data": articles}, ensure_ascii=False) + "\n"


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


class Format(NamedTuple):
    """How the files of a task are made: `source` makes, from a stream, what draws the items; `text` is that of a file,
    from a split and its items. Equally many items are drawn of each of the labels, if they have any, and then shuffled.
    """

    source: Callable[[Chance, World], Any]
    text: Callable[[str, list[Any]], str]
    sentences: Callable[[Any], Iterable[Sentence | OpinionTree]] = iter  # of an item
    labels: int = 0


FORMATS = {
    "ner": Format(SentenceWriter, _ner),
    "srl": Format(SentenceWriter, _srl),
    "coref": Format(Stories, lambda split, stories: _conll(split, map(_clusters, stories))),
    "snli": Format(Scenes, _snli, lambda pair: [pair.premise, pair.hypothesis], len(LABELS)),
    "squad": Format(Passages, _squad, lambda passage: passage.sentences),
    "sst": Format(Reviews, lambda _, trees: _lines(capitalised(str(tree)) for tree in trees), lambda tree: [tree], 5),
}


class Builder:
    """Generates the files of a seed, any whole number, one by one."""

    def __init__(self, seed: int, sizes: Sizes):
        self.seed, self.sizes = seed, sizes
        self.world = World(seed, sizes.names, sizes.invented)

    def files(self, tasks: Iterable[str] = tuple(FORMATS), text: bool = True) -> Iterator[tuple[str, str]]:
        """(path in the folder, text) of every file of the tasks and, with `text`, of the plain text. It comes last, and
        without the sentences of dev and test of any task, so that it is the same whatever `tasks` are. No two splits
        share a sentence: test is drawn first, train last.
        """
        held_out: set[str] = set()
        for task, form in FORMATS.items():
            taken: set[str] = set()
            for split, path, size in reversed([*zip(SPLITS, FILES[task], getattr(self.sizes, task), strict=True)]):
                if task in tasks or (text and split != "train"):
                    items = self._drawn(task, split, size, taken)
                    held_out |= taken if split != "train" else set()
                    if task in tasks:
                        yield path, form.text(split, items)
        if text:
            yield from self._text(held_out)

    def _drawn(self, task: str, split: str, size: int, taken: set[str]) -> list[Any]:
        """The items of a split, without the sentences that are taken, to which their own are added."""
        form, items, mine = FORMATS[task], [], set()
        source = form.source(Chance(self.seed, task, split), self.world)
        while len(items) < size:
            item = source.draw(len(items) % form.labels) if form.labels else source.draw()
            sentences = {sentence.text for sentence in form.sentences(item)}
            if taken.isdisjoint(sentences):
                mine |= sentences
                items.append(item)
        taken |= mine
        return Chance(self.seed, f"{task} order", split).shuffled(items) if form.labels else items

    def _text(self, avoided: set[str]) -> Iterator[tuple[str, str]]:
        """The plain text and its senses, without the sentences that are to be avoided."""
        senses = ["split\tsentence\ttoken\tword\tsense"]
        for split, tokens in reversed([*zip(SPLITS, self.sizes.lm, strict=True)]):
            chance, lines = Chance(self.seed, "lm", split), []
            draws = {task: form.source(chance, self.world).draw for task, form in FORMATS.items()}
            draws["statement"] = SentenceWriter(chance, self.world).general  # sentences, as for NER
            while tokens > 0:
                kind = chance.weighted(GRAMMAR["text"])
                for sentence in FORMATS.get(kind, FORMATS["ner"]).sentences(draws[kind]()):
                    tree = isinstance(sentence, OpinionTree)
                    text = capitalised(sentence.said(explained=True)) if tree else sentence.text
                    if tokens <= 0 or not avoided.isdisjoint((text, sentence.text)):
                        continue
                    for i, word in enumerate(() if tree else sentence.words):
                        if word.sense:
                            senses.append(f"{split}\t{len(lines)}\t{i}\t{word.sense.partition('%')[0]}\t{word.sense}")
                    lines.append(text)
                    tokens -= len(text.split())
            avoided.update(lines)
            yield f"lm/{split}.txt", _lines(lines)
        yield "lm/senses.tsv", _lines(senses)
