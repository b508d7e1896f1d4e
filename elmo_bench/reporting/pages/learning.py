"""How the models learn: from parts of the training data (the paper's Figure 1), and from epoch to epoch."""

from __future__ import annotations

from elmo_bench.records.store import Record
from elmo_bench.reporting.charts import curves
from elmo_bench.reporting.pages.parts import Chapter, Table
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.groups import Group, fraction
from elmo_bench.reporting.tables.numbers import Number, mean_of, score
from elmo_bench.reporting.tables.outcomes import Comparison, Outcome, Scales
from elmo_bench.reporting.tables.tables import newest_record

# The paper's Figure 1.

NO_FRACTIONS = (
    "No run on a part of the training data is recorded yet. In a checkout, make figure N=1 TASK=all runs them."
)
FRACTIONS = (
    "Test scores with a part of the training data, which follows from the seed; a smaller part lies in a larger."
)


def fewer_examples(scales: Scales) -> Chapter:
    """The paper's Figure 1: baseline and +ELMo on parts of the training data."""
    found = [(outcome, arms) for outcomes in scales.values() for outcome in outcomes if (arms := _by_fraction(outcome))]
    charts = [curves.fractions(arms, outcome.metric) for outcome, arms in found]
    tables = [_fraction_table(outcome, arms) for outcome, arms in found]
    return Chapter("fractions", "Fewer examples (the paper's Figure 1)",
                   [FRACTIONS, curves.BAND] if found else [NO_FRACTIONS], tables, charts)  # fmt: skip


def _by_fraction(outcome: Outcome) -> dict[str, list[Group]]:
    """Baseline and +ELMo, each with its groups, of the biLM of the newest runs on a part; nothing without such runs."""
    parts = [group for group in outcome.groups if fraction(group.first) != 1]
    if not parts:
        return {}
    newest = max(parts, key=lambda group: (group.has_elmo, newest_record(group.records)["finished"]))
    fits = [g for g in outcome.groups if g.sha256 in (None, newest.sha256)]
    plain = [group for group in fits if not {*group.first["variant"]} - {"fraction"}]
    arms = {arm: [group for group in plain if group.first["arm"] == arm] for arm in ("baseline", "elmo")}
    return {arm: groups for arm, groups in arms.items() if groups}


def _fraction_table(outcome: Outcome, arms: dict[str, list[Group]]) -> Table:
    groups = sorted((g for each in arms.values() for g in each), key=lambda g: (fraction(g.first), g.has_elmo))
    header = ("training data", "arm", "dev", "test")
    rows = [_fraction_row(group, outcome.metric) for group in groups]
    return Table(f"{outcome.task}, scale {outcome.scale}: {outcome.metric}", "", header, rows, narrow=True)


def _fraction_row(group: Group, metric: str) -> list[str | Number]:
    share = f"{100 * fraction(group.first):g} %"
    return [share, group.first["arm"], score(group, "dev", metric), score(group, "test", metric)]


# Training.


def training(scales: Scales) -> Chapter:
    """The dev score after every epoch, and how soon +ELMo passes the baseline's best."""
    outcomes = [outcome for here in scales.values() for outcome in here if outcome.arms]
    charts = [chart for each in outcomes if (chart := curves.training(each.arms, each.metric)).data["lines"]]
    rows = [_row_of_passing(each, each.main) for each in outcomes if each.main and _has_updates(each.main)]
    header = ("task and scale", "baseline: updates to its best dev score", "+ELMo: updates until it passes that score")
    tables = [Table("How soon +ELMo passes the baseline", "Means over the seeds.", header, rows)] if rows else []
    return Chapter("training", "Training curves", [curves.BAND] if charts else [], tables, charts)


def _has_updates(main: Comparison) -> bool:
    """Whether the runs count their updates; the oldest records do not."""
    counted = all("selected_updates" in record for record in main.control.records)
    return counted and all("history" in record for record in main.treated.records)


def _row_of_passing(outcome: Outcome, main: Comparison) -> list[str | Number]:
    control, treated = main.control, main.treated
    best = statistics.score(control.records, "dev", outcome.metric)[0]
    first = {r["run"]: r["selected_updates"] for r in control.records}
    passed = {r["run"]: n for r in treated.records if (n := _updates_until(r, outcome.metric, best)) is not None}
    missing = len(treated.records) - len(passed)
    after = mean_of(treated, passed, "{:,.0f}")
    after = after._replace(below=(f"not passed by {missing} of {len(treated.records)} runs",)) if missing else after
    return [f"{outcome.task}, {outcome.scale}", mean_of(control, first, "{:,.0f}"), after]


def _updates_until(record: Record, metric: str, best: float) -> int | None:
    """The number of updates after which the dev score first exceeds `best`; None if it never does."""
    history = record.get("history", {})
    scores = zip(history.get("updates", []), history.get(f"dev.{metric}", []), strict=False)
    return next((updates for updates, score in scores if score is not None and score > best), None)
