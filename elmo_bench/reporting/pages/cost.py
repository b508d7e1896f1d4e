"""The chapter of cost: time, speed, memory and machine of every arm."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.records.record import Record
from elmo_bench.records.times import COMPUTING, in_time, typical
from elmo_bench.reporting.pages.chapter import Chapter
from elmo_bench.reporting.section import Number, Section
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.groups import Group
from elmo_bench.reporting.statistics.outcomes import Outcome, Scales
from elmo_bench.reporting.tables.numbers import linked

HEADER = ("arm", "seeds", "computing a run", "tokens a second", "peak memory", "parameters", "device")
COLUMNS = {"tokens_per_second": "{:,.0f}", "peak_memory_mib": "{:,.0f} MiB", "parameters": "{:,.0f}"}
WORDS = f"Means over the seeds, of arms without variants. A time opens to its runs. {COMPUTING}"


def cost(scales: Scales) -> Chapter:
    """The hours of every scale, and a table for each task at it."""
    words = [*(_total(scale, outcomes) for scale, outcomes in scales.items()), WORDS] if scales else []
    return Chapter("cost", "Cost", words, [_table(each) for outcomes in scales.values() for each in outcomes])


def _total(scale: str, outcomes: Sequence[Outcome]) -> str:
    records = [record for outcome in outcomes for record in outcome.records]
    hours = sum(record.device_seconds for record in records) / 3600
    dirty = sum(bool(record.dirty) for record in records)
    changed = f" {dirty} of them: code with uncommitted changes." if dirty else ""
    return f"Scale {scale}: {len(records)} recorded runs took {hours:.1f} hours of computing together.{changed}"


def _table(outcome: Outcome) -> Section:
    rows = [_row(group) for group in outcome.groups if not group.first.variant]
    return Section(f"{outcome.task}, scale {outcome.scale}", "", HEADER, rows)


def _row(group: Group) -> tuple[str, ...]:
    others = (_mean(group, key, text) for key, text in COLUMNS.items())
    seeds = statistics.ranges([record.seed for record in group.records])
    time = Number(
        in_time(typical(group.records)), [linked(each, in_time(each.device_seconds)) for each in group.records]
    )
    return group.name, seeds, time, *others, "; ".join(sorted({*map(_device, group.records)}))


def _mean(group: Group, key: str, text: str) -> str:
    """The mean of a number over the runs that have one, written as `text` says; empty if none has."""
    known = [value for record in group.records if (value := getattr(record, key))]
    return text.format(sum(known) / len(known)) if known else ""


def _device(record: Record) -> str:
    machine = record.machine
    name = machine.get("gpu") or machine["cpu"]
    return f"{name}, {machine['accelerator']}, {machine['threads']} of {machine['cores']} cores"
