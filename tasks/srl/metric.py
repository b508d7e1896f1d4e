"""Precision, recall and F1 of arguments by the rules of srl-eval.pl, the official scorer (CoNLL-2005, CoNLL-2012)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.metrics.items import F1Metric
from elmo_bench.system.errors import notice
from elmo_bench.system.storage.files import read_text

if TYPE_CHECKING:  # not at run time: `score` needs no torch, and a report no reader
    from elmo_bench.task import Row
    from elmo_bench.text.conll2012 import ConllSentence
    from elmo_bench.text.tags import Span

LEFT_OUT = "V"  # the label of the predicate itself
VERB = "VB"  # the beginning of the parts of speech of verbs


@dataclass(eq=False)
class ScoredArgument:
    """An argument as the scorer sees it: one phrase, or several, the later ones labelled C-."""

    label: str
    start: int
    end: int  # the word after its last
    pieces: list[ScoredArgument] = field(default_factory=list)  # empty for a single phrase

    @property
    def place(self) -> tuple[int, int]:
        return self.start, self.end

    def equals(self, gold: ScoredArgument) -> bool:
        """Whether it is correct, given that its extent is: label and every piece."""
        mine, theirs = ([piece.place for piece in argument.pieces] for argument in (self, gold))
        return self.label == gold.label and sorted(mine) == sorted(set(theirs))


def arguments(spans: Iterable[Span]) -> list[ScoredArgument]:
    """The arguments of a predicate whose phrases are `spans`, by start, outer phrases first.

    C-X continues the X before it that began last; without one it is an X. R-X is a separate role. Of phrases with the
    same extent, only the innermost counts. A phrase with others inside consists of them, as in the official scorer.
    """
    phrases: dict[tuple[int, int], ScoredArgument] = {}
    around: list[ScoredArgument] = []
    for label, start, end in spans:
        phrase = ScoredArgument(label, start, end)
        while around and around[-1].end <= start:
            around.pop()
        if around:
            around[-1].pieces.append(phrase)
        around.append(phrase)
        phrases[phrase.place] = phrase
    joined: list[ScoredArgument] = []
    latest: dict[str, ScoredArgument] = {}
    for phrase in sorted(phrases.values(), key=lambda phrase: (phrase.start, -phrase.end)):
        label = phrase.label.removeprefix("C-")
        whole = latest.get(label)
        if label == phrase.label or whole is None:
            phrase.label = label
            joined.append(phrase)
            latest[label] = phrase
        else:
            whole.pieces = whole.pieces or [ScoredArgument(label, *whole.place)]
            whole.pieces.append(phrase)
            whole.end = phrase.end
    return joined


class SrlMetric(F1Metric):
    """Arguments of all predicates together, V left out.

    An example is a proposition, a predicate with its arguments; the propositions of a document are a cluster, or of a
    sentence if documents are not known.
    """

    def update(self, predictions: Sequence[dict[str, Any]], rows: Sequence[Row]) -> None:
        """Answers of `SrlHead.decode`, one per row, and rows with "predicates", "tags" and perhaps "inner"."""
        from elmo_bench.text import tags

        for answer, row in self.tally.pairs(predictions, rows):
            inner = row.get("inner") or [[]] * len(row["tags"])
            for frame, outer, inside in zip(answer["frames"], row["tags"], inner, strict=True):
                predicted = [tags.Span(a["label"], a["start"], a["end"]) for a in frame["arguments"]]
                gold = sorted(tags.spans(outer) + tags.spans(inside), key=lambda span: (span.start, -span.end))
                self.add(gold, predicted, self.cluster(row))

    def cluster(self, row: Mapping[str, Any]) -> str | int | None:
        return row.get("document", row.get("sentence"))

    def add(self, gold: Iterable[Span], predicted: Iterable[Span], cluster: str | int | None = None) -> None:
        """Counts one predicate: its phrases in gold and prediction, and its cluster, if known."""
        tp = fp = 0
        left = {argument.place: argument for argument in arguments(gold)}
        for argument in arguments(predicted):
            right = argument.place in left and argument.equals(left[argument.place])
            if right:
                del left[argument.place]
            if argument.label != LEFT_OUT:
                tp += right
                fp += not right
        fn = sum(argument.label != LEFT_OUT for argument in left.values())
        self.tally.add(tp, fp, fn, cluster=cluster)


def score(gold: Path | str, predictions: Path | str) -> dict[str, float]:
    """The metric of two files in CoNLL-2012 columns, of the same sentences.

    As in srl-eval.pl, if a predicate occurs only in the gold file, or its lemma differs, all its arguments are missed;
    a predicate that occurs only in the predictions is not counted. If `predict` has marked the predictions as verbs
    only, the other predicates of the gold file are left out. Notices count these, and predicates with another lemma.
    """
    from elmo_bench.text.columns import side_by_side
    from elmo_bench.text.conll2012 import ONLY_VERBS
    from elmo_bench.text.labels import warn_disjoint

    metric, left_out, other = SrlMetric(), 0, []
    roles: tuple[set[str], set[str]] = set(), set()
    only_verbs = read_text(predictions, line=True).rstrip() == ONLY_VERBS.rstrip()
    for expected, predicted in side_by_side(gold, predictions, _sentences):
        answers = {predicate.index: predicate for predicate in predicted.predicates()}
        for predicate in expected.predicates():
            answer = answers.get(predicate.index)
            if answer is None and only_verbs and not expected.pos[predicate.index].startswith(VERB):
                left_out += 1
                continue
            for found, each in zip(roles, (predicate, answer), strict=True):
                found |= {span.type for span in each.arguments if span.type != LEFT_OUT} if each else set()
            same = answer is not None and answer.lemma == predicate.lemma
            if answer is not None and not same:
                other.append(f"{answer.lemma} for {predicate.lemma}")
            metric.add(predicate.arguments, answer.arguments if answer is not None and same else [])
    warn_disjoint(*roles, predictions)
    if left_out:
        notice(f"{left_out} predicates of {gold} are not verbs and not scored, as the first line says", predictions)
    if other:
        note = f"{len(other)} predicates have other lemmas than in {gold} ({other[0]}): their arguments are missed"
        notice(note, predictions)
    return metric.compute()


def _sentences(path: Path | str) -> Iterator[ConllSentence]:
    from elmo_bench.text.conll2012 import read_documents

    return (sentence for document in read_documents(path) for sentence in document.sentences)
