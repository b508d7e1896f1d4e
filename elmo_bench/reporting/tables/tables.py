"""Tables of records: for each task and scale, for each scale with its tasks side by side, beside the reference runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from elmo_bench.configuration.composing import ARMS
from elmo_bench.records.query import CONTEXT_FREE, is_control, is_main
from elmo_bench.records.record import Record
from elmo_bench.records.store import grouped, read_all
from elmo_bench.records.studies import LONG, SHARED, StudyRecord
from elmo_bench.records.times import in_time, typical
from elmo_bench.reporting.section import Number, Section
from elmo_bench.reporting.statistics import gains
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.gains import Gain
from elmo_bench.reporting.statistics.groups import Group, in_groups, other_changes, short
from elmo_bench.reporting.statistics.groups import in_words as settings_in_words
from elmo_bench.reporting.statistics.outcomes import Comparison, Outcome, Scales, by_place, largest, outcome
from elmo_bench.system import places

HEADER = ("arm", "biLM", "seeds", "dev {m}", "test {m}", "paper, test", "s_j of the layers; γ", "computing a run")
BESIDE = ("arm", "biLM", "yours: test {m}", "seeds", "reference runs: test {m}", "seeds", "paper")
CONTEXT = "context (over layer 0)"  # +ELMo less its layer 0
REFERENCE = "Reference runs: the project's records with the same settings, mean ± sample standard deviation."
SIDE_BY_SIDE = ("task", "test", "word vectors", "baseline", "+ELMo", "gain", CONTEXT, "the paper")

OVERLAP = (
    "The biLM's text has 13 running words in common with {dev} sentences of dev, and {test} of test. It flatters dev "
    "scores with this biLM and the epochs that they chose; no verdict on a finding rests on them."
)
CHANCE = 1.0  # percent of the longer sentences of dev: what is below it comes about by chance
Read = Mapping[tuple[str, str], Sequence[str]]  # sentences by scale and task


def sections(records: Iterable[Record]) -> list[Section]:
    """For every task and scale that has records a section, and one of its gains: real data first, mini last."""
    return [part for place in by_place(records) for part in sections_of(outcome(place), {})]


def sections_of(outcome: Outcome, read: Read) -> list[Section]:
    """The scores of one task at one scale and, with a baseline to compare with, its gains."""
    return [scores(outcome, read), *filter(None, [gains_of(outcome)])]


def scores(outcome: Outcome, read: Read) -> Section:
    """The scores of one task at one scale, a row for each arm; below them what a reader must know."""
    metric, overlaps = outcome.metric, read.get((outcome.scale, outcome.task), [])
    rows = [_row(group, metric) for group in outcome.groups]
    return Section(
        title=f"{outcome.task}, scale {outcome.scale}",
        note=outcome.note,
        header=tuple(cell.format(m=metric) for cell in HEADER),
        rows=rows,
        remarks=[
            *overlaps,
            *statistics.rising_in_words(rows),
            *_details(outcome.groups, metric),
            _machines(outcome.records),
        ],
    )


def _row(group: Group, metric: str) -> tuple[str, ...]:
    return (
        group.name,
        group.first.bilm_name or "-",
        statistics.seeds(group, metric),
        statistics.scores(group.records, "dev", metric),
        statistics.scores(group.records, "test", metric),
        paper_score(group.first, metric),
        statistics.layer_weights(group.records),
        in_time(typical(group.records)),
    )


def paper_score(record: Record, metric: str) -> str:
    """The paper's figure, for the paper's comparison only."""
    if not is_main(record):
        return ""
    before, after = statistics.of_paper(record, metric)
    if not record.has_elmo:
        return "" if before is None else f"{before}"
    deviation = record.paper.get("elmo_deviation") if after is not None else None
    return "" if after is None else f"{after}" + ("" if deviation is None else f" ± {deviation}")


def read(studies: Iterable[StudyRecord]) -> Read:
    """What the biLM has read of dev, if it is more than chance, by the records of `elmo-bench analysis.overlap`."""
    found: dict[tuple[str, str], list[str]] = {}
    for study in (study for study in studies if study.study == "overlap"):
        counts: dict[str, Counter[Any]] = {}  # of each task, by split and quantity
        for cell in study.cells:
            counts.setdefault(cell.source, Counter())[cell.split, cell.quantity] = int(cell.value)
        for task, known in counts.items():
            if 100 * known["dev", SHARED] > CHANCE * known["dev", LONG]:
                dev, test = (f"{known[s, SHARED]:,} of the {known[s, LONG]:,} longer" for s in ("dev", "test"))
                found.setdefault((study.scale, task), []).append(OVERLAP.format(dev=dev, test=test))
    return found


def _details(groups: Sequence[Group], metric: str) -> list[str]:
    """The other test metrics and the peak memory, for each arm."""
    remarks = []
    for group in groups:
        names = [name for name in group.first.metrics["test"] if name != metric]
        others = [f"{name} {statistics.scores(group.records, 'test', name)}" for name in names]
        peaks = [record.peak_memory_mib for record in group.records if record.peak_memory_mib]
        details = [f"test {', '.join(others)}"] if others else []
        details += [f"peak memory {max(peaks):,} MiB"] if peaks else []
        if details:
            bilm = f", biLM {group.first.bilm_name}" if group.first.bilm_name else ""
            remarks.append(f"{group.name}{bilm}: {'; '.join(details)}.")
    return remarks


def _machines(records: Sequence[Record]) -> str:
    described = {(m.get("gpu") or m["cpu"], m["cores"], m["threads"], m["accelerator"])
                 for m in (record.machine for record in records)}  # fmt: skip
    shown = [
        f"{name} ({cores} cores, {threads} threads, {accelerator})"
        for name, cores, threads, accelerator in sorted(described, key=str)
    ]
    dirty = sum(bool(record.dirty) for record in records)
    changed = f" {dirty} of {len(records)} runs: code with uncommitted changes." if dirty else ""
    return f"Machine: {'; '.join(shown)}.{changed}"


# The gains of a task: arms with ELMo over baselines, with intervals and tests.

GAINS = ("arm", "over", "seeds", "dev {m}", "test {m}", "p", "power", "clusters")
GAINS_NOTE = "In percent points, with 95 % intervals."


def gains_of(outcome: Outcome) -> Section | None:
    """The gains of a task at one scale; None if there are no arms to compare."""
    if not (found := outcome.comparisons):
        return None
    paper = statistics.gain_of_paper(outcome.records[0])
    return Section(
        title=f"{outcome.task}, scale {outcome.scale}: gains of ELMo",
        note=GAINS_NOTE,
        header=tuple(cell.format(m=outcome.metric) for cell in GAINS),
        rows=[_gain_row(each) for each in found],
        remarks=[
            *_besides(found),
            *_notes(found),
            *_influences(found),
            *([] if paper is None else [f"The paper's gain: {paper:+.2f}."]),
            *(
                gains.shown_by(seeds)
                for seeds in sorted({(min(n), max(n)) for n in (each.test.seeds for each in found)})
            ),
        ],
    )


def _gain_row(each: Comparison) -> tuple[str, ...]:
    test, sizes = each.test, each.test.seeds
    return (
        _name(each.treated),
        each.control.name,
        str(sizes[0]) if sizes[0] == sizes[1] else f"{sizes[0]}, {sizes[1]}",
        gains.in_words(each.dev),
        Number(gains.in_words(test), statistics.runs_of(each.treated, each.control), fold=_of_models(each)),
        gains.p_in_words(test.p, "-"),
        "" if test.p is None or test.spread is None else f"{test.spread.least:.2f}",
        test.clusters,
    )


def _name(group: Group) -> str:
    return f"{group.name}, biLM {group.first.bilm_name}"


def _of_models(each: Comparison) -> list[str]:
    """What the fold of a gain says of its single models: nothing of other seeds, so that no p is corrected for it."""
    found = gains.of_models(each.treated, each.control)
    if all(p is None for p in found):
        return []
    known = ", ".join(gains.p_in_words(p, "-") for p in found)
    return [f"p of these two models, seed by seed, over the test examples alone: {known}"]


def _besides(found: Sequence[Comparison]) -> list[str]:
    """What an arm changes besides ELMo."""
    return [
        f"{_name(each.treated)}, against the {each.control.name}: besides ELMo, it has {', '.join(changes)}."
        for each in found
        if (changes := settings_in_words(other_changes(each.treated.first, each.control.first)))
    ]


def _notes(found: Sequence[Comparison]) -> list[str]:
    """What the intervals leave out, each said once, with the rows (from 1) that it is about."""
    rows: dict[str, list[int]] = {}
    for i, each in enumerate(found, start=1):
        if each.test.note:
            rows.setdefault(each.test.note, []).append(i)
    return [f"{_places(numbers, len(found))}: {note}." for note, numbers in rows.items()]


def _influences(found: Sequence[Comparison]) -> list[str]:
    """The cluster that carries much of a gain, with the row (from 1) that it is about."""
    return [
        f"Row {i}, of {each.test.clusters}: {gains.influence_in_words(one)}."
        for i, each in enumerate(found, start=1)
        if (one := each.test.influence) and one.share > gains.LARGE
    ]


def _places(numbers: list[int], rows: int) -> str:
    if len(numbers) == rows:
        return "All intervals" if rows > 1 else "The interval"
    return f"Row{'s' * (len(numbers) > 1)} {statistics.ranges(numbers)}"


# The tasks of a scale side by side.

NO_CONTEXT = (
    "+ELMo is not shown to be better than its layer without context (`elmo.layers=0`): {}. What it gains there over "
    "the baseline is not shown to come from context."
)
CONTROL = (
    "Control (`vectors=random`): word vectors in both models are random at first and trained with the task. Here ELMo "
    "also replaces pre-trained word vectors, which the paper's comparison does not ask of it."
)


def overview(scales: Scales) -> list[Section]:
    """For each scale the paper's comparison, and the same without pre-trained word vectors."""
    sections = []
    for scale, here in scales.items():
        title = f"all tasks, scale {scale}"
        main, control = ([row for each in here for row in _side_by_side(each, of)] for of in (is_main, is_control))
        said = [*context_in_words([each.main for each in here if each.main]), *not_recorded(here)]
        sections.append(_told(Section(title, here[0].note, SIDE_BY_SIDE, main, said)))
        if control:
            other = f"{title}, without pre-trained word vectors"
            sections.append(_told(Section(other, CONTROL, SIDE_BY_SIDE, control, [])))
    return sections


def _told(section: Section) -> Section:
    """The table with what its marks mean, and without the column of context where nothing is known of it."""
    at = SIDE_BY_SIDE.index(CONTEXT)
    section = section._replace(remarks=[*section.remarks, *statistics.rising_in_words(section.rows)])
    if any(row[at] for row in section.rows):
        return section
    header, *rows = ((*row[:at], *row[at + 1 :]) for row in (section.header, *section.rows))
    return section._replace(header=header, rows=rows)


def context_in_words(mains: Sequence[Comparison]) -> list[str]:
    """Where +ELMo is not shown to be better than its layer without context, if it is compared with it anywhere."""
    unclear = [(each, each.context) for each in mains if each.context and gains.verdict(each.context) != "clear"]
    listed = "; ".join(f"{each.title} {gains.in_words(of)}, {gains.verdict(of)}" for each, of in unclear)
    return [NO_CONTEXT.format(listed)] if unclear else []


def not_recorded(tasks: Sequence[Outcome]) -> list[str]:
    """A line that says what lacks of the paper's comparison, for the tasks of one scale; nothing if it is whole."""
    there = {(each.task, record.arm) for each in tasks for record in each.records if is_main(record)}
    lacking = {arm: [each.task for each in tasks if (each.task, arm) not in there] for arm in ARMS}
    missing = [f"{arm} of {', '.join(of)}" for arm, of in lacking.items() if of]
    command = f"make reproduce TASK=... SCALE={tasks[0].scale}"
    return [f"Not recorded yet: {'; '.join(missing)} (`{command}`)."] if missing else []


def _side_by_side(outcome: Outcome, belongs: Callable[[Record], bool]) -> list[tuple[str, ...]]:
    """The rows of one task at one scale: one for each word vectors, data and biLM."""
    pairs = _arms([group for group in outcome.groups if belongs(group.first)])
    metric, rows = outcome.metric, []
    before, after = statistics.of_paper(outcome.records[0], metric)
    paper = "" if before is None or after is None else f"{before}, {after}: {after - before:+.2f}"
    for arms, marks in zip(pairs, _marks(pairs), strict=True):
        task = outcome.task + (f" ({'; '.join(marks)})" if marks else "")
        shown = (_score(g.records, metric) if g else "" for g in arms)
        found = next((each for each in outcome.comparisons if (each.control, each.treated) == arms), None)
        gained = (gains.in_words(each) if each else "" for each in (found.test, found.context)) if found else ("", "")
        rows.append((task, metric, _known(arms).first.vectors, *shown, *gained, paper))
    return rows


def _score(runs: Sequence[Record], metric: str) -> str:
    return f"{statistics.scores(runs, 'test', metric)} ({len(runs)}{statistics.rising(runs)})"


Arms = tuple[Group | None, Group | None]  # the baseline and +ELMo


def _arms(groups: Sequence[Group]) -> list[Arms]:
    """Every biLM beside the baseline with the same word vectors and data; None where there is no such arm."""

    def kind(group: Group) -> tuple[str, ...]:
        return " ".join([group.first.vectors, *group.first.vector_files]), group.first.data_sha256

    baselines = largest([g for g in groups if not g.first.has_elmo], kind)
    elmos = largest([g for g in groups if g.first.has_elmo], lambda g: (*kind(g), g.first.bilm_name, g.first.weights))
    found: list[Arms] = [(baselines.get(alike[:2]), elmo) for alike, elmo in elmos.items()]
    alone = baselines.keys() - {alike[:2] for alike in elmos}
    return [*found, *((group, None) for alike, group in baselines.items() if alike in alone)]


def _known(arms: Arms) -> Group:
    return next(group for group in arms if group)


def _marks(found: Sequence[Arms]) -> list[list[str]]:
    """How each two arms differ from the others in biLM, data and files of vectors of one name; and the name of a biLM
    and of data that are not the scale's own."""
    runs, elmos = [_known(arms).first for arms in found], [elmo and elmo.first for _, elmo in found]
    own = {run.config["scale"].get("bilm") or run.scale for run in runs}
    bilms = {elmo.bilm_name for elmo in elmos if elmo}
    weights, data = {elmo.weights for elmo in elmos if elmo}, {run.data_sha256 for run in runs}
    vectors = {(run.vectors, *run.vector_files) for run in runs}
    marks: list[list[str]] = []
    for run, elmo in zip(runs, elmos, strict=True):
        named = [f"biLM {elmo.bilm_name}"] if elmo and len(bilms | own) > 1 else []
        named += [f"biLM {short(elmo.weights)}"] if elmo and elmo.weights and len(weights) > len(bilms) else []
        if len(vectors) > len({name for name, *_ in vectors}):
            named += [f"vectors {short(file)}" for file in run.vector_files[:1]]
        files = [*run.own_data.values(), *([short(run.data_sha256)] if len(data) > 1 else [])]
        marks.append(named + ([f"data {', '.join(files)}"] if files else []))
    return marks


# A user's own results beside the reference runs and the paper, arm by arm.


def beside(records: Iterable[Record]) -> list[Section]:
    """A table for every task and scale of a user's records. Raises `UserError` for records that contradict."""
    return [_beside(own, read_all(places.RECORDED, own[0].scale, own[0].task)) for own in by_place(records)]


def _beside(own: Sequence[Record], reference: Sequence[Record]) -> Section:
    """The arms of one task at one scale, and below them the gain of +ELMo and the part of it that is context."""
    metric = own[0].monitor
    theirs = grouped(reference)
    groups = sorted(in_groups(own), key=lambda group: (group.first.has_elmo, group.name))
    pairs = [(group, theirs.get(group.first.group, [])) for group in groups]
    rows = [
        (
            group.name,
            group.first.bilm_name or "-",
            *_cells(group.records, metric),
            *_cells(recorded, metric),
            paper_score(group.first, metric),
        )
        for group, recorded in pairs
    ]
    title = f"{own[0].task}, scale {own[0].scale}: your runs, the reference runs and the paper"
    header = tuple(cell.format(m=metric) for cell in BESIDE)
    found = [] if any(recorded for _, recorded in pairs) else ["There is no reference run with these settings."]
    free = [group.first.variant | CONTEXT_FREE for group in groups if group.first.has_elmo]
    alike = {group.first.group for group in groups}
    known = [record for record in reference if record.group in alike or record.variant in free]
    rows += _gain_rows(*(outcome(runs).main if runs else None for runs in ([*own], known)))
    return Section(title, REFERENCE, header, rows, [*found, *statistics.rising_in_words(rows)])


def _cells(records: list[Record], metric: str) -> tuple[str, str]:
    """The test score with its deviation, and the seeds."""
    if not records:
        return "", ""
    seeds = statistics.ranges([record.seed for record in records]) + statistics.rising(records)
    return statistics.scores(records, "test", metric), seeds


def _gain_rows(own: Comparison | None, recorded: Comparison | None) -> list[tuple[str, ...]]:
    """The rows of +ELMo over the baseline and over its layer 0; none without both arms."""
    if own is None:
        return []
    both = own, recorded
    paper = statistics.gain_of_paper(own.treated.first)
    gained, context = ([_sure(each and each.test) for each in both], [_sure(each and each.context) for each in both])
    rows = [("gain of +ELMo", "", gained[0], "", gained[1], "", "" if paper is None else f"{paper:+.2f}")]
    return rows + ([(CONTEXT, "", context[0], "", context[1], "", "")] if any(context) else [])


def _sure(gain: Gain | None) -> str:
    """A gain with its interval, if both arms have several seeds."""
    return "" if gain is None else gains.in_words(gain if min(gain.seeds) > 1 else gain._replace(spread=None))
