"""The formats of the tasks' files, which are those of the real data sets."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from elmo_bench.mini.language.chance import Chance
from elmo_bench.mini.language.morphology import capitalised
from elmo_bench.mini.language.phrases import ENTITY, MENTION, Sentence
from elmo_bench.mini.language.sentences import news
from elmo_bench.mini.language.world import World
from elmo_bench.mini.opinions import OpinionTree, Reviews
from elmo_bench.mini.passages import Passage, Passages, detokenized
from elmo_bench.mini.scenes import LABELS, ScenePair, Scenes
from elmo_bench.mini.stories import Stories
from elmo_bench.system.storage import json_text
from elmo_bench.text.brackets import write_mentions, write_spans
from elmo_bench.text.columns import write_rows
from elmo_bench.text.conll2012 import END, FRAME, LEMMA, PARSE, POS, WORD, begin, write_sentence
from elmo_bench.text.tags import Span, encode

Columns = tuple[dict[int, Sequence[str]], list[list[str]]]  # by their numbers; those of arguments


def _ner(split: str, items: list[Sentence]) -> str:
    """Word and IOB2 tag, tab-separated; a blank line after every sentence."""
    tagged = ((told.forms, encode(told.spans[ENTITY], len(told.words), "iob2")) for told in items)
    return "".join(write_rows([*zip(*columns, strict=True)], "\t") for columns in tagged)


def _srl(split: str, items: list[Sentence]) -> str:
    """CoNLL-2012 columns: words, parts of speech, parse bits, predicates' lemmas and rolesets, and their arguments.
    Twenty sentences a document.
    """
    return _conll(split, [map(_propositions, items[i : i + 20]) for i in range(0, len(items), 20)])


def _propositions(told: Sentence) -> Columns:
    """The columns of a sentence, and those of its predicates' arguments."""
    size = len(told.words)
    verbs = [(i, word.event) for i, word in enumerate(told.words) if word.event]
    arguments = [write_spans([*told.spans[event], Span("V", i, i + 1)], size) for i, event in verbs]
    rolesets = [(word.event.verb.lemma, word.event.verb.number) if word.event else "--" for word in told.words]
    lemmas, frames = zip(*rolesets, strict=True)
    parse = ["(TOP*", *["*"] * (size - 2), "*)"]
    tags = [word.tag for word in told.words]
    return {WORD: told.forms, POS: tags, PARSE: parse, LEMMA: lemmas, FRAME: frames}, arguments


def _coref(split: str, items: list[list[Sentence]]) -> str:
    """CoNLL-2012 columns: words, XX as their parts of speech, and clusters of two or more mentions."""
    return _conll(split, map(_clusters, items))


def _clusters(story: list[Sentence]) -> Iterator[Columns]:
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
    rows = [f"{pair.label}\t{pair.premise.text}\t{pair.hypothesis.text}" for pair in items]
    return "\n".join(["gold_label\tsentence1\tsentence2", *rows]) + "\n"


def _squad(split: str, items: list[Passage]) -> str:
    """SQuAD v1.1, an article with one paragraph each; dev and test have three answers, repeated if necessary."""
    wanted = 1 if split == "train" else 3
    articles = []
    for n, passage in enumerate(items):
        qas = []
        for i, (question, answers) in enumerate(passage.questions):
            qas.append(
                {
                    "id": hashlib.md5(f"{split}-{n}-{i}".encode()).hexdigest()[:24],
                    "question": detokenized([question])[0],
                    "answers": [answers[j % len(answers)] for j in range(wanted)],
                }
            )
        articles.append({"title": passage.title, "paragraphs": [{"context": passage.context, "qas": qas}]})
    return json_text.dumps({"version": "1.1", "data": articles}, ensure_ascii=False) + "\n"


def _sst(split: str, items: list[OpinionTree]) -> str:
    return "\n".join(capitalised(str(tree)) for tree in items) + "\n"


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
    "ner": Format(news, lambda told: [told], _ner),
    "srl": Format(news, lambda told: [told], _srl),
    "coref": Format(Stories, iter, _coref),
    "snli": Format(Scenes, lambda pair: [pair.premise, pair.hypothesis], _snli, len(LABELS)),
    "squad": Format(Passages, lambda passage: passage.told, _squad),
    "sst": Format(Reviews, lambda tree: [tree], _sst, 5),
}
