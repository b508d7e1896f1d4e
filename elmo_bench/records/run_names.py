"""Names of runs in messages and tables."""

from __future__ import annotations

from typing import Any

from elmo_bench.records.record import Record, Started

TITLES = {
    "elmo": "+ELMo",
    "glove": "baseline, GloVe",
    "elmo+glove": "+ELMo, GloVe",
    "text": "baseline, text vectors",
    "elmo+text": "+ELMo, text vectors",
    "untrained": "+untrained biLM",
    "tuned": "+ELMo, biLM tuned on the text",
    "joint": "+ELMo, biLM trained jointly",
}


def label(arm: str, where: str, variant: dict[str, Any]) -> str:
    """An arm and a run's changes to it: "baseline", "+ELMo (input)", "+ELMo (input; layers=last)"."""
    dotted = by_key(variant, where)
    changes = [f"{key.removeprefix('elmo.')}={value}" for key, value in dotted.items() if key != "elmo.where"]
    parts = ([] if where == "none" else [where]) + ([", ".join(changes)] if changes else [])
    return TITLES.get(arm, arm) + (f" ({'; '.join(parts)})" if parts else "")


def by_key(variant: dict[str, Any], where: str) -> dict[str, Any]:
    """A variant by single keys: for a whole `elmo`, what the run gives of it, or its place where all are defaults."""
    if "elmo" not in variant:
        return variant
    block = variant["elmo"] or {"where": where}
    return {key: value for key, value in variant.items() if key != "elmo"} | {f"elmo.{k}": v for k, v in block.items()}


def arm_of(record: Started) -> str:
    """The arm of a recorded run in words."""
    return label(record.arm, record.where, record.variant)


def run_name(task: str, scale: str, arm: str, seed: int) -> str:
    """A run in words."""
    return f"{task}/{scale} {arm}, seed {seed}"


def title(record: Record) -> str:
    """The name of the run that a record describes."""
    return run_name(record.task, record.scale, arm_of(record), record.seed)


def summary(record: Record) -> str:
    """The scores of a record in a few words."""
    monitor = record.monitor
    dev, test = (record.metrics[split][monitor] for split in ("dev", "test"))
    return f"dev {monitor} {dev:.2f}, test {monitor} {test:.2f}, {record.epochs} epochs, {record.seconds:.0f} s"
