"""results/replication.md: the findings of the paper, what the records say of each, and a verdict by one rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from math import isinf

from elmo_bench.configuration import tables
from elmo_bench.configuration.pages import title
from elmo_bench.records.record import with_changes
from elmo_bench.records.store import place
from elmo_bench.reporting.section import Number, Section, inert, pipes
from elmo_bench.reporting.statistics.findings import (
    CONTRADICTED,
    OPEN,
    RULE,
    SHOWN,
    UNTESTED,
    VERDICTS,
    Evaluated,
    FindingRow,
)
from elmo_bench.reporting.statistics.gains import p_in_words, verdict
from elmo_bench.reporting.statistics.groups import runs_of
from elmo_bench.reporting.statistics.intervals import LEVEL, Bounds
from elmo_bench.reporting.statistics.outcomes import Comparison, holm

TITLE = "The paper's findings"
INTRODUCTION = (
    "Written by `elmo-bench report` from the records; the files in `conf/sweep/` have an entry for each finding. "
    "Scale open is real text with a small biLM, mini a generated language: neither has the paper's data, so that the "
    "direction of a difference compares, and its size does not."
)
ROWS = ("task", "the paper", "ours", "95 % interval", "p", "verdict", "runs")
JUDGED = SHOWN, CONTRADICTED
MARKS = {SHOWN: "✓", CONTRADICTED: "✗", OPEN: "~", UNTESTED: ""}
LEGEND = (
    f"A cell is the difference on test: {MARKS[SHOWN]} shown, {MARKS[CONTRADICTED]} contradicted, {MARKS[OPEN]} not "
    "shown, – not tested; empty where the paper says nothing. In report.html the paper's figure stands below it, and "
    "it opens to its interval and its runs."
)


def counts(found: Iterable[Evaluated]) -> str:
    """ "12 shown, 3 contradicted, 5 not shown, 20 not tested": how many rows have each verdict."""
    number = Counter(row.verdict for each in found for row in each.rows)
    return ", ".join(f"{number[verdict]} {verdict}" for verdict in VERDICTS)


def summary(by_scale: Sequence[Sequence[Evaluated]]) -> str:
    """The sentences of the README."""
    sentences = [f"Scale {found[0].scale}: {counts(found)}." for found in by_scale if found]
    return " ".join([*sentences, "A row is a finding at one task ([all of them](results/replication.md))."])


def families(found: Sequence[Evaluated], mains: Sequence[Comparison]) -> str:
    """Which verdicts and main gains of a scale remain with p corrected for how many are tested; empty if none are.

    Rows by the method of Benjamini and Hochberg (1995), which takes them as independent, and by that of Benjamini and
    Yekutieli (2001), which does not; gains by Holm's.
    """
    from scipy.stats import false_discovery_control

    tested = [(each.finding.finding, row, row.p) for each in found for row in each.rows if row.p is not None]
    methods = {
        f"corrected for the {len(tested)} tested rows (Benjamini-Hochberg), ": "bh",
        "by Benjamini-Yekutieli, as rows share runs, ": "by",
    }
    parts = {}
    for words, method in methods.items():
        corrected = false_discovery_control([p for *_, p in tested], method=method) if tested else []
        named = [
            (row.verdict, ", ".join(filter(None, [finding, row.task and title(row.task)])), p)
            for (finding, row, _), p in zip(tested, corrected, strict=True)
        ]
        kinds = (_remaining(f"{kind} rows", [each[1:] for each in named if each[0] == kind]) for kind in JUDGED)
        parts[words] = " and ".join(filter(None, kinds))
    corrected = holm(mains)
    clear = [each for each in mains if verdict(each.test) == "clear"]
    named = [(with_changes(title(each.task), each.changes), corrected[each.task]) for each in clear]
    parts[f"for the {len(corrected)} main gains of one biLM (Holm), "] = _remaining("clear gains", named)
    said = [f"{words}{remain}" for words, remain in parts.items() if remain]
    return f"With p {'; '.join(said)}." if said else ""


def _remaining(kind: str, corrected: Sequence[tuple[str, float]]) -> str:
    """ "8 of 9 clear gains remain (not NER)"; empty if there are none."""
    lost = [name for name, p in corrected if p >= LEVEL]
    but = f" (not {'; '.join(lost)})" if lost else ""
    return f"{len(corrected) - len(lost)} of {len(corrected)} {kind} remain{but}" if corrected else ""


def markdown(by_scale: Sequence[Sequence[Evaluated]], mains: Mapping[str, Sequence[Comparison]] | None = None) -> str:
    """The page: the rule, each scale at a glance, then every finding with its runs and its command."""
    parts = [f"# {TITLE}", INTRODUCTION, RULE]
    for found in by_scale:
        table = glance(found)
        corrected = families(found, (mains or {}).get(found[0].scale, []))
        parts += [f"## {table.title}: {counts(found)}", corrected, table.note, pipes(table.header, table.rows)]
    for found in by_scale:
        parts.append(f"# Runs and commands, scale {found[0].scale}")
        for each in found:
            missing = [title(row.task) for row in each.rows if row.verdict == UNTESTED and row.task]
            lacking = f"; not recorded: {', '.join(missing)}" if missing else ""
            about = f"{each.finding.where}; shown by an interval {_region(*each.finding.bounds)}. `{each.command}`"
            rows = [
                (
                    title(row.task) if row.task else "-",
                    each.finding.paper.get(row.task, ""),
                    *_measured(row),
                    p_in_words(row.p),
                    "; ".join(filter(None, [row.verdict, _power(row, each.finding.bounds), row.note])),
                    runs(row, each.scale),
                )
                for row in each.rows
            ]
            parts += [f"### {each.finding.finding}", f"{about}{lacking}.", pipes(ROWS, rows)]
    return inert("\n\n".join(filter(None, parts)) + "\n")


def glance(found: Sequence[Evaluated]) -> Section:
    """A row for each finding and a column for each task; a finding on the biLM itself has one cell.

    A finding with several numbers of a task, as of two studies of one biLM, has as many rows.
    """
    spoken = {row.task for each in found for row in each.rows}
    columns, rows = [*tables.in_order(spoken - {""}), *({""} & spoken)], []
    for each in found:
        cells: dict[str, list[Number]] = {}
        for row in each.rows:
            cells.setdefault(row.task, []).append(_cell(each, row))
        for row in zip_longest(*(cells.get(task, []) for task in columns), fillvalue=""):
            rows.append((f"{each.finding.finding} ({each.finding.where})", *row))
    header = ("finding", *(title(task) if task else "biLM" for task in columns))
    return Section(f"Scale {found[0].scale}", LEGEND, header, rows, shown=True)


def _cell(each: Evaluated, row: FindingRow) -> Number:
    """The difference, below it the paper's figure, and in its fold the interval, the seeds and the command."""
    paper = each.finding.paper.get(row.task, "")
    text = f"{MARKS[row.verdict]} {_measured(row)[0]}".strip() or "–"
    seeds = " and ".join(str(len(group.records)) for group in row.groups)
    interval = f"95 % interval {_measured(row)[1]}" if row.interval else ""
    p = "" if row.p is None else f"p {p_in_words(row.p)}"
    command = each.command.replace("task=TASK", f"task={row.task}")
    fold = [row.verdict, interval, p, f"{seeds} seeds" if seeds else "", row.note, command]
    below = [f"paper: {paper}"] if paper else []
    return Number(text, runs_of(*row.groups), below, [*filter(None, fold)], row.verdict)


def _measured(row: FindingRow) -> tuple[str, str]:
    """The difference and its interval, "+3.06" and "+1.04 to +5.07"; empty where they are not known."""
    digits, unit = (1, " %") if row.unit == "%" else (2, "")
    value = "" if row.value is None else f"{row.value:+.{digits}f}{unit}"
    return value, " to ".join(f"{end:+.{digits}f}" for end in row.interval or ())


def _region(least: float, most: float) -> str:
    """ "above 0", "below 0.333", "from -1 to 1"."""
    if isinf(most):
        return f"above {least:g}"
    return f"below {most:g}" if isinf(least) else f"from {least:g} to {most:g}"


def _power(row: FindingRow, bounds: Bounds) -> str:
    """If a finding is not shown, the true difference that such runs show, or with two bounds how often one in the
    middle."""
    spread, unit, (least, most) = row.spread, row.unit, bounds
    if row.verdict != OPEN or not spread or row.p is None:
        return ""
    if not spread.others and not isinf(most - least):
        often = 100 * spread.power_between(bounds)
        return f"these runs show a true difference of {(least + most) / 2:g} {unit} in {often:.0f} % of cases"
    bound = most if isinf(least) else least
    away = f" from {bound:g}" if bound else ""
    shown = f"{float(f'{spread.least:.2g}'):g} {unit}".rstrip()  # in two digits, never as 1e+01
    return f"these runs show a true difference of {shown}{away} four times out of five"


def runs(row: FindingRow, scale: str) -> str:
    """Links to the records of the compared runs, one a seed."""
    links = (
        [f"[{each.seed}]({place('', scale, each.task, each.run).as_posix()})" for each in group.records]
        for group in row.groups
    )
    return " against ".join(map(", ".join, links))
