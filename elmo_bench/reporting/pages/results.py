"""The chapters of numbers: gains with their tests, scores, further metrics, cost."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.records.store import Record
from elmo_bench.reporting.charts.forest import forest
from elmo_bench.reporting.pages.answer import interval
from elmo_bench.reporting.pages.parts import Chapter, Table
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.gains import READING
from elmo_bench.reporting.statistics.groups import Group, in_words, other_changes
from elmo_bench.reporting.tables.numbers import Number, linked, mean_of, runs_of
from elmo_bench.reporting.tables.outcomes import Comparison, Outcome, Scales, compared
from elmo_bench.reporting.tables.tables import paper_score

# Gains.

GAINS = ("compared", "gain", "95 % interval", "p, seeds", "p, items of each seed", "p, Holm",
         "smallest gain to be seen", "seeds")  # fmt: skip


def gains(scales: Scales) -> Chapter:
    """Every gain of ELMo over a baseline with the same other settings, and the paper's comparison as a picture."""
    tables = [table for scale, outcomes in scales.items() if (table := _gain_table(scale, outcomes)).rows]
    charts = [
        forest(f"gains-{scale}", f"Gains with 95 % intervals, scale {scale}", {scale: mains})
        for scale, mains in compared(scales).items()
    ]
    return Chapter("gains", "Gains with intervals", [READING] if tables else [], tables, charts)


def _gain_table(scale: str, outcomes: Sequence[Outcome]) -> Table:
    rows = [_gain_row(each) for outcome in outcomes for each in outcome.comparisons]
    return Table(f"Gains, scale {scale}", "", GAINS, rows)


def _gain_row(each: Comparison) -> list[str | Number]:
    gain, runs = each.gain, runs_of(each.treated, each.control)
    name = f"{each.task}: {each.treated.name}, biLM {each.treated.bilm}, against {each.control.name}"
    besides = in_words(other_changes(each.treated.first, each.control.first))
    also = (f"besides ELMo: {', '.join(besides)}",) if besides else ()
    noted = (f"interval: {gain.note}",) if gain.note else ()
    items = ", ".join(_p(p) for p in gain.p_items if p is not None)
    return [
        Number(name, [], (*also, *noted)),
        Number(f"{gain.mean:+.2f}", runs),
        *(interval(gain), _p(gain.p_seeds), items, _p(gain.p_holm)),
        "" if gain.smallest is None else f"{gain.smallest:.2f}",
        " + ".join(map(str, gain.seeds)),
    ]


def _p(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}" if value >= 0.001 else "< 0.001"


# Scores.

PERCENT = "Percent, mean ± sample standard deviation over the seeds; dev is that of the selected epoch."
SPLITS = ("dev", "test")
SCORES = ("arm", "biLM", "seeds", "dev", "test", "the paper, test")
FURTHER = ("arm", "seeds", "metric", "dev", "test")
SEEDS = "The seeds of a row open to its runs."
PAGES = "Arms as their pages have them, without variants."


def scores(scales: Scales) -> Chapter:
    """The monitored metric of every group of runs, a table for each task and scale."""
    tables = [_score_table(outcome) for outcomes in scales.values() for outcome in outcomes]
    return Chapter("scores", "Scores", [PERCENT, SEEDS] if tables else [], tables)


def _score_table(outcome: Outcome) -> Table:
    rows = [_score_row(group, outcome.metric) for group in outcome.groups]
    return Table(f"{outcome.task}, scale {outcome.scale}: {outcome.metric}", "", SCORES, rows)


def _score_row(group: Group, metric: str) -> list[str | Number]:
    both = (statistics.scores(group.records, split, metric) for split in SPLITS)
    return [group.name, group.bilm or "none", _opening(group, metric), *both, paper_score(group.first, metric)]


def _seeds(group: Group) -> str:
    return statistics.ranges([record["seed"] for record in group.records])


def further_metrics(scales: Scales) -> Chapter:
    """Precision, recall and whatever else the tasks measure besides the monitored metric."""
    tables = [table for outcomes in scales.values() for outcome in outcomes if (table := _further(outcome)).rows]
    return Chapter("metrics", "Further metrics", [PAGES, SEEDS] if tables else [], tables)


def _further(outcome: Outcome) -> Table:
    named = [(g, name) for g in _unchanged(outcome) for name in _shared(g) if name != outcome.metric]
    rows: list[list[str | Number]] = [
        [group.name, _opening(group, name), name, *(statistics.scores(group.records, split, name) for split in SPLITS)]
        for group, name in named
    ]
    return Table(f"{outcome.task}, scale {outcome.scale}", "", FURTHER, rows)


def _shared(group: Group) -> list[str]:
    """The metrics that dev and test have."""
    dev, test = (group.first["metrics"][split] for split in SPLITS)
    return [name for name in test if name in dev]


def _unchanged(outcome: Outcome) -> list[Group]:
    """The groups of arms as their pages have them."""
    return [group for group in outcome.groups if not group.first["variant"]]


def _opening(group: Group, metric: str) -> Number:
    """The seeds of a group, with each run's test score."""
    runs = [linked(record, f"{record['metrics']['test'][metric]:.2f}") for record in group.records]
    return Number(_seeds(group), runs)


# Cost.

COST = ("arm", "seeds", "time a run", "tokens a second", "peak memory", "parameters", "device")


def cost(scales: Scales) -> Chapter:
    """Time, speed, memory and machine of every group of runs."""
    words = [*(_total(scale, outcomes) for scale, outcomes in scales.items()), PAGES, SEEDS] if scales else []
    tables = [_cost_table(outcome) for outcomes in scales.values() for outcome in outcomes]
    return Chapter("cost", "Cost", words, tables)


def _total(scale: str, outcomes: Sequence[Outcome]) -> str:
    records = [record for outcome in outcomes for record in outcome.records]
    hours = sum(record["seconds"] for record in records) / 3600
    dirty = sum(bool(record.get("dirty")) for record in records)
    changed = f" {dirty} of them: code with uncommitted changes." if dirty else ""
    return f"Scale {scale}: {len(records)} recorded runs took {hours:.1f} hours together.{changed}"


def _cost_table(outcome: Outcome) -> Table:
    rows = [_cost_row(group) for group in _unchanged(outcome)]
    return Table(f"{outcome.task}, scale {outcome.scale}", "Means over the seeds.", COST, rows)


def _cost_row(group: Group) -> list[str | Number]:
    columns = (("seconds", "{:,.0f} s"), ("tokens_per_second", "{:,.0f}"), ("peak_memory_mib", "{:,.0f} MiB"),
               ("parameters", "{:,.0f}"))  # fmt: skip
    numbers = [mean_of(group, _values(group, key), text) for key, text in columns]
    opening = Number(_seeds(group), numbers[0].runs)
    return [group.name, opening, *(each.text for each in numbers), "; ".join(sorted({*map(_device, group.records)}))]


def _values(group: Group, key: str) -> dict[str, float]:
    return {record["run"]: record[key] for record in group.records if record.get(key)}


def _device(record: Record) -> str:
    machine = record["machine"]
    name = machine.get("gpu") or machine["cpu"]
    return f"{name}, {machine['accelerator']}, {machine['threads']} of {machine['cores']} cores"
