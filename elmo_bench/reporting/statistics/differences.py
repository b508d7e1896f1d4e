"""What stands below a sweep's table: differences between its settings, with intervals, and what they show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from elmo_bench.configuration import layouts
from elmo_bench.configuration.layouts import Column
from elmo_bench.reporting.section import Section
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.cells import Content
from elmo_bench.reporting.statistics.gains import Gain, gain, holm, in_words, p_in_words, verdict
from elmo_bench.reporting.statistics.groups import Group

HEADER = ("task", "difference", "the paper", "dev", "test", "p: Holm", "shown")
TITLE = "{}: differences"
NOTE = (
    "Differences are in percent points, the first less the second, with 95 % intervals over seeds and items. p: "
    "Holm is of Welch's t over the seeds on test, corrected for the number of rows. Shown: whether an interval "
    "lies above zero (more), below it (less) or includes it (open)."
)
SHOWN = {"clear": "more", "worse": "less", "not shown": "open"}


class Difference(NamedTuple):
    """By how much one setting of a sweep is better than another.

    Attributes:
        task: its name.
        title: which settings.
        paper: the paper's difference in points; empty if it has none.
        pair: the runs of the second setting and of the first.
        dev, test: the gain on either split, p corrected on test.
    """

    task: str
    title: str
    paper: str
    pair: tuple[Group, Group]
    dev: Gain
    test: Gain

    @property
    def row(self) -> tuple[str, ...]:
        """Its row of the table, by `HEADER`."""
        p = self.test.p_holm
        name, tested = layouts.titles().get(self.task, self.task), "" if p is None else p_in_words(p)
        return name, self.title, self.paper, in_words(self.dev), in_words(self.test), tested, self.shown

    @property
    def shown(self) -> str:
        """What the intervals show, in a word if both splits show the same."""
        dev, test = (SHOWN.get(verdict(each), verdict(each)) for each in (self.dev, self.test))
        return dev if dev == test else f"{dev} on dev, {test} on test"


class Earlier(NamedTuple):
    """A table of a sweep that was written before, its cells filled from the records there are now."""

    title: str
    changes: list[str]  # what all its runs have in common, in a sentence, if they have
    content: Content
    differences: list[Difference]


def section(title: str, found: Sequence[Difference]) -> Section | None:
    """The differences below the table of this title; None if there are none."""
    return Section(TITLE.format(title), NOTE, HEADER, [each.row for each in found], []) if found else None


def differences(content: Content) -> list[Difference]:
    """All that the layout asks for and for which there are runs."""
    asked = [each for task in content.tasks for each in (*_asked(content, task), *_fewest(content, task))]
    tests = holm([gain(after, before, permute=False) for *_, before, after in asked])
    return [
        Difference(task, title, paper, (before, after), gain(after, before, "dev", permute=False), test)
        for (task, title, paper, before, after), test in zip(asked, tests, strict=True)
    ]


Pairing = tuple[str, str, str, Group, Group]  # task, title, the paper's difference, before, after


def _asked(content: Content, task: str) -> Iterable[Pairing]:
    """The differences between columns, in every row of a task."""
    for column in content.layout.differences:
        for row in dict.fromkeys(cell.row for cell in content.of(task)):
            before, after = (content.group(task, row, setting) for setting in column.gain)
            if before and after:
                yield task, column.title, _of_paper(content, task, column), before, after


def _fewest(content: Content, task: str) -> Iterable[Pairing]:
    """With how little of the training data the second of the rows `saves` reaches the first on all of it.

    The smallest part with which its mean dev score is at least as good; if no part is enough, the largest.
    """
    layout, columns = content.layout, content.layout.columns
    if not layout.saves:
        return
    first, second = layout.saves
    whole = content.group(task, first, columns[-1].of)
    parts = [(column, group) for column in columns[:-1] if (group := content.group(task, second, column.of))]
    if whole is None or not parts:
        return
    metric = content.metrics[task]
    needed = statistics.score(whole.records, "dev", metric)[0]
    enough = (part for part in parts if statistics.score(part[1].records, "dev", metric)[0] >= needed)
    column, group = next(enough, parts[-1])
    yield task, f"+ELMo with {column.title} of the data over the baseline with {columns[-1].title}", "", whole, group


def _of_paper(content: Content, task: str, column: Column) -> str:
    """The difference of the paper's figures; empty if it lacks one of them."""
    figures: Sequence[str] = content.layout.paper.get(task, [])
    by_setting = {each.of: figure for each, figure in zip(content.layout.columns, figures, strict=False)}
    pair = [by_setting.get(setting) for setting in column.gain]
    if not all(pair):
        return ""
    before, after = (float(figure.split()[0]) for figure in pair if figure)
    return f"{after - before:+.1f}"
