"""The first screen: does ELMo help, where, and how sure is that?"""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.reporting import statistics
from elmo_bench.reporting.gains import Gain
from elmo_bench.reporting.outcomes import Comparison, Outcome, Scales
from elmo_bench.reporting.web.parts import Chapter, Number, Table, runs_of

NOTE = (
    "Gain of +ELMo over the baseline on test, in points, with its 95 % interval; below it the two scores. "
    "Clear: the interval is above zero. A number opens to the runs behind it."
)


def answer(scales: Scales) -> Chapter:
    """A few sentences for each scale, and one table of all tasks."""
    words = [sentence for scale, outcomes in scales.items() if (sentence := _sentence(scale, _mains(outcomes)))]
    tasks = list(dict.fromkeys(outcome.task for outcomes in scales.values() for outcome in outcomes if outcome.main))
    rows = [_row(task, scales) for task in sorted(tasks)]
    header = ("task", *(f"scale {scale}" for scale in scales), "the paper")
    return Chapter("answer", "Does ELMo help, where, and how sure is that?", words,
                   [Table("", NOTE, header, rows, narrow=True)] if rows else [])  # fmt: skip


def _mains(outcomes: Sequence[Outcome]) -> list[Comparison]:
    return [outcome.main for outcome in outcomes if outcome.main]


def _sentence(scale: str, mains: Sequence[Comparison]) -> str:
    """Scale open: +ELMo is above the baseline on 6 of 6 tasks, by 2.04 (sst5) to 33.06 points (squad). ..."""
    if not mains:
        return ""
    mains = sorted(mains, key=lambda each: each.gain.mean)
    least, most = mains[0], mains[-1]
    higher = sum(each.gain.mean > 0 for each in mains)
    parts = [
        f"Scale {scale}: +ELMo scores higher than the baseline on {higher} of {_tasks(len(mains))}; "
        f"the gains are {least.gain.mean:+.2f} ({least.task}) to {most.gain.mean:+.2f} points ({most.task})."
    ]
    by_verdict: dict[str, list[str]] = {}
    for each in sorted(mains, key=lambda each: each.task):
        by_verdict.setdefault(verdict(each.gain), []).append(each.task)
    parts += [f"{MEANING[key]}: {', '.join(by_verdict[key])}." for key in MEANING if key in by_verdict]
    return " ".join(parts)


def _tasks(n: int) -> str:
    return "1 task" if n == 1 else f"{n} tasks"


MEANING = {
    "clear": "The 95 % interval is above zero for",
    "not shown": "The 95 % interval includes zero for",
    "worse": "The 95 % interval is below zero for",
    "one seed": "One seed, which says nothing about other seeds",
}


def verdict(gain: Gain) -> str:
    """How sure a gain is: a key of `MEANING`."""
    if min(gain.seeds) < 2 or gain.low is None or gain.high is None:
        return "one seed"
    return "clear" if gain.low > 0 else "worse" if gain.high < 0 else "not shown"


def interval(gain: Gain) -> str:
    """The 95 % interval, as "+2.67 to +7.96"; empty where there is none."""
    return "" if gain.low is None or gain.high is None else f"{gain.low:+.2f} to {gain.high:+.2f}"


def _row(task: str, scales: Scales) -> list[str | Number]:
    mains = [next((main for main in _mains(outcomes) if main.task == task), None) for outcomes in scales.values()]
    papers = [statistics.gain_of_paper(main.treated.first) for main in mains if main]
    paper = "" if papers[0] is None else f"{papers[0]:+.2f}"
    return [task, *(_cell(main) if main else "" for main in mains), paper]


def _cell(main: Comparison) -> Number:
    metric = main.treated.first["config"]["task"]["monitor"]
    before, after = (statistics.score(g.records, "test", metric)[0] for g in (main.control, main.treated))
    seeds = "one seed" if min(main.gain.seeds) == 1 else f"{min(main.gain.seeds)} seeds"
    sure = verdict(main.gain)
    lines = (
        ", ".join(filter(None, (interval(main.gain), sure if sure != "one seed" else ""))),
        f"{before:.2f} → {after:.2f}, {seeds}",
        f"older version {main.treated.version}" if main.is_older else "",
    )
    return Number(f"{main.gain.mean:+.2f}", runs_of(main.treated, main.control), tuple(filter(None, lines)))
