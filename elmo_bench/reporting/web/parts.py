"""The parts of the report's page: chapters of sentences, tables whose numbers name their runs, and charts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.experiment import store
from elmo_bench.experiment.store import Record
from elmo_bench.reporting import statistics
from elmo_bench.reporting.charts.svg import Chart
from elmo_bench.reporting.groups import Group


class Run(NamedTuple):
    """A run behind a number: its id, what the link to its record says, and where the record is, from the page."""

    run: str
    label: str
    href: str


class Number(NamedTuple):
    """A number, the runs that it was computed from, and what stands below it."""

    text: str
    runs: list[Run]
    below: tuple[str, ...] = ()


class Table(NamedTuple):
    """A table with a title and a note above it; the first cell of a row names the row.

    Args:
        narrow: whether it fits a phone as it is; any other becomes there a list of cards, one a row.
    """

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[list[str | Number]]
    narrow: bool = False


class Image(NamedTuple):
    """A picture in a file."""

    title: str
    path: Path


class Chapter(NamedTuple):
    """A part of the page with a line in the list of contents."""

    anchor: str
    title: str
    words: list[str]
    tables: list[Table]
    charts: Sequence[Chart] = ()
    images: Sequence[Image] = ()


def linked(record: Record, value: str) -> Run:
    """A run and what it contributes to a number, as "seed 1: 68.12"."""
    path = store.place(".", record["scale"], record["task"], record["run"])
    return Run(record["run"], f"seed {record['seed']}: {value}", path.as_posix())


def score(group: Group, split: str, metric: str) -> Number:
    """The mean of a metric in percent, with its deviation and the score of every seed."""
    runs = [linked(record, f"{record['metrics'][split][metric]:.2f}") for record in group.records]
    return Number(statistics.scores(group.records, split, metric), runs)


def runs_of(*groups: Group) -> list[Run]:
    """The runs behind a number that is computed from several groups."""
    return [linked(record, group.name) for group in groups for record in group.records]


def mean_of(group: Group, values: Mapping[str, float], text: str) -> Number:
    """A number of a group, with the value of every run that has one.

    Args:
        values: by id of the run.
        text: how one value is written, as "{:.0f} s".
    """
    found = [record for record in group.records if record["run"] in values]
    if not found:
        return Number("", [])
    shown = [values[record["run"]] for record in found]
    runs = [linked(record, text.format(value)) for record, value in zip(found, shown, strict=True)]
    return Number(text.format(sum(shown) / len(shown)), runs)


def as_json(chapter: Chapter) -> dict[str, Any]:
    """A chapter for other programs."""
    return {
        "title": chapter.title,
        "words": chapter.words,
        "tables": [_table(table) for table in chapter.tables],
        "charts": [{"title": chart.title, "alt": chart.alt, "data": chart.data} for chart in chapter.charts],
        "images": [{"title": image.title, "file": f"figures/{image.path.name}"} for image in chapter.images],
    }


def _table(table: Table) -> dict[str, Any]:
    rows = [[_cell(cell) for cell in row] for row in table.rows]
    return {"title": table.title, "note": table.note, "header": table.header, "rows": rows}


def _cell(cell: str | Number) -> Any:
    if isinstance(cell, str):
        return cell
    return {"text": cell.text, "below": cell.below, "runs": [each.run for each in cell.runs]}
