"""Tables of records: for each task and scale, for each scale with its tasks side by side, beside the reference runs;
and of studies of the biLM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import product

from elmo_bench.configuration.keys import flat
from elmo_bench.configuration.pages import ARMS
from elmo_bench.configuration.tables import table
from elmo_bench.records.frame import is_main
from elmo_bench.records.record import Record
from elmo_bench.records.store import read_all
from elmo_bench.records.studies import LONG, SHARED, StudyCell, StudyRecord
from elmo_bench.records.times import in_time, typical
from elmo_bench.reporting.section import Number, Section, show
from elmo_bench.reporting.statistics import gains
from elmo_bench.reporting.statistics import groups as statistics
from elmo_bench.reporting.statistics.groups import Group, differences, linked, runs_of, short
from elmo_bench.reporting.statistics.outcomes import Comparison, Outcome, Scales, by_scale, largest
from elmo_bench.system import places

Row = tuple[str, ...]
HEADER = ("arm", "biLM", "seeds", "dev {m}", "test {m}", "paper, test", "s_j of the layers; γ", "computing a run")
BESIDE = ("arm", "biLM", "yours: test {m}", "seeds", "reference runs: test {m}", "seeds", "paper")
CONTEXT = "context (over layer 0)"  # +ELMo less its layer 0
ALONE = "There is no reference run with these settings."
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
    return [part for here in by_scale(records).values() for each in here for part in sections_of(each, {})]


def sections_of(outcome: Outcome, read: Read) -> list[Section]:
    """The scores of one task at one scale and, with a baseline to compare with, its gains."""
    return [scores(outcome, read), *([gains_of(outcome)] if outcome.comparisons else [])]


def scores(outcome: Outcome, read: Read) -> Section:
    """The scores of one task at one scale, a row for each arm; below them what a reader must know."""
    metric, rows, details = outcome.metric, [], []
    for group in outcome.groups:
        first, runs, weights = group.first, group.records, []
        for place in first.layer_weights:
            *each, gamma = (f"{mean:.2f}" for mean in statistics.mean_weights(runs, place))
            weights.append(f"{place}: {' '.join(each)}; {gamma}")
        seeds = statistics.ranges([record.seed for record in runs]) + statistics.rising(runs)
        shown = [statistics.scores(runs, split, metric) for split in ("dev", "test")]
        rows.append(
            (
                group.name,
                first.bilm_name or "-",
                Number(seeds, [linked(record, f"{record.metrics['test'][metric]:.2f}") for record in runs]),
                *shown,
                paper_score(first, metric),
                ", ".join(weights),
                in_time(typical(runs)),
            )
        )
        others = [f"{name} {statistics.scores(runs, 'test', name)}" for name in first.metrics["test"] if name != metric]
        peak = max(record.peak_memory_mib or 0 for record in runs)
        said = [f"test {', '.join(others)}"] * bool(others) + [f"peak memory {peak:,} MiB"] * bool(peak)
        if said:
            details.append(f"{_name(group) if first.bilm_name else group.name}: {'; '.join(said)}.")
    machines = {(m.get("gpu") or m["cpu"], m["cores"], m["threads"], m["accelerator"])
                for m in (record.machine for record in outcome.records)}  # fmt: skip
    listed = [f"{name} ({cores} cores, {threads} threads, {kind})"
              for name, cores, threads, kind in sorted(machines, key=str)]  # fmt: skip
    dirty = sum(bool(record.dirty) for record in outcome.records)
    changed = f" {dirty} of {len(outcome.records)} runs: code with uncommitted changes." if dirty else ""
    overlaps = read.get((outcome.scale, outcome.task), [])
    return Section(
        f"{outcome.task}, scale {outcome.scale}",
        outcome.note,
        tuple(cell.format(m=metric) for cell in HEADER),
        rows,
        [*overlaps, *statistics.rising_in_words(rows), *details, f"Machine: {'; '.join(listed)}.{changed}"],
    )


def _name(group: Group) -> str:
    return f"{group.name}, biLM {group.first.bilm_name}"


def paper_score(record: Record, metric: str) -> str:
    """The paper's figure, for the paper's comparison only."""
    figure = statistics.of_paper(record, metric)[record.has_elmo]
    if figure is None or not is_main(record):
        return ""
    deviation = record.paper.get("elmo_deviation") if record.has_elmo else None
    return f"{figure}" + ("" if deviation is None else f" ± {deviation}")


def read(studies: Iterable[StudyRecord]) -> Read:
    """What the biLM has read of dev, if it is more than chance, by the records of `elmo-bench analysis.overlap`."""
    found: dict[tuple[str, str], list[str]] = {}
    for study in (study for study in studies if study.study == "overlap"):
        known = Counter({(cell.source, cell.split, cell.quantity): int(cell.value) for cell in study.cells})
        for task in dict.fromkeys(cell.source for cell in study.cells):
            if 100 * known[task, "dev", SHARED] > CHANCE * known[task, "dev", LONG]:
                dev, test = (
                    f"{known[task, split, SHARED]:,} of the {known[task, split, LONG]:,} longer"
                    for split in ("dev", "test")
                )
                found.setdefault((study.scale, task), []).append(OVERLAP.format(dev=dev, test=test))
    return found


# The gains of a task: arms with ELMo over baselines, with intervals and tests.

GAINS = ("arm", "over", "seeds", "dev {m}", "test {m}", "p", "power", "clusters")
GAINS_NOTE = "In percent points, with 95 % intervals."


def gains_of(outcome: Outcome) -> Section:
    """The gains of a task at one scale: what an arm changes besides ELMo, what an interval leaves out (each said once,
    with its rows from 1), and the cluster of examples that carries much of a gain."""
    rows, besides, notes, influences = [], [], {}, []
    for i, each in enumerate(outcome.comparisons, start=1):
        test, sizes = each.test, each.test.seeds
        rows.append(
            (
                _name(each.treated),
                each.control.name,
                str(sizes[0]) if sizes[0] == sizes[1] else f"{sizes[0]}, {sizes[1]}",
                gains.in_words(each.dev),
                Number(gains.in_words(test), runs_of(each.treated, each.control), fold=_of_models(each)),
                gains.p_in_words(test.p, "-"),
                "" if test.p is None or test.spread is None else f"{test.spread.least:.2f}",
                test.clusters,
            )
        )
        ours, _ = differences([flat(group.first.settings) for group in (each.treated, each.control)])
        others = {k: value for k, value in ours.items() if k.split(".")[0] not in ("elmo", "bilm", "vectors", "seed")}
        if changed := ", ".join(statistics.in_words(others)):
            besides.append(f"{rows[-1][0]}, against the {each.control.name}: besides ELMo, it has {changed}.")
        if test.note:
            notes.setdefault(test.note, []).append(i)
        if test.influence and test.influence.share > gains.LARGE:
            influences.append(f"Row {i}, of {test.clusters}: {gains.influence_in_words(test.influence)}.")
    every = "All intervals" if len(rows) > 1 else "The interval"
    for note, numbers in notes.items():
        some = f"Row{'s' * (len(numbers) > 1)} {statistics.ranges(numbers)}"
        besides.append(f"{every if len(numbers) == len(rows) else some}: {note}.")
    paper = statistics.gain_of_paper(outcome.records[0])
    seeds = sorted({(min(each.test.seeds), max(each.test.seeds)) for each in outcome.comparisons})
    return Section(
        f"{outcome.task}, scale {outcome.scale}: gains of ELMo",
        GAINS_NOTE,
        tuple(cell.format(m=outcome.metric) for cell in GAINS),
        rows,
        [
            *besides,
            *influences,
            *([] if paper is None else [f"The paper's gain: {paper:+.2f}."]),
            *map(gains.shown_by, seeds),
        ],
    )


def _of_models(each: Comparison) -> list[str]:
    """What the fold of a gain says of its single models: nothing of other seeds, so that no p is corrected for it."""
    found = gains.of_models(each.treated, each.control)
    known = ", ".join(gains.p_in_words(p, "-") for p in found)
    said = f"p of these two models, seed by seed, over the test examples alone: {known}"
    return [] if all(p is None for p in found) else [said]


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
    """For each scale the paper's comparison, and the same without pre-trained word vectors.

    They have no column of context where nothing is known of it.
    """
    found, at = [], SIDE_BY_SIDE.index(CONTEXT)
    for (scale, here), random in product(scales.items(), (False, True)):
        title, note = f"all tasks, scale {scale}", CONTROL if random else here[0].note
        rows = [row for each in here for row in _side_by_side(each, random)]
        header, rising = SIDE_BY_SIDE, statistics.rising_in_words(rows)
        said = [] if random else [*context_in_words([each.main for each in here if each.main]), *not_recorded(here)]
        if not any(row[at] for row in rows):
            header, *rows = ((*row[:at], *row[at + 1 :]) for row in (header, *rows))
        if rows or not random:
            title += ", without pre-trained word vectors" * random
            found.append(Section(title, note, header, rows, [*said, *rising]))
    return found


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


def _side_by_side(outcome: Outcome, random: bool) -> list[Row]:
    """The rows of one task at one scale: every biLM beside the baseline with the same word vectors and data.

    A row names how it differs from the others in biLM, data and files of vectors of one name; and a biLM and data that
    are not the scale's own.
    """
    here = [group for group in outcome.groups if is_main(group.first, random)]
    baselines = largest([group for group in here if not group.first.has_elmo], _inputs)
    elmos = [group for group in here if group.first.has_elmo]
    elmos = largest(elmos, lambda group: (_inputs(group), group.first.bilm_name, group.first.weights))
    pairs = [(baselines.get(inputs), elmo) for (inputs, *_), elmo in elmos.items()]
    pairs += [(group, None) for inputs, group in baselines.items() if inputs not in {alike for alike, *_ in elmos}]
    runs = [next(filter(None, pair)).first for pair in pairs]
    own, data = {run.config["scale"].get("bilm") or run.scale for run in runs}, {run.data_sha256 for run in runs}
    bilms, weights = ({getattr(elmo.first, key) for elmo in elmos.values()} for key in ("bilm_name", "weights"))
    files = {(run.vectors, *run.vector_files) for run in runs}
    rows, metric = [], outcome.metric
    before, after = statistics.of_paper(outcome.records[0], metric)
    paper = "" if before is None or after is None else f"{before}, {after}: {after - before:+.2f}"
    for (baseline, elmo), run in zip(pairs, runs, strict=True):
        marks = [f"biLM {elmo.first.bilm_name}"] if elmo and len(bilms | own) > 1 else []
        if elmo and elmo.first.weights and len(weights) > len(bilms):
            marks.append(f"biLM {short(elmo.first.weights)}")
        if len(files) > len({name for name, *_ in files}):
            marks += [f"vectors {short(file)}" for file in run.vector_files[:1]]
        named = [*run.own_data.values(), *([short(run.data_sha256)] if len(data) > 1 else [])]
        marks += [f"data {', '.join(named)}"] if named else []
        task = outcome.task + (f" ({'; '.join(marks)})" if marks else "")
        shown = [
            f"{statistics.scores(each.records, 'test', metric)} ({len(each.records)}{statistics.rising(each.records)})"
            if each else ""
            for each in (baseline, elmo)
        ]  # fmt: skip
        found = next((each for each in outcome.comparisons if (each.control, each.treated) == (baseline, elmo)), None)
        gained = gains.in_words(found and found.test), gains.in_words(found and found.context)
        rows.append((task, metric, run.vectors, *shown, *gained, paper))
    return rows


def _inputs(group: Group) -> tuple[str, ...]:
    return group.first.vectors, *group.first.inputs


# A user's own results beside the reference runs and the paper, arm by arm.


def beside(records: Iterable[Record]) -> list[Section]:
    """A table for every task and scale of a user's records. Raises `UserError` for records that contradict."""
    return [_beside(each) for here in by_scale(records).values() for each in here]


def _beside(own: Outcome) -> Section:
    """The arms of one task at one scale, and below them the gain of +ELMo and the part of it that is context."""
    reference, metric, rows = read_all(places.RECORDED, own.scale, own.task), own.metric, []
    theirs = sorted(reference, key=lambda record: record.seed)
    groups = sorted(own.groups, key=lambda group: (group.first.has_elmo, group.name))
    for group in groups:
        cells = []
        for runs in (group.records, [record for record in theirs if record.group == group.first.group]):
            seeds = statistics.ranges([record.seed for record in runs]) + statistics.rising(runs)
            cells += [statistics.scores(runs, "test", metric) if runs else "", seeds]
        rows.append((group.name, group.first.bilm_name or "-", *cells, paper_score(group.first, metric)))
    alike = {group.first.group for group in groups}
    remarks = [] if alike & {record.group for record in theirs} else [ALONE]
    if main := own.main:
        arms = [arm.first.group for arm in (main.treated, main.control)]
        whole = Outcome(reference).comparisons if reference else []  # of all runs, so that intervals are the report's
        recorded = next((e for e in whole if [e.treated.first.group, e.control.first.group] == arms), None)
        paper = statistics.gain_of_paper(main.treated.first)
        gained, context = [main.test, recorded and recorded.test], [main.context, recorded and recorded.context]
        for name, of, figure in (("gain of +ELMo", gained, paper), (CONTEXT, context, None)):
            # an interval only where both arms have several seeds
            sure = [each if each is None or min(each.seeds) > 1 else each._replace(spread=None) for each in of]
            ours, others = map(gains.in_words, sure)
            if any(of) or of is gained:
                rows.append((name, "", ours, "", others, "", "" if figure is None else f"{figure:+.2f}"))
    return Section(
        f"{own.task}, scale {own.scale}: your runs, the reference runs and the paper",
        REFERENCE,
        tuple(cell.format(m=metric) for cell in BESIDE),
        rows,
        [*remarks, *statistics.rising_in_words(rows)],
        shown=True,
    )


# Studies of the biLM, Tables 4 to 7, made of their numbers.


def of_study(record: StudyRecord) -> Section:
    """A row for each source, split and layer; a column for each quantity, and one for the paper's figures of it.

    Tasks stand in the paper's order, other sources in that of the study.
    """
    rows, columns = dict[str, dict[str, str]](), dict[str, tuple[str, str]]()
    for cell in record.cells:
        minus = "" if cell.minus is None else f" minus layer {cell.minus}"
        layer = "" if cell.layer is None else f"layer {cell.layer}{minus}"
        row = rows.setdefault(", ".join(filter(None, [cell.source, cell.split, layer])), {})
        ours, theirs = columns.setdefault(cell.quantity, (cell.quantity, f"{cell.quantity}, the paper"))
        row[ours] = number(cell)
        if cell.paper is not None:
            row[theirs] = f"{cell.paper:{'+' if minus else ''}.4g}"
    header = [each for names in columns.values() for each in names if any(each in row for row in rows.values())]
    said = [in_words(cell) for cell in record.cells if cell.minus is not None]
    order = [*table("table1").paper]
    names = sorted(rows, key=lambda name: [*order, task := name.partition(",")[0]].index(task))
    found = [(name, *(rows[name].get(column, "") for column in header)) for name in names]
    return Section(record.title, record.note, ("", *header), found, said)


def number(cell: StudyCell) -> str:
    """ "93.42 [93.01, 93.83]", a difference with its sign, "1,958", "3 of 10"; a text as it is."""
    sign = "+" if cell.minus is not None else ""
    if cell.text:
        return cell.text
    if isinstance(cell.value, int):
        return f"{cell.value:,}" + ("" if cell.n is None else f" of {cell.n:,}")
    interval = "" if cell.low is None or cell.high is None else f" [{cell.low:{sign}.2f}, {cell.high:{sign}.2f}]"
    return f"{cell.value:{sign}.2f}{interval}"


def in_words(cell: StudyCell) -> str:
    """Which of two layers is better, if the interval of their difference shows it, and which is in the paper."""
    upper, lower = f"layer {cell.layer}", f"layer {cell.minus}"
    if cell.low is None or cell.high is None or cell.low <= 0 <= cell.high:
        said = "no layer is shown to be better"
    else:
        said = f"{upper} is better than {lower}" if cell.low > 0 else f"{lower} is better than {upper}"
    paper = "" if cell.paper is None else f"; in the paper {upper if cell.paper > 0 else lower} is"
    measured = ", ".join(filter(None, [f"{upper} minus {lower}: {number(cell)}", cell.behind]))
    return f"{cell.source}, {cell.quantity}: {said} ({measured}){paper}."


def show_study(record: StudyRecord, results_root: str | None = None) -> None:
    """Prints the table of a study, and where its record is if it has one."""
    show([of_study(record)])
    if results_root is not None:
        print(f"record: {record.place(results_root)}")
