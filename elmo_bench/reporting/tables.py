"""Records as tables: one for every task and scale, and the tasks of a scale side by side; `report` writes them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import groupby, product
from pathlib import Path
from typing import NamedTuple

from elmo_bench.experiment.run_names import arm, is_default
from elmo_bench.experiment.store import Record, grouped, mean_and_deviation
from elmo_bench.system.errors import UserError

HEADER = ("arm", "biLM", "seeds", "dev {m}", "test {m}", "paper, test", "s_j of the layers; γ", "time a run")
SIDE_BY_SIDE = (
    "task", "test", "baseline", "+ELMo", "gain", "vectors=text: baseline", "+ELMo", "gain", "the paper",
)  # fmt: skip
SCALES = ("paper", "open", "mini")


class Section(NamedTuple):
    """A table for one task at one scale, or with a picture below it."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    remarks: list[str]
    picture: Path | None = None


def sections(records: Iterable[Record]) -> list[Section]:
    """A section for every task and scale that has records: real data first, mini last."""
    return [section(place) for place in _places(records)]


def _places(records: Iterable[Record]) -> list[list[Record]]:
    """The records of every task and scale, in the order of the report."""
    places: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        places.setdefault((record["scale"], record["task"]), []).append(record)
    order = {scale: i for i, scale in enumerate(SCALES)}
    return [places[place] for place in sorted(places, key=lambda place: (order.get(place[0], len(SCALES)), place))]


def section(records: list[Record]) -> Section:
    """The table of one task at one scale: the baseline, +ELMo as the task's page has it, then the variants."""
    groups = sorted(grouped(records).values(), key=_order)
    newest = max(records, key=lambda record: record["finished"])
    metric = newest["config"]["task"]["monitor"]
    return Section(
        title=f"{newest['task']}, scale {newest['scale']}",
        note=newest["config"]["scale"]["note"],
        header=tuple(cell.format(m=metric) for cell in HEADER),
        rows=[_row(group, metric) for group in groups],
        remarks=[*_gains(groups, metric), *_details(groups, metric), *_machines(records)],
    )


def overview(records: Iterable[Record]) -> list[Section]:
    """For every scale a table with a row for each task and biLM: the page as it stands, and with vectors=text."""
    found = []
    places = _places(record for record in records if record["bilm"]["name"] != "untrained")
    for scale, tasks in groupby(places, key=lambda place: place[0]["scale"]):
        here = list(tasks)
        rows = [row for place in here for row in _side_by_side(place)]
        found.append(
            Section(f"all tasks, scale {scale}", here[0][0]["config"]["scale"]["note"], SIDE_BY_SIDE, rows, [])
        )
    return found


def _side_by_side(records: list[Record]) -> list[tuple[str, ...]]:
    """The rows of one task at one scale."""
    groups = list(grouped(records).values())
    metric = groups[0][0]["config"]["task"]["monitor"]
    rows = []
    for bilm in sorted({group[0]["bilm"]["name"] for group in groups} - {None}) or [None]:
        arms = {}  # by whether they have ELMo, and vectors=text
        for group in groups:
            changes = {**group[0]["variant"], "elmo.where": "none"}
            text = changes.pop("vectors", None) == "text"
            if group[0]["bilm"]["name"] in (None, bilm) and is_default(changes):
                arms[group[0]["bilm"]["name"] is not None, text] = group
        shown = {which: f"{_scores(group, 'test', metric)} ({len(group)})" for which, group in arms.items()}
        means = {which: _statistics(group, "test", metric)[0] for which, group in arms.items()}
        gains = [f"{means[True, text] - means[False, text]:+.2f}" if {(True, text), (False, text)} <= set(arms) else ""
                 for text in (False, True)]  # fmt: skip
        before, after = _of_paper(groups[0][0], metric)
        paper = "" if before is None or after is None else f"{before}, {after}: {after - before:+.2f}"
        cells = [shown.get((elmo, text), "") for text in (False, True) for elmo in (False, True)]
        rows.append((groups[0][0]["task"], metric, *cells[:2], gains[0], *cells[2:], gains[1], paper))
    return rows


def _of_paper(record: Record, metric: str) -> tuple[float | None, float | None]:
    """The paper's baseline and +ELMo."""
    figures = record["config"]["task"].get("paper") or {}
    before, after = (figures.get(key) for key in ("baseline", "elmo"))
    if isinstance(before, dict):
        before = before.get(metric)
    if isinstance(after, dict):
        after = after.get(metric)
    return before, after


def figures(results_root: str | Path) -> list[Section]:
    """A section for every JSON file of the folder `figures`.

    Raises:
        UserError: a file that is none of a figure's.
    """
    found = []
    for path in sorted((Path(results_root) / "figures").glob("*.json")):
        try:
            page = json.loads(path.read_text(encoding="utf-8"))
            rows = [tuple(row) for row in page["rows"]]
            section = Section(
                page["title"], page["note"], tuple(page["header"]), rows, [], path.parent / page["picture"]
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"not a readable figure ({error!r}); remove it and make it again", path) from None
        found.append(section)
    return found


def _order(group: list[Record]) -> tuple:
    baseline = group[0]["config"]["elmo"]["where"] == "none"
    return (
        not baseline,
        not is_default(group[0]["variant"]),
        group[0]["bilm"]["name"] or "",
        arm(group[0]),
        group[0]["group"],
    )


def _row(group: list[Record], metric: str) -> tuple[str, ...]:
    return (
        arm(group[0]),
        group[0]["bilm"]["name"] or "-",
        _ranges([record["seed"] for record in group]),
        _scores(group, "dev", metric),
        _scores(group, "test", metric),
        _paper(group[0], metric),
        _weights(group),
        _time(mean_and_deviation([record["seconds"] for record in group])[0]),
    )


def _statistics(group: list[Record], split: str, metric: str) -> tuple[float, float | None]:
    return mean_and_deviation([record["metrics"][split][metric] for record in group])


def _scores(group: list[Record], split: str, metric: str) -> str:
    mean, deviation = _statistics(group, split, metric)
    return f"{mean:.2f}" + ("" if deviation is None else f" ± {deviation:.2f}")


def _paper(record: Record, metric: str) -> str:
    """The paper's figure, beside its own two arms only."""
    if not is_default(record["variant"]) or record["bilm"]["name"] == "untrained":
        return ""
    before, after = _of_paper(record, metric)
    if record["config"]["elmo"]["where"] == "none":
        return "" if before is None else f"{before}"
    deviation = record["config"]["task"]["paper"].get("elmo_deviation") if after is not None else None
    return "" if after is None else f"{after}" + ("" if deviation is None else f" ± {deviation}")


def _weights(group: list[Record]) -> str:
    """Mean layer weights and gamma at the selected epochs, for each place."""
    cells = []
    for place in group[0]["layer_weights"]:
        chosen = [record["layer_weights"][place][record["epoch"] - 1] for record in group]
        s = " ".join(f"{sum(column) / len(column):.2f}" for column in zip(*chosen, strict=True))
        gamma = mean_and_deviation([record["gamma"][place][record["epoch"] - 1] for record in group])[0]
        cells.append(f"{place}: {s}; {gamma:.2f}")
    return ", ".join(cells)


def _gains(groups: list[list[Record]], metric: str) -> list[str]:
    """What ELMo as the task's page has it adds to each baseline with the same other settings."""
    remarks = []
    for group, baseline in product(groups, groups):
        if not _compares(group[0], baseline[0]):
            continue
        (before, d0), (after, d1) = (_statistics(each, "test", metric) for each in (baseline, group))
        spread = "" if d0 is None or d1 is None else f" (the two deviations together: {d0 + d1:.2f})"
        gain = f"{after - before:+.2f} test {metric}{spread}"
        remarks.append(f"{arm(group[0])}, biLM {group[0]['bilm']['name']}, against the {arm(baseline[0])}: {gain}.")
    before, after = _of_paper(groups[0][0], metric)
    if remarks and before is not None and after is not None:
        remarks.append(f"The paper's gain: {after - before:+.2f}.")
    return remarks


def _compares(record: Record, baseline: Record) -> bool:
    """Whether they differ in ELMo alone, or in the word vectors besides."""
    if record["config"]["elmo"]["where"] == "none" or baseline["config"]["elmo"]["where"] != "none":
        return False
    one, other = ({key: value for key, value in r["variant"].items() if key != "vectors"} for r in (record, baseline))
    return not any(key.startswith("elmo.") for key in one) and {**one, "elmo.where": "none"} == other


def _details(groups: list[list[Record]], metric: str) -> list[str]:
    """What else the metric says of test, for each arm, and the most memory that a run of it took."""
    remarks = []
    for group in groups:
        others = [f"{name} {_scores(group, 'test', name)}" for name in group[0]["metrics"]["test"] if name != metric]
        peaks = [record["peak_memory_mib"] for record in group if record.get("peak_memory_mib")]
        told = [f"test {', '.join(others)}"] if others else []
        told += [f"peak memory {max(peaks):,} MiB"] if peaks else []
        if told:
            bilm = group[0]["bilm"]["name"]
            remarks.append(f"{arm(group[0])}{f', biLM {bilm}' if bilm else ''}: {'; '.join(told)}.")
    return remarks


def _machines(records: list[Record]) -> list[str]:
    described = {(m.get("gpu") or m["cpu"], m["cores"], m["threads"], m["accelerator"])
                 for m in (record["machine"] for record in records)}  # fmt: skip
    shown = [
        f"{name} ({cores} cores, {threads} threads, {accelerator})"
        for name, cores, threads, accelerator in sorted(described)
    ]
    dirty = sum(bool(record.get("dirty")) for record in records)
    return [
        f"Machine: {'; '.join(shown)}."
        + (f" {dirty} of {len(records)} runs: code with uncommitted changes." if dirty else "")
    ]


def _ranges(seeds: list[int]) -> str:
    """[1, 2, 3, 7] -> "1-3, 7"."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _time(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )
