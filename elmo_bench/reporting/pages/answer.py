"""The first screen: does ELMo help, where, and how sure is that?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from elmo_bench.reporting.charts.forest import forest
from elmo_bench.reporting.pages.chapter import Chapter
from elmo_bench.reporting.section import Number, Section
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.gains import Gain, in_words, verdict
from elmo_bench.reporting.statistics.outcomes import Comparison, Scales, compared
from elmo_bench.reporting.tables import tables
from elmo_bench.reporting.tables.numbers import runs_of

NOTE = (
    "Gain of +ELMo over the baseline on test, in points, with its 95 % interval; below it the two scores. "
    "Both arms have the same word vectors, pre-trained as in the paper. "
    "Clear: the interval is above zero. A number opens to the runs behind it."
)


def answer(scales: Scales) -> Chapter:
    """A few sentences and a picture for each scale, and in a fold one table of all tasks."""
    found = compared(scales)
    lacking = [f"Scale {scale}. {line}" for scale, here in scales.items() for line in tables.not_recorded(here)]
    title = "Does ELMo help, where, and how sure is that?"
    if not found:
        return Chapter("answer", title, ["No task has recorded runs with and without ELMo.", *lacking])
    tasks = sorted({main.task for mains in found.values() for main in mains})
    header = ("task", *(f"scale {scale}" for scale in found), "the paper")
    table = Section("The gains as a table", NOTE, header, [_row(task, found) for task in tasks], narrow=True)
    words = [*(_sentences(scale, mains) for scale, mains in found.items()), *lacking]
    charts = [
        forest(f"gains-{scale}", f"Gains with 95 % intervals, scale {scale}", {scale: mains})
        for scale, mains in found.items()
    ]
    return Chapter("answer", title, words, [table], charts)


def _sentences(scale: str, mains: Sequence[Comparison]) -> str:
    by_gain = sorted(mains, key=lambda each: each.test.mean)
    least, most = by_gain[0], by_gain[-1]
    higher = sum(each.test.mean > 0 for each in mains)
    by_verdict = {key: [each.title for each in mains if verdict(each.test) == key] for key in MEANING}
    lowest, highest = (f"{each.test.mean:+.2f}" for each in (least, most))
    spread = f"{lowest} ({least.title}) to {highest} points ({most.title})"
    if lowest == highest:
        spread = f"{highest} points ({', '.join(each.title for each in mains)})"
    parts = [
        f"Scale {scale}: +ELMo scores higher than the baseline on {higher} of {len(mains)} "
        f"task{'s' * (len(mains) != 1)}; the gains are {spread}.",
        *(f"{MEANING[key]}: {', '.join(tasks)}." for key, tasks in by_verdict.items() if tasks),
        *tables.context_in_words(mains),
    ]
    return " ".join(parts)


MEANING = {
    "clear": "The 95 % interval is above zero for",
    "not shown": "The 95 % interval includes zero for",
    "worse": "The 95 % interval is below zero for",
    "one seed": "One seed, which says nothing about other seeds",
    "no interval": "Without an interval",
}


def interval(gain: Gain) -> str:
    """The 95 % interval, as "+2.67 to +7.96"; empty where there is none, or its ends are one value."""
    ends = [f"{end:+.2f}" for end in gain.interval or ()]
    return " to ".join(ends) if len({*ends}) > 1 else ""


def _row(task: str, scales: Mapping[str, Sequence[Comparison]]) -> tuple[str, ...]:
    mains = [next((main for main in mains if main.task == task), None) for mains in scales.values()]
    paper = next(statistics.gain_of_paper(main.treated.first) for main in mains if main)
    return task, *(_cell(main) if main else "" for main in mains), "" if paper is None else f"{paper:+.2f}"


def _cell(main: Comparison) -> Number:
    metric = main.treated.first.monitor
    before, after = (statistics.score(g.records, "test", metric)[0] for g in (main.control, main.treated))
    seeds, sure = min(main.test.seeds), verdict(main.test)
    lines = [
        f"{interval(main.test)}, {sure}".removeprefix(", "),
        f"{before:.2f} → {after:.2f}" + (f", {seeds} seeds" if seeds > 1 else ""),
        main.context and f"{tables.CONTEXT} {in_words(main.context)}",
        main.changes,
    ]
    return Number(f"{main.test.mean:+.2f}", runs_of(main.treated, main.control), tuple(filter(None, lines)))
