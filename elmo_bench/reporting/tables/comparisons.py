"""The table of gains of a task at one scale: which arms are compared, with intervals and tests."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from elmo_bench.reporting.section import Section
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.gains import Gain, gain, holm, in_words, p_in_words, shown_by
from elmo_bench.reporting.statistics.groups import Group, other_changes, vectors
from elmo_bench.reporting.statistics.groups import in_words as settings_in_words

HEADER = ("arm", "over", "seeds", "dev {m}", "test {m}", "p: items", "p: seeds", "p: Holm", "smallest")
COMPARED = {"baseline", "elmo", "glove", "elmo+glove", "text", "elmo+text", "untrained"}
NOTE = "In percent points, with 95 % intervals."


class Comparison(NamedTuple):
    """An arm with ELMo and a baseline, and the gain on either split."""

    treated: Group
    control: Group
    dev: Gain
    test: Gain


def comparisons(groups: Sequence[Group]) -> list[Comparison]:
    """Each arm of ELMo's with the settings of the task's page beside each baseline with the same other settings."""
    pairs = [(group, baseline) for group, baseline in product(groups, groups) if compares(group, baseline)]
    tests = holm([gain(*pair) for pair in pairs])
    dev = [gain(*pair, split="dev", permute=False) for pair in pairs]
    return [Comparison(*pair, *gains) for pair, *gains in zip(pairs, dev, tests, strict=True)]


def compares(group: Group, baseline: Group) -> bool:
    """Whether they differ only in ELMo: the word vectors, too, are the same."""
    if not group.has_elmo or baseline.has_elmo or not {group.first["arm"], baseline.first["arm"]} <= COMPARED:
        return False
    one, other = ((g.data, vectors(g.first), _others(g)) for g in (group, baseline))
    return not any(key.startswith("elmo.") for key in group.first["variant"]) and one == other


def _others(group: Group) -> dict[str, Any]:
    """What it changes on its arm's page besides the word vectors."""
    return {key: value for key, value in group.first["variant"].items() if key != "vectors"}


def table(title: str, groups: Sequence[Group], metric: str) -> Section | None:
    """The gains of a task at one scale; None if there are no arms to compare."""
    found = comparisons(groups)
    if not found:
        return None
    return Section(
        title=f"{title}: gains of ELMo",
        note=NOTE,
        header=tuple(cell.format(m=metric) for cell in HEADER),
        rows=[_row(each) for each in found],
        remarks=[*_besides(found), *_notes(found), *_paper(groups[0], metric), *_seeds(found)],
        numbers=[_numbers(each) for each in found],
    )


def _row(each: Comparison) -> tuple[str, ...]:
    test, sizes = each.test, each.test.seeds
    return (
        _name(each.treated),
        each.control.name,
        str(sizes[0]) if sizes[0] == sizes[1] else f"{sizes[0]}, {sizes[1]}",
        in_words(each.dev),
        in_words(test),
        ", ".join(map(_p, test.p_items)) if any(p is not None for p in test.p_items) else "",
        _p(test.p_seeds),
        _p(test.p_holm),
        "" if test.smallest is None else f"{test.smallest:.2f}",
    )


def _name(group: Group) -> str:
    return f"{group.name}, biLM {group.bilm}"


def _p(p: float | None) -> str:
    return "-" if p is None else p_in_words(p)


def _numbers(each: Comparison) -> dict[str, Any]:
    """For report.json."""
    names = {"arm": _name(each.treated), "over": each.control.name}
    gains = {split: value._asdict() for split, value in (("dev", each.dev), ("test", each.test))}
    return names | {split: {key: _rounded(value) for key, value in found.items()} for split, found in gains.items()}


def _rounded(value: Any) -> Any:
    """Numbers with six digits, so that they are the same on every machine."""
    if isinstance(value, float):
        return round(value, 6)
    return [_rounded(each) for each in value] if isinstance(value, list | tuple) else value


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


def _places(numbers: list[int], rows: int) -> str:
    if len(numbers) == rows:
        return "All intervals" if rows > 1 else "The interval"
    return f"Row{'s' * (len(numbers) > 1)} {statistics.ranges(numbers)}"


def _paper(group: Group, metric: str) -> list[str]:
    before, after = statistics.of_paper(group.first, metric)
    return [] if before is None or after is None else [f"The paper's gain: {after - before:+.2f}."]


def _seeds(found: Sequence[Comparison]) -> list[str]:
    """What these numbers of seeds can show."""
    return [shown_by(seeds) for seeds in sorted({min(each.test.seeds) for each in found})]
