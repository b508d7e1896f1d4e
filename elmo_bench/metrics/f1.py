"""Precision, recall and F1 from counts."""

from __future__ import annotations

from collections.abc import Mapping

COUNTS = ("tp", "fp", "fn")  # right, predicted but not gold, gold but not predicted


def precision_recall_f1(totals: Mapping[str, float]) -> dict[str, float]:
    """f1, precision and recall in percent, from the sums of COUNTS; each is 0 where it would divide by 0."""
    tp, fp, fn = (totals[name] for name in COUNTS)
    precision = 100 * tp / (tp + fp) if tp + fp else 0.0
    recall = 100 * tp / (tp + fn) if tp + fn else 0.0
    f1 = 2 * precision * recall / (precision + recall) if tp else 0.0
    return {"f1": f1, "precision": precision, "recall": recall}
