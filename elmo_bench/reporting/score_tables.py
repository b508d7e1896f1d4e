"""Tables of records: for each task and scale, for each scale with its tasks side by side, beside the reference runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from types import MappingProxyType

from elmo_bench.configuration.keys import flat
from elmo_bench.records.frame import is_main
from elmo_bench.records.record import Record
from elmo_bench.records.store import read_all
from elmo_bench.records.times import in_time, typical
from elmo_bench.reporting import gains
from elmo_bench.reporting.gains import (
    EVERY,
    Asked,
    Comparison,
    Group,
    Outcome,
    Scales,
    by_scale,
    differences,
    largest,
    paper_gain,
    paper_scores,
    ranges,
    rising_remark,
    settings_text,
    short,
)
from elmo_bench.reporting.section import Number, Section
from elmo_bench.system import places

Row = tuple[str, ...]
HEADER = ("arm", "biLM", "seeds", "dev {m}", "test {m}", "paper, test", "s_j of the layers; γ", "computing a run")
BESIDE = ("arm", "biLM", "yours: test {m}", "seeds", "reference runs: test {m}", "seeds", "paper")
CONTEXT = "context (over layer 0)"  # +ELMo less its layer 0
ALONE = "There is no reference run with these settings."
REFERENCE = "Reference runs: the project's records with the same settings, mean ± sample standard deviation."
SIDE_BY_SIDE = ("task", "test", "word vectors", "baseline", "+ELMo", "gain", CONTEXT, "the paper")
HAS_READ = (
    "Dev scores with this biLM are too high: {}. Of the verdicts on findings, only that on perplexity uses such scores."
)

Overlaps = Mapping[tuple[str, str], Sequence[str]]  # what the biLM has read of dev, by scale and task


def sections(records: Iterable[Record], asked: Asked = EVERY) -> list[Section]:
    """For every task and scale that has records the scores and the gains: real data first, mini last."""
    return [part for each in _shown(records, asked) for part in (scores(each), *gains_of(each))]


def _shown(records: Iterable[Record], asked: Asked) -> list[Outcome]:
    return [each for here in by_scale(records, asked).values() for each in here if each.groups]


def scores(outcome: Outcome, overlaps: Overlaps = MappingProxyType({})) -> Section:
    """The scores of one task at one scale, a row for each arm, with remarks below."""
    rows, details, records = [], [], outcome.records
    for group in outcome.groups:
        first = group.first
        means = {place: [f"{mean:.2f}" for mean in group.weights(place)] for place in first.layer_weights}
        rows.append(
            (
                group.name,
                first.bilm_name or "-",
                Number(group.seeds, group.runs(*map("{:.2f}".format, group.scores()))),
                group.mean("dev"),
                group.mean(),
                _paper_score(first, outcome.metric),
                ", ".join(f"{place}: {' '.join(each)}; {gamma}" for place, (*each, gamma) in means.items()),
                in_time(typical(group.records)),
            )
        )
        others = [f"{name} {group.mean('test', name)}" for name in first.metrics["test"] if name != outcome.metric]
        peak = max(record.peak_memory_mib or 0 for record in group.records)
        figures = [f"test {', '.join(others)}"] * bool(others) + [f"peak memory {peak:,} MiB"] * bool(peak)
        if figures:
            name = f"{group.name}, biLM {first.bilm_name}" if first.bilm_name else group.name
            details.append(f"{name}: {'; '.join(figures)}.")
    machines = {(m.get("gpu") or m["cpu"], m["cores"], m["threads"], m["accelerator"])
                for m in (record.machine for record in records)}  # fmt: skip
    listed = [f"{name} ({cores} cores, {threads} threads, {kind})"
              for name, cores, threads, kind in sorted(machines, key=str)]  # fmt: skip
    dirty = sum(bool(record.dirty) for record in records)
    changed = f" {dirty} of {len(records)} runs: code with uncommitted changes." if dirty else ""
    seen = [HAS_READ.format(each) for each in overlaps.get((outcome.scale, outcome.task), [])]
    remarks = [*seen, *rising_remark(rows), *details]
    return Section(
        f"{outcome.task}, scale {outcome.scale}",
        outcome.note,
        tuple(cell.format(m=outcome.metric) for cell in HEADER),
        rows,
        [*remarks, f"Machine: {'; '.join(listed)}.{changed}"],
    )


def _paper_score(record: Record, metric: str) -> str:
    """The paper's figure, for the paper's comparison only."""
    figure = paper_scores(record, metric)[record.has_elmo]
    if figure is None or not is_main(record):
        return ""
    deviation = record.paper.get("elmo_deviation") if record.has_elmo else None
    return f"{figure}" + ("" if deviation is None else f" ± {deviation}")


# The gains of a task: arms with ELMo over baselines, with intervals and tests.

GAINS = ("arm", "over", "seeds", "dev {m}", "test {m}", "p", "power", "clusters")
GAINS_NOTE = "In percent points, with 95 % intervals."


def gains_of(outcome: Outcome) -> list[Section]:
    """The gains of a task at one scale, if it has a baseline to compare with.

    Its remarks are on what an arm changes besides ELMo, on what intervals leave out (each limit once, with its rows
    from 1), and on clusters of examples that carry much of a gain.
    """
    if not outcome.comparisons:
        return []
    rows, remarks, notes, carried = [], [], {}, []
    for i, each in enumerate(outcome.comparisons, start=1):
        test, sizes, arms = each.test, each.test.seeds, (each.treated, each.control)
        found = gains.of_models(*arms)
        known = ", ".join(gains.p_text(p, "-") for p in found)
        fold = [f"p of these two models, seed by seed, over the test examples alone: {known}"] * any(
            p is not None for p in found
        )
        rows.append(
            (
                f"{each.treated.name}, biLM {each.treated.first.bilm_name}",
                each.control.name,
                str(sizes[0]) if sizes[0] == sizes[1] else f"{sizes[0]}, {sizes[1]}",
                str(each.dev),
                Number(str(test), [run for arm in arms for run in arm.runs()], fold=fold),
                gains.p_text(test.p, "-"),
                "" if test.p is None or test.spread is None else f"{test.spread.least:.2f}",
                test.clusters,
            )
        )
        ours, _ = differences([flat(arm.first.settings) for arm in arms])
        others = {k: value for k, value in ours.items() if k.split(".")[0] not in ("elmo", "bilm", "vectors", "seed")}
        if changed := ", ".join(settings_text(others)):
            remarks.append(f"{rows[-1][0]}, against the {each.control.name}: besides ELMo, it has {changed}.")
        if test.note:
            notes.setdefault(test.note, []).append(i)
        if test.carried:
            carried.append(f"Row {i}, of {test.clusters}: {test.carried}.")
    every = "All intervals" if len(rows) > 1 else "The interval"
    for note, numbers in notes.items():
        some = f"Row{'s' * (len(numbers) > 1)} {ranges(numbers)}"
        remarks.append(f"{every if len(numbers) == len(rows) else some}: {note}.")
    paper = paper_gain(outcome.records[0])
    seeds = sorted({(min(each.test.seeds), max(each.test.seeds)) for each in outcome.comparisons})
    theirs = [f"The paper's gain: {paper}."] if paper else []
    header = tuple(cell.format(m=outcome.metric) for cell in GAINS)
    title = f"{outcome.task}, scale {outcome.scale}: gains of ELMo"
    return [Section(title, GAINS_NOTE, header, rows, [*remarks, *carried, *theirs, *map(gains.shown_by, seeds)])]


# The tasks of a scale side by side.

NO_CONTEXT = (
    "+ELMo is not shown to be better than its layer without context (`elmo.layers=0`): {}. Its gain there over the "
    "baseline is not shown to come from context."
)
CONTROL = (
    "Control (`vectors=random`): word vectors in both models start random and are trained with the task. Here ELMo "
    "also replaces pre-trained word vectors, unlike in the paper's comparison."
)


def overview(scales: Scales) -> list[Section]:
    """For each scale the paper's comparison, and the same without pre-trained word vectors.

    They have no column of context if it is unknown.
    """
    found, at = [], SIDE_BY_SIDE.index(CONTEXT)
    for (scale, here), random in product(scales.items(), (False, True)):
        title, note = f"all tasks, scale {scale}", CONTROL if random else here[0].note
        rows = [row for each in here for row in _side_by_side(each, random)]
        header, rising = SIDE_BY_SIDE, rising_remark(rows)
        remarks = [] if random else [*context_remark([each.main for each in here if each.main]), *not_recorded(here)]
        if not any(row[at] for row in rows):
            header, *rows = ((*row[:at], *row[at + 1 :]) for row in (header, *rows))
        if rows or not random:
            title += ", without pre-trained word vectors" * random
            found.append(Section(title, note, header, rows, [*remarks, *rising]))
    return found


def context_remark(mains: Sequence[Comparison]) -> list[str]:
    """The tasks in which +ELMo is not shown to be better than its layer without context, if compared."""
    unclear = [each for each in mains if each.context and each.context.verdict != "clear"]
    listed = "; ".join(f"{each.title} {each.context}, {each.context and each.context.verdict}" for each in unclear)
    return [NO_CONTEXT.format(listed)] if unclear else []


def not_recorded(tasks: Sequence[Outcome]) -> list[str]:
    """A line on missing runs of the paper's comparison, for the tasks of one scale; nothing if it is complete."""
    recorded = {(each.task, record.arm) for each in tasks for record in each.records if is_main(record)}
    by_arm = {arm: [each.task for each in tasks if (each.task, arm) not in recorded] for arm in ("baseline", "elmo")}
    missing = [f"{arm} of {', '.join(names)}" for arm, names in by_arm.items() if names]
    command = f"make reproduce TASK=... SCALE={tasks[0].scale}"
    return [f"Not recorded yet: {'; '.join(missing)} (`{command}`)."] if missing else []


def _side_by_side(outcome: Outcome, random: bool) -> list[Row]:
    """The rows of one task at one scale: every biLM beside the baseline with the same word vectors and data.

    A row names its differences from the others in biLM, data and files of vectors of the same name; and a biLM and data
    that are not the scale's own.
    """

    def inputs(group: Group) -> Row:
        return group.first.vectors, *group.first.inputs

    here = [group for group in outcome.groups if is_main(group.first, random)]
    baselines = largest([group for group in here if not group.first.has_elmo], inputs)
    elmos = [group for group in here if group.first.has_elmo]
    elmos = largest(elmos, lambda group: (inputs(group), group.first.bilm_name, group.first.weights))
    pairs = [(baselines.get(alike), elmo) for (alike, *_), elmo in elmos.items()]
    pairs += [(group, None) for each, group in baselines.items() if each not in {alike for alike, *_ in elmos}]
    runs = [next(filter(None, pair)).first for pair in pairs]
    own, data = (
        {run.config["scale"].get("bilm") or run.scale for run in runs},
        {(*run.own_data.values(), run.data_sha256) for run in runs},
    )
    bilms, weights = ({getattr(elmo.first, key) for elmo in elmos.values()} for key in ("bilm_name", "weights"))
    files = {(run.vectors, *run.vector_files) for run in runs}
    before, after = paper_scores(outcome.records[0], outcome.metric)
    paper = "" if before is None or after is None else f"{before}, {after}: {after - before:+.2f}"
    rows = []
    for (baseline, elmo), run in zip(pairs, runs, strict=True):
        marks = [f"biLM {elmo.first.bilm_name}"] if elmo and len(bilms | own) > 1 else []
        if elmo and elmo.first.weights and len(weights) > len(bilms):
            marks.append(f"biLM {short(elmo.first.weights)}")
        if len(files) > len({name for name, *_ in files}):
            marks += [f"vectors {short(file)}" for file in run.vector_files[:1]]
        named = [
            *run.own_data.values(),
            *([short(run.data_sha256)] if len(data) > len({each[:-1] for each in data}) else []),
        ]
        marks += [f"data {', '.join(named)}"] if named else []
        task = outcome.task + (f" ({'; '.join(marks)})" if marks else "")
        arms = (each and f"{each.mean()} ({len(each.records)}{each.rising})" for each in (baseline, elmo))
        found = next((each for each in outcome.comparisons if (each.control, each.treated) == (baseline, elmo)), None)
        shown = (*arms, found and found.test, found and found.context)
        rows.append((task, outcome.metric, run.vectors, *(str(each or "") for each in shown), paper))
    return rows


# A user's own results beside the reference runs and the paper, arm by arm.


def beside(records: Iterable[Record], asked: Asked = EVERY) -> list[Section]:
    """For every task and scale of a user's records, a table of the arms, and below them the gain of +ELMo and the part
    of it that is context."""
    return [*map(_beside, _shown(records, asked))]


def _beside(own: Outcome) -> Section:
    reference, metric, rows = read_all(places.RECORDED, own.scale, own.task), own.metric, []
    theirs = sorted(reference, key=lambda record: record.seed)
    groups = sorted(own.groups, key=lambda group: (group.first.has_elmo, group.name))
    for group in groups:
        first, alike = group.first, [record for record in theirs if record.group == group.first.group]
        other = Group(alike, metric=metric) if alike else None
        recorded = [other.mean(), other.seeds] if other else ["", ""]
        bilm, paper = first.bilm_name or "-", _paper_score(first, metric)
        rows.append((group.name, bilm, group.mean(), group.seeds, *recorded, paper))
    alike = {group.first.group for group in groups}
    remarks = [] if alike & {record.group for record in theirs} else [ALONE]
    if main := own.main:
        arms = [arm.first.group for arm in (main.treated, main.control)]
        every = Outcome(reference).comparisons if reference else []  # from all runs, for the report's intervals
        same = next((each for each in every if [each.treated.first.group, each.control.first.group] == arms), None)
        gained, context = [main.test, same and same.test], [main.context, same and same.context]
        shown = [("gain of +ELMo", gained, paper_gain(main.treated.first))]
        for name, found, figure in [*shown, (CONTEXT, context, "")] if any(context) else shown:
            # an interval only if both arms have several seeds
            sure = [each if each is None or min(each.seeds) > 1 else replace(each, spread=None) for each in found]
            ours, others = (str(each or "") for each in sure)
            rows.append((name, "", ours, "", others, "", figure))
    title = f"{own.task}, scale {own.scale}: your runs, the reference runs and the paper"
    header = tuple(cell.format(m=metric) for cell in BESIDE)
    return Section(title, REFERENCE, header, rows, [*remarks, *rising_remark(rows)], shown=True)
