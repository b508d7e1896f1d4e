"""Tables of records: for each task and scale, for each scale with its tasks side by side, beside the reference runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from elmo_bench.configuration.composing import ARMS
from elmo_bench.records.query import is_control, is_main
from elmo_bench.records.record import Record
from elmo_bench.records.store import grouped, read_all
from elmo_bench.records.times import in_time, typical
from elmo_bench.reporting.section import Section
from elmo_bench.reporting.statistics import gains
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.groups import Group, in_groups, short
from elmo_bench.reporting.statistics.outcomes import Outcome, Scales, by_place, largest, outcome
from elmo_bench.reporting.tables import comparisons, numbers, remarks
from elmo_bench.reporting.tables.remarks import Read
from elmo_bench.system import places

HEADER = ("arm", "biLM", "seeds", "dev {m}", "test {m}", "paper, test", "s_j of the layers; γ", "computing a run")
BESIDE = ("arm", "biLM", "yours: test {m}", "seeds", "reference runs: test {m}", "seeds", "paper")
REFERENCE = "Reference runs: the project's records with the same settings, mean ± sample standard deviation."
SIDE_BY_SIDE = ("task", "test", "word vectors", "baseline", "+ELMo", "gain", "the paper")


def sections(records: Iterable[Record]) -> list[Section]:
    """For every task and scale that has records a section, and one of its gains: real data first, mini last."""
    return [part for place in by_place(records) for part in sections_of(outcome(place), {})]


def sections_of(outcome: Outcome, read: Read) -> list[Section]:
    """The scores of one task at one scale and, with a baseline to compare with, its gains."""
    return [scores(outcome, read), *filter(None, [comparisons.table(outcome)])]


def scores(outcome: Outcome, read: Read) -> Section:
    """The scores of one task at one scale, a row for each arm; below them what a reader must know."""
    metric, overlaps = outcome.metric, read.get((outcome.scale, outcome.task), [])
    return Section(
        title=f"{outcome.task}, scale {outcome.scale}",
        note=outcome.note,
        header=tuple(cell.format(m=metric) for cell in HEADER),
        rows=[_row(group, metric) for group in outcome.groups],
        remarks=[*overlaps, *remarks.all_of(outcome.groups, metric)],
    )


def _row(group: Group, metric: str) -> tuple[str, ...]:
    return (
        group.name,
        group.first.bilm_name or "-",
        numbers.seeds(group, metric),
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


# The tasks of a scale side by side.

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
        sections.append(Section(title, here[0].note, SIDE_BY_SIDE, main, not_recorded(here)))
        if control:
            sections.append(Section(f"{title}, without pre-trained word vectors", CONTROL, SIDE_BY_SIDE, control, []))
    return sections


def not_recorded(tasks: Sequence[Outcome]) -> list[str]:
    """A line that says what lacks of the paper's comparison, for the tasks of one scale; nothing if it is whole."""
    there = {(each.task, record.arm) for each in tasks for record in each.records if is_main(record)}
    lacking = {arm: [each.task for each in tasks if (each.task, arm) not in there] for arm in ARMS}
    missing = [f"{arm} of {', '.join(of)}" for arm, of in lacking.items() if of]
    command = f"make reproduce TASK=... SCALE={tasks[0].scale}"
    return [f"Not recorded yet: {'; '.join(missing)} (`{command}`)."] if missing else []


def _side_by_side(outcome: Outcome, belongs: Callable[[Record], bool]) -> list[tuple[str, ...]]:
    """The rows of one task at one scale: one for each word vectors, data and biLM."""
    found = _arms([group for group in outcome.groups if belongs(group.first)])
    metric, rows = outcome.metric, []
    before, after = statistics.of_paper(outcome.records[0], metric)
    paper = "" if before is None or after is None else f"{before}, {after}: {after - before:+.2f}"
    for arms, marks in zip(found, _marks(found), strict=True):
        task = outcome.task + (f" ({'; '.join(marks)})" if marks else "")
        shown = (f"{statistics.scores(g.records, 'test', metric)} ({len(g.records)})" if g else "" for g in arms)
        rows.append((task, metric, _known(arms).first.vectors, *shown, _gain(*reversed(arms)), paper))
    return rows


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


def _gain(elmo: Group | None, baseline: Group | None) -> str:
    return gains.in_words(gains.gain(elmo, baseline)) if elmo and baseline else ""


# A user's own results beside the reference runs and the paper, arm by arm.


def beside(records: Iterable[Record]) -> list[Section]:
    """A table for every task and scale of a user's records. Raises `UserError` for records that contradict."""
    return [_beside(own, read_all(places.RECORDED, own[0].scale, own[0].task)) for own in by_place(records)]


def _beside(own: Sequence[Record], reference: Sequence[Record]) -> Section:
    """The arms of one task at one scale, and below them the gain of +ELMo."""
    metric = own[0].monitor
    theirs = grouped(reference)
    groups = sorted(in_groups(own), key=lambda group: (group.first.has_elmo, group.name))
    pairs = [(group, theirs.get(group.first.group, [])) for group in groups]
    rows = [_row_beside(group, recorded, metric) for group, recorded in pairs]
    title = f"{own[0].task}, scale {own[0].scale}: your runs, the reference runs and the paper"
    header = tuple(cell.format(m=metric) for cell in BESIDE)
    remarks = [] if any(recorded for _, recorded in pairs) else ["There is no reference run with these settings."]
    return Section(title, REFERENCE, header, [*rows, *_gain_row(pairs, metric)], remarks)


def _row_beside(group: Group, recorded: list[Record], metric: str) -> tuple[str, ...]:
    cells = [cell for records in (group.records, recorded) for cell in _cells(records, metric)]
    return group.name, group.first.bilm_name or "-", *cells, paper_score(group.first, metric)


def _cells(records: list[Record], metric: str) -> tuple[str, str]:
    """The test score with its deviation, and the seeds."""
    if not records:
        return "", ""
    return statistics.scores(records, "test", metric), statistics.ranges([record.seed for record in records])


def _gain_row(pairs: Sequence[tuple[Group, list[Record]]], metric: str) -> list[tuple[str, ...]]:
    """The row of +ELMo over the baseline, of the paper's comparison; none where one of them is missing."""
    arms = {group.first.has_elmo: (group.records, recorded) for group, recorded in pairs if is_main(group.first)}
    if len(arms) < 2:
        return []
    own, recorded = (_difference(before, after, metric) for before, after in zip(arms[False], arms[True], strict=True))
    paper = statistics.gain_of_paper(pairs[0][0].first)
    return [("gain of +ELMo", "", own, "", recorded, "", "" if paper is None else f"{paper:+.2f}")]


def _difference(before: list[Record], after: list[Record], metric: str) -> str:
    if not before or not after:
        return ""
    first, second = (statistics.score(records, "test", metric)[0] for records in (before, after))
    return f"{second - first:+.2f}"
