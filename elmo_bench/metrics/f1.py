"""Precision, recall and F1 from counts."""

from __future__ import annotations

from collections.abc import Mapping

from elmo_bench.metrics.items import AdditiveMetric


class F1Metric(AdditiveMetric):
    """Of what is right (tp), predicted but not gold (fp), and gold but not predicted (fn)."""

    statistics = ("tp", "fp", "fn")

    @staticmethod
    def from_totals(totals: Mapping[str, float]) -> dict[str, float]:
        """f1, precision and recall in percent; each is 0 where it would divide by 0."""
        tp, fp, fn = totals["tp"], totals["fp"], totals["fn"]
        precision = 100 * tp / (tp + fp) if tp + fp else 0.0
        recall = 100 * tp / (tp + fn) if tp + fn else 0.0
        f1 = 2 * precision * recall / (precision + recall) if tp else 0.0
        return {"f1": f1, "precision": precision, "recall": recall}
