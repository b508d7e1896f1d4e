"""Exact match and F1 by the rules of the official evaluation of SQuAD v1.1 (Rajpurkar et al. 2016)."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

from elmo_bench.metrics.items import AdditiveMetric, Number, ratio
from elmo_bench.system.errors import UserError, notice
from elmo_bench.system.storage.json_text import read as read_json

if TYPE_CHECKING:  # not at run time: `score` needs no torch, and a report no reader
    from elmo_bench.task import Row
    from elmo_bench.text.source import DataSource, Table

VERSION = "1.1"
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalized(text: str) -> str:
    """The text in lower case, without ASCII punctuation, without a, an and the, with single spaces; in this order."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


def exact(prediction: str, gold: str) -> float:
    """1 if both are equal after normalisation, else 0."""
    return float(normalized(prediction) == normalized(gold))


def overlap(prediction: str, gold: str) -> float:
    """F1 over the normalised bags of words; 0 if they share no word, even if both are empty."""
    predicted, expected = normalized(prediction).split(), normalized(gold).split()
    common = sum((Counter(predicted) & Counter(expected)).values())
    if not common:
        return 0.0
    precision, recall = common / len(predicted), common / len(expected)
    return 2 * precision * recall / (precision + recall)


def best(measure: Callable[[str, str], float], prediction: str, golds: Sequence[str]) -> float:
    """The measure against the best-fitting gold answer; composed and decomposed accents are equal."""
    form = normalize("NFC", prediction)
    return max(measure(gold if normalize("NFC", gold) == form else prediction, gold) for gold in golds)


class SquadMetric(AdditiveMetric):
    """Means over the questions, which are the examples; the questions about an article are a cluster."""

    statistics = ("exact_match", "f1", "questions")
    units = ("articles", "questions")

    def update(self, predictions: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> None:
        """Predictions with "answer", and rows with "answers", the texts of all gold answers."""
        for prediction, row in self.tally.pairs(predictions, rows):
            self.add(prediction["answer"], row["answers"], self.cluster(row))

    def cluster(self, row: Mapping[str, Any]) -> str | None:
        """The title of the article, if known."""
        return row.get("title") or None

    def add(self, prediction: str | None, golds: Sequence[str], title: str | None = None) -> None:
        """Counts one question about the article `title`; None means no answer, which is wrong."""
        scores = [0.0 if prediction is None else best(measure, prediction, golds) for measure in (exact, overlap)]
        self.tally.add(*scores, 1, cluster=title)

    @staticmethod
    def from_totals(totals: Mapping[str, Number]) -> dict[str, Number]:
        """exact_match and f1 in percent; 0 without questions."""
        return {name: ratio(100 * totals[name], totals["questions"]) for name in ("exact_match", "f1")}


def score(gold: Path | str, predictions: Path | str, data: Mapping[str, Any] | None = None) -> dict[str, float]:
    """The metric of a data set's JSON file and of a JSON object {id: answer}; either may be a table of questions.

    As with the official script, a question without a prediction is wrong and reported on the standard error, and a
    prediction for an unknown question is ignored.
    """
    from elmo_bench.text.source import DataSource

    from .paragraphs import is_release

    source = DataSource(data or {}, native=is_release)
    wanted, answers = dict(_golds(gold, source)), _predicted(predictions, source)
    if not wanted:
        raise UserError("contains no question", gold)
    if answers and not answers.keys() & wanted.keys():
        raise UserError(f"has no id of a question of {gold}; a JSON object {{id: answer}} is needed", predictions)
    metric = SquadMetric()
    for id, golds in wanted.items():
        prediction = answers.get(id)
        if id not in answers:
            notice(f"Unanswered question {id} will receive score 0.")
        elif not isinstance(prediction, str):
            raise UserError(f"question {id}: the prediction is not text", predictions)
        metric.add(prediction, golds)
    return metric.compute()


def _predicted(path: Path | str, source: DataSource) -> dict[str, Any]:
    """The answer of each question; from a table, its first answer."""
    if not isinstance(opened := source.open(path), Path):
        return {id: (texts or [None])[0] for id, texts in _rows(opened)}
    answers = read_json(path)
    if not isinstance(answers, dict):
        raise UserError("not a JSON object {id: answer}", path)
    return answers


def _rows(table: Table) -> Iterator[tuple[str, list[str]]]:
    from .paragraphs import answers_of, numbered

    table.require("id", "answers")
    for id, spans in zip(numbered(table.rows["id"]), answers_of(table), strict=True):
        yield id, [text for text, _ in spans]


def _golds(path: Path | str, source: DataSource) -> Iterator[tuple[str, list[str]]]:
    """Id and gold answers of every question; the rest of the file is ignored."""
    seen: set[str] = set()
    opened = source.open(path)
    pairs = _release(read_json(path), path) if isinstance(opened, Path) else _rows(opened)
    for id, golds in pairs:
        if not isinstance(id, str) or not all(isinstance(text, str) for text in golds):
            raise UserError(f"question {id}: the id or an answer is not text", path)
        if not golds:
            raise UserError(f"question {id}: no answer; v2.0 has such questions, v1.1 has none", path)
        if id in seen:
            raise UserError(f"question {id}: the id occurs twice", path)
        seen.add(id)
        yield id, golds


def _release(data: Any, path: Path | str) -> list[tuple[Any, list[Any]]]:
    if isinstance(data, dict) and data.get("version") != VERSION:
        notice(f"Evaluation expects v-{VERSION}, but got dataset with v-{data.get('version')}")
    try:
        questions = [qa for article in data["data"] for part in article["paragraphs"] for qa in part["qas"]]
        ids = [str(qa["id"]) if type(qa["id"]) is int else qa["id"] for qa in questions]
        return [(id, [answer["text"] for answer in qa["answers"]]) for id, qa in zip(ids, questions, strict=True)]
    except (KeyError, TypeError) as error:
        raise UserError(f"not the layout of SQuAD v1.1 ({type(error).__name__}: {error})", path) from None
