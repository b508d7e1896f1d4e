"""Span precision, recall and F1 by the rules of conlleval, the official scorer of CoNLL-2003."""

from __future__ import annotations

from functools import partial

from elmo_bench.tagging.metric import SpanMetric, score_spans


class NerMetric(SpanMetric):
    """Span F1 of entities, as in `SpanMetric`."""


score = partial(score_spans, column="ner_tags")
