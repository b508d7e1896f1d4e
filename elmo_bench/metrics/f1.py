"""Precision, recall and F1 from counts."""

from __future__ import annotations

from collections.abc import Mapping

from elmo_bench.metrics.items import AdditiveMetric, Number, ratio


class F1Metric(AdditiveMetric):
    """Of what is right (tp), predicted but not gold (fp), and gold but not predicted (fn)."""

    statistics = ("tp", "fp", "fn")

    @staticmethod
    def from_totals(totals: Mapping[str, Number]) -> dict[str, Number]:
        """f1, precision and recall in percent; each is 0 where it would divide by 0."""
        tp, fp, fn = totals["tp"], totals["fp"], totals["fn"]
        precision, recall = ratio(100 * tp, tp + fp), ratio(100 * tp, tp + fn)
        return {"f1": ratio(2 * precision * recall, precision + recall), "precision": precision, "recall": recall}
