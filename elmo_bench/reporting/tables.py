"""Tables of records: one for each task and scale, and one for each scale that compares its tasks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

from elmo_bench.experiment.store import Record
from elmo_bench.reporting import comparisons, ensembles, gains, statistics, table_files
from elmo_bench.reporting.differences import Earlier
from elmo_bench.reporting.figures import figures
from elmo_bench.reporting.groups import (
    BASELINE,
    ELMO,
    PAGES,
    Group,
    Main,
    arm_page,
    in_groups,
    newest_version,
    short,
)
from elmo_bench.reporting.section import Section
from elmo_bench.system.errors import UserError

HEADER = ("arm", "biLM", "seeds", "dev {m}", "test {m}", "paper, test", "s_j of the layers; γ", "time a run")
SIDE_BY_SIDE = ("task", "test", "word vectors", "baseline", "+ELMo", "gain", "gain of +ELMo with its own", "the paper")
SCALES = ("paper", "open", "mini")

__all__ = ["Section", "everything", "figures", "overview", "section", "sections"]


def everything(records: Sequence[Record], results_root: str | Path, swept: Sequence[Earlier] = ()) -> list[Section]:
    """The sections of a report: the overview tables, each task, the tables of sweeps, then the figures."""
    of_sweeps = [section for each in swept for section in table_files.sections(each)]
    return [*overview(records), *sections(records), *of_sweeps, *figures(results_root)]


def sections(records: Iterable[Record]) -> list[Section]:
    """For every task and scale that has records a section, and one of its gains: real data first, mini last."""
    parts = [part for place in by_place(records) for part in (section(place), gains_section(place))]
    return [part for part in parts if part is not None]


def by_place(records: Iterable[Record]) -> list[list[Record]]:
    """The records of each task and scale, in the order of the report."""
    places: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        places.setdefault((record["scale"], record["task"]), []).append(record)
    order = {scale: i for i, scale in enumerate(SCALES)}
    return [places[place] for place in sorted(places, key=lambda place: (order.get(place[0], len(SCALES)), place))]


def newest_record(records: Sequence[Record]) -> Record:
    return max(records, key=lambda record: record["finished"])


def monitored(records: Sequence[Record]) -> str:
    """The metric that the newest record of a task monitors. Raises `UserError` if another record lacks it."""
    metric = newest_record(records)["config"]["task"]["monitor"]
    for record in records:
        if any(metric not in record["metrics"][split] for split in ("dev", "test")):
            where = f"{record['run']} ({record['task']}, scale {record['scale']})"
            raise UserError(f"the record {where} has no {metric}, unlike others of the task; restore or remove it")
    return metric


def section(records: list[Record]) -> Section:
    """The table of one task at one scale: the baseline, +ELMo by the task's page, then the variants."""
    groups = sorted(in_groups(records), key=row_order)
    newest, metric = newest_record(records), monitored(records)
    return Section(
        title=f"{newest['task']}, scale {newest['scale']}",
        note=newest["config"]["scale"]["note"],
        header=tuple(cell.format(m=metric) for cell in HEADER),
        rows=[row for group in groups for row in (_row(group, metric), *ensembles.rows(group, metric))],
        remarks=[*_details(groups, metric), *_machines(records)],
    )


def gains_section(records: list[Record]) -> Section | None:
    """The gains of ELMo for one task at one scale; None without a baseline to compare with."""
    newest = newest_record(records)
    groups = sorted(in_groups(records), key=row_order)
    return comparisons.table(f"{newest['task']}, scale {newest['scale']}", groups, monitored(records))


def row_order(group: Group) -> tuple:
    is_variant = arm_page(group.first) not in (BASELINE, ELMO)
    return -group.version, group.has_elmo, is_variant, group.bilm or "", group.name, group.first["group"]


def _row(group: Group, metric: str) -> tuple[str, ...]:
    return (
        group.name,
        group.bilm or "-",
        statistics.ranges([record["seed"] for record in group.records]),
        statistics.scores(group.records, "dev", metric),
        statistics.scores(group.records, "test", metric),
        paper_score(group.first, metric),
        statistics.layer_weights(group.records),
        statistics.duration(group.records),
    )


def paper_score(record: Record, metric: str) -> str:
    """The paper's figure, for its two arms only."""
    arm = arm_page(record)
    if arm not in (BASELINE, ELMO) or record["bilm"]["name"] == "untrained":
        return ""
    before, after = statistics.of_paper(record, metric)
    if arm == BASELINE:
        return "" if before is None else f"{before}"
    deviation = record["config"]["task"]["paper"].get("elmo_deviation") if after is not None else None
    return "" if after is None else f"{after}" + ("" if deviation is None else f" ± {deviation}")


# Remarks.


def _details(groups: list[Group], metric: str) -> list[str]:
    """The other test metrics and the peak memory, for each arm."""
    remarks = []
    for group in groups:
        names = [name for name in group.first["metrics"]["test"] if name != metric]
        others = [f"{name} {statistics.scores(group.records, 'test', name)}" for name in names]
        peaks = [record["peak_memory_mib"] for record in group.records if record.get("peak_memory_mib")]
        told = [f"test {', '.join(others)}"] if others else []
        told += [f"peak memory {max(peaks):,} MiB"] if peaks else []
        if told:
            bilm = f", biLM {group.bilm}" if group.bilm else ""
            remarks.append(f"{group.name}{bilm}: {'; '.join(told)}.")
    return remarks


def _machines(records: list[Record]) -> list[str]:
    described = {(m.get("gpu") or m["cpu"], m["cores"], m["threads"], m["accelerator"])
                 for m in (record["machine"] for record in records)}  # fmt: skip
    shown = [
        f"{name} ({cores} cores, {threads} threads, {accelerator})"
        for name, cores, threads, accelerator in sorted(described)
    ]
    dirty = sum(bool(record.get("dirty")) for record in records)
    changed = f" {dirty} of {len(records)} runs: code with uncommitted changes." if dirty else ""
    return [f"Machine: {'; '.join(shown)}.{changed}"]


# The tasks of a scale side by side.


def overview(records: Iterable[Record]) -> list[Section]:
    """For each scale a table with a row for each task, biLM, data and static word vectors."""
    summaries = []
    places = by_place(record for record in records if record["bilm"]["name"] != "untrained")
    for scale, tasks in groupby(places, key=lambda place: place[0]["scale"]):
        here = list(tasks)
        rows = [row for place in here for row in _side_by_side(place)]
        note = here[0][0]["config"]["scale"]["note"]
        summaries.append(Section(f"all tasks, scale {scale}", note, SIDE_BY_SIDE, rows, []))
    return summaries


def _side_by_side(records: list[Record]) -> list[tuple[str, ...]]:
    """The rows of one task at one scale, of its newest recorded version: one for each biLM (and weights) of the main
    arms, and data.
    """
    groups = in_groups(records)
    metric = monitored(records)
    version = max(group.version for group in groups)
    older = [f"older version {version}"] if version < newest_version(records) else []
    groups = [group for group in groups if group.version == version]
    rows = []
    bilms = sorted({group.bilm for group in groups if group.bilm and arm_page(group.first) is not None}) or [None]
    for bilm in bilms:
        named = [f"biLM {bilm}"] if len(bilms) > 1 else []
        for marks, arms in _claims([g for g in groups if g.bilm in (None, bilm)]):
            marks = older + named + marks
            task = records[0]["task"] + (f" ({'; '.join(marks)})" if marks else "")
            paper = _gain_of_paper(records[0], metric)
            rows += [(task, metric, *cells, paper) for cells in _by_vectors(arms, metric)]
    return rows


def _claims(groups: Sequence[Group]) -> list[tuple[list[str], dict[Main, Group]]]:
    """The main arms for each weights of the biLM and each data among them, and how they differ in words."""
    main = [group for group in groups if arm_page(group.first) is not None]
    weights = list(dict.fromkeys(group.sha256 for group in main if group.bilm)) or [None]
    claims = []
    for data in list(dict.fromkeys(group.data for group in main)) or [None]:
        on_these = [group for group in main if group.data == data]
        used = [sha256 for sha256 in weights if any(g.bilm and g.sha256 == sha256 for g in on_these)]
        for sha256 in used or [None]:
            marks = [f"biLM {short(sha256)}"] if len(weights) > 1 and used else []
            marks += [f"data {short(data)}"] if len({group.data for group in main}) > 1 else []
            claims.append((marks, main_arms([g for g in on_these if not g.bilm or g.sha256 == sha256])))
    return claims


def main_arms(groups: Sequence[Group]) -> dict[Main, Group]:
    """The arms of the main comparison, by `arm_page`; of several groups the one with most seeds, then the newest."""
    arms: dict[Main, Group] = {}
    for group in sorted(groups, key=lambda g: (len(g.records), newest_record(g.records)["finished"], g.first["group"])):
        if (arm := arm_page(group.first)) is not None:
            arms[arm] = group
    return arms


def _by_vectors(arms: dict[Main, Group], metric: str) -> list[tuple[str, ...]]:
    """For each static word vectors: their name, baseline, +ELMo, its gain, and that of +ELMo with the page's own."""
    own, rows = arms.get(ELMO), []
    for vectors in dict.fromkeys(arm.vectors for arm in PAGES.values()):
        baseline, elmo = (arms.get(Main(has_elmo, vectors)) for has_elmo in (False, True))
        pair = [
            f"{statistics.scores(g.records, 'test', metric)} ({len(g.records)})" if g else "" for g in (baseline, elmo)
        ]
        across = "" if vectors == BASELINE.vectors else _gain(own, baseline)
        if baseline or elmo or vectors == BASELINE.vectors:
            rows.append((vectors, *pair, _gain(elmo, baseline), across))
    return rows


def _gain(elmo: Group | None, baseline: Group | None) -> str:
    return gains.in_words(gains.gain(elmo, baseline, permute=False)) if elmo and baseline else ""


def _gain_of_paper(record: Record, metric: str) -> str:
    before, after = statistics.of_paper(record, metric)
    return "" if before is None or after is None else f"{before}, {after}: {after - before:+.2f}"
