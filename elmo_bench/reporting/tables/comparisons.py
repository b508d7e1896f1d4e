"""The table of gains of a task at one scale: arms with ELMo over baselines, with intervals and tests."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.reporting.section import Number, Section
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.gains import LARGE, in_words, influence_in_words, of_models, p_in_words, shown_by
from elmo_bench.reporting.statistics.groups import Group, other_changes
from elmo_bench.reporting.statistics.groups import in_words as settings_in_words
from elmo_bench.reporting.statistics.outcomes import Comparison, Outcome
from elmo_bench.reporting.tables.numbers import runs_of

HEADER = ("arm", "over", "seeds", "dev {m}", "test {m}", "p", "power", "clusters")
NOTE = "In percent points, with 95 % intervals."


def table(outcome: Outcome) -> Section | None:
    """The gains of a task at one scale; None if there are no arms to compare."""
    if not (found := outcome.comparisons):
        return None
    paper = statistics.gain_of_paper(outcome.records[0])
    return Section(
        title=f"{outcome.task}, scale {outcome.scale}: gains of ELMo",
        note=NOTE,
        header=tuple(cell.format(m=outcome.metric) for cell in HEADER),
        rows=[_row(each) for each in found],
        remarks=[
            *_besides(found),
            *_notes(found),
            *_influences(found),
            *([] if paper is None else [f"The paper's gain: {paper:+.2f}."]),
            *(shown_by(seeds) for seeds in sorted({(min(n), max(n)) for n in (each.test.seeds for each in found)})),
        ],
    )


def _row(each: Comparison) -> tuple[str, ...]:
    test, sizes = each.test, each.test.seeds
    return (
        _name(each.treated),
        each.control.name,
        str(sizes[0]) if sizes[0] == sizes[1] else f"{sizes[0]}, {sizes[1]}",
        in_words(each.dev),
        Number(in_words(test), runs_of(each.treated, each.control), fold=_of_models(each)),
        p_in_words(test.p, "-"),
        "" if test.p is None or test.spread is None else f"{test.spread.least:.2f}",
        test.clusters,
    )


def _name(group: Group) -> str:
    return f"{group.name}, biLM {group.first.bilm_name}"


def _of_models(each: Comparison) -> list[str]:
    """What the fold of a gain says of its single models: nothing of other seeds, so that no p is corrected for it."""
    found = of_models(each.treated, each.control)
    if all(p is None for p in found):
        return []
    known = ", ".join(p_in_words(p, "-") for p in found)
    return [f"p of these two models, seed by seed, over the test examples alone: {known}"]


# Remarks.


def _besides(found: Sequence[Comparison]) -> list[str]:
    """What an arm changes besides ELMo."""
    lines = []
    for each in found:
        if changes := settings_in_words(other_changes(each.treated.first, each.control.first)):
            arms = f"{_name(each.treated)}, against the {each.control.name}"
            lines.append(f"{arms}: besides ELMo, it has {', '.join(changes)}.")
    return lines


def _notes(found: Sequence[Comparison]) -> list[str]:
    """What the intervals leave out, each said once, with the rows (from 1) that it is about."""
    rows: dict[str, list[int]] = {}
    for i, each in enumerate(found, start=1):
        if each.test.note:
            rows.setdefault(each.test.note, []).append(i)
    return [f"{_places(numbers, len(found))}: {note}." for note, numbers in rows.items()]


def _influences(found: Sequence[Comparison]) -> list[str]:
    """The cluster that carries much of a gain, with the row (from 1) that it is about."""
    known = [(i, each.test.clusters, each.test.influence) for i, each in enumerate(found, start=1)]
    large = [(i, clusters, one) for i, clusters, one in known if one is not None and one.share > LARGE]
    return [f"Row {i}, of {clusters}: {influence_in_words(one)}." for i, clusters, one in large]


def _places(numbers: list[int], rows: int) -> str:
    if len(numbers) == rows:
        return "All intervals" if rows > 1 else "The interval"
    return f"Row{'s' * (len(numbers) > 1)} {statistics.ranges(numbers)}"
