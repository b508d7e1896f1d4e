"""MUC, B-cubed, CEAF-phi4 and their mean by the rules of the CoNLL-2012 reference scorer, version 8.01.

Pradhan et al. 2014, "Scoring coreference partitions of predicted mentions". Mentions on one side only count unchanged
(no twinless mention is moved or dropped), and all four counts of a metric are summed over the documents before any
ratio is computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

import numpy as np

from elmo_bench.metrics.items import AdditiveMetric, Number, ratio
from elmo_bench.system.errors import UserError, notice
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.files import read_text

if TYPE_CHECKING:  # not at run time: `score` needs no torch, and a report no reader
    from elmo_bench.task import Prediction, Row
    from elmo_bench.text.conll2012 import Document

Mention = tuple[int, int]
Chains = list[list[Mention]]


class Counts(NamedTuple):
    """Numerators and denominators of recall and precision, of a document or summed over documents."""

    recalled: Number = 0
    in_key: Number = 0
    precise: Number = 0
    in_response: Number = 0

    def ratios(self) -> tuple[Number, Number, Number]:
        """Recall, precision and F1 from 0 to 1; 0 in place of a division by 0."""
        recall, precision = ratio(self.recalled, self.in_key), ratio(self.precise, self.in_response)
        return recall, precision, ratio(2 * precision * recall, precision + recall)


def chains(clusters: Iterable[Iterable[Sequence[int]]]) -> Chains:
    """Clusters as lists of (first word, last word), without empty clusters."""
    return [chain for cluster in clusters if (chain := [(int(m[0]), int(m[1])) for m in cluster])]


def without_repeats(key: Chains, response: Chains) -> tuple[Chains, int]:
    """The response without second occurrences of the key's mentions, and their number.

    A repeated mention that the key lacks stays, as with the reference scorer.
    """
    wanted, seen, repeats = {mention for chain in key for mention in chain}, set(), 0
    kept = []
    for chain in response:
        once = []
        for mention in chain:
            if mention in seen:
                repeats += 1
                continue
            if mention in wanted:
                seen.add(mention)
            once.append(mention)
        if once:
            kept.append(once)
    return kept, repeats


def index(chains: Chains) -> dict[Mention, int]:
    """The chain of each mention; for a repeated mention, its last chain."""
    return {mention: i for i, chain in enumerate(chains) for mention in chain}


def muc(key: Chains, response: Chains) -> Counts:
    """Links: a chain of n mentions has n - 1 (Vilain et al. 1995)."""
    chain_of = index(key)
    common = 0
    for chain in response:
        parts = Counter(chain_of[mention] for mention in chain if mention in chain_of)
        common += sum(size - 1 for size in parts.values())
    return Counts(common, sum(len(chain) - 1 for chain in key), common, sum(len(chain) - 1 for chain in response))


def b_cubed(key: Chains, response: Chains) -> Counts:
    """For each mention, the common share of its two chains (Bagga and Baldwin 1998)."""
    chain_of, members = index(key), [set(chain) for chain in key]
    recalled = precise = 0.0
    for chain in response:
        for i, size in Counter(chain_of[mention] for mention in chain if mention in chain_of).items():
            common = sum(mention in members[i] for mention in chain)
            precise += size * common / len(chain)
            recalled += size * common / len(key[i])
    return Counts(recalled, sum(map(len, key)), precise, sum(map(len, response)))


def ceaf_e(key: Chains, response: Chains) -> Counts:
    """The best one-to-one alignment of chains, by phi4 = 2 |K & R| / (|K| + |R|) (Luo 2005)."""
    from scipy.optimize import linear_sum_assignment

    chain_of = index(response)  # a mention of the key is in one chain of the response
    phi = np.zeros((len(key), len(response)))
    for i, chain in enumerate(key):
        for mention in chain:
            if mention in chain_of:
                phi[i, chain_of[mention]] += 1
    sizes = [np.array([len(chain) for chain in side]) for side in (key, response)]
    phi *= 2 / np.maximum(sizes[0][:, None] + sizes[1][None, :], 1)
    total = float(phi[linear_sum_assignment(phi, maximize=True)].sum())
    return Counts(total, len(key), total, len(response))


REPEATS = 10  # the reference scorer refuses predictions with more
METRICS = {"muc": muc, "b3": b_cubed, "ceafe": ceaf_e}
COUNTS = ("recall_numerator", "recall_denominator", "precision_numerator", "precision_denominator")  # as in `Counts`


class CorefMetric(AdditiveMetric):
    """The reference scorer over documents: micro-summed counts, and the mean of three F1 scores.

    An example is a part of a document; the parts of one document are a cluster.
    """

    units = ("documents", "parts")
    statistics = tuple(f"{metric}_{count}" for metric in METRICS for count in COUNTS)

    def __init__(self):
        super().__init__()
        self.repeats = 0  # mentions of the key that the predictions repeat

    def update(self, predictions: Sequence[Prediction], rows: Sequence[Row]) -> None:
        """Both sides have "clusters", lists of [first word, last word] (counted over the document, both inclusive)."""
        for prediction, row in self.tally.pairs(predictions, rows):
            self.add(chains(row["clusters"]), chains(prediction["clusters"]), self.cluster(row))

    def add(self, key: Chains, response: Chains, document: Hashable = None) -> None:
        """Counts one part of a document; `document` is the document's name, if known."""
        response, repeats = without_repeats(key, response)
        self.repeats += repeats
        counts = [count for metric in METRICS.values() for count in metric(key, response)]
        self.tally.add(*counts, cluster=document)

    @staticmethod
    def from_totals(totals: Mapping[str, Number]) -> dict[str, Number]:
        """{muc,b3,ceafe}_{f1,precision,recall} and conll_*, their means, in percent."""
        scores = {}
        for name, counts in summed(totals).items():
            recall, precision, f1 = (100 * value for value in counts.ratios())
            scores |= {f"{name}_f1": f1, f"{name}_precision": precision, f"{name}_recall": recall}
        for kind in ("f1", "precision", "recall"):
            scores[f"conll_{kind}"] = sum(scores[f"{name}_{kind}"] for name in METRICS) / len(METRICS)
        return scores


def summed(totals: Mapping[str, Number]) -> dict[str, Counts]:
    """The sums of the metric's statistics, by metric."""
    return {metric: Counts(*(totals[f"{metric}_{count}"] for count in COUNTS)) for metric in METRICS}


# Files.


def score(gold: Path | str, predictions: Path | str) -> dict[str, float]:
    """The metric of two files with `#begin document` lines and mentions in the last column, as for the official scorer.

    As in that scorer, a document that occurs only in `gold` counts as one without predictions, a document that occurs
    only in `predictions` is ignored, and words are not compared; notices name such documents, and the first differing
    word of each document. If the mark of `predict` asks for it, the gold file's clusters of one mention are left out,
    as in the run, and a notice counts them.
    """
    from elmo_bench.text.conll2012 import EXPECTED, NO_SINGLETONS, WIDTH, WORD, read_documents

    key, response = ({part.key: part for part in read_documents(path, strict=False)} for path in (gold, predictions))
    for path, parts in ((gold, key), (predictions, response)):
        if not parts:
            raise UserError(f"contains no document; expected {EXPECTED}", path)
    if not key.keys() & response.keys():
        raise UserError(f"has no document of {gold}; the names after '#begin document' must be the same", predictions)
    if unknown := [_called(part) for name, part in response.items() if name not in key]:
        notice(f"not in {gold} and so not scored: {', '.join(unknown)}", predictions)
    if alone := [_called(part) for name, part in key.items() if name not in response]:
        notice(f"not in {predictions} and so without predictions: {', '.join(alone)}", gold)
    metric, left_out, without = CorefMetric(), 0, read_text(predictions, line=True).rstrip() == NO_SINGLETONS.rstrip()
    for name, part in key.items():
        answer = response.get(name, part._replace(sentences=[]))
        ours, theirs = _rows(part), _rows(answer)
        if ours and theirs and len(ours) != len(theirs):
            expected = f"where {gold}:{part.line} has {len(ours)}"
            raise UserError(f"document {_called(part)} has {len(theirs)} words {expected}", predictions, answer.line)
        for (line, row), (other, found) in zip(ours, theirs, strict=False):  # without predictions there are no others
            known = len(row) >= WIDTH and len(found) >= WIDTH
            if known and normalize("NFC", row[WORD]) != normalize("NFC", found[WORD]):
                where = f"where {gold}:{line} has {row[WORD]!r}"
                notice(f"{predictions}:{other}: {found[WORD]!r}, {where}")
                break
        clusters = _read(part, distinct=True)
        kept = [chain for chain in clusters if len(chain) > 1 or not without]
        left_out += len(clusters) - len(kept)
        metric.add(kept, _read(answer))
    if left_out:
        notice(f"{left_out} clusters of one mention in {gold} are not scored, as the first line says", predictions)
    if metric.repeats > REPEATS:
        message = (
            f"{metric.repeats} mentions of the key are predicted more than once; the scorer refuses over {REPEATS}"
        )
        raise UserError(message, predictions)
    return metric.compute()


def _called(part: Document) -> str:
    return f"({part.name}); part {part.part}"


def _rows(part: Document) -> list[tuple[int, list[str]]]:
    """The rows with their line numbers."""
    return [pair for sentence in part.sentences for pair in zip(sentence.lines, sentence.rows, strict=True)]


def _read(part: Document, distinct: bool = False) -> Chains:
    """The chains, in the scorer's order; `distinct` refuses a repeated mention in a chain."""
    from elmo_bench.text import brackets

    rows = _rows(part)
    try:
        found = brackets.chains([row[-1] for _, row in rows])
        if distinct:
            brackets.distinct(mention for chain in found for mention in chain)
    except brackets.BracketError as error:
        raise UserError(str(error), part.path, rows[error.index][0]) from None
    if len(found) > limits.CLUSTERS:
        raise UserError(f"a document of over {limits.CLUSTERS} clusters; is this the right file?", part.path, part.line)
    return [[(start, end - 1) for _, start, end in chain] for chain in found]
