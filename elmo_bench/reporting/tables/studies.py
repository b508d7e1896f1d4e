"""The tables of the recorded studies of the biLM, Tables 4 to 7, made of their numbers."""

from __future__ import annotations

from collections.abc import Sequence

from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.reporting import section as sections
from elmo_bench.reporting.section import Section

Row = tuple[str, str, int | None, int | None]  # what the cells of a row have in common


def section(record: StudyRecord) -> Section:
    """A row for each source, split and layer; a column for each quantity, and one for the paper's figures of it."""
    columns = _columns(record.cells)
    by_place = {(_row(cell), cell.quantity): cell for cell in record.cells}
    rows = [
        (_name(row), *(_shown(by_place.get((row, quantity)), paper) for quantity, paper in columns))
        for row in dict.fromkeys(map(_row, record.cells))
    ]
    header = ("", *(f"{quantity}, the paper" if paper else quantity for quantity, paper in columns))
    said = [in_words(cell) for cell in record.cells if cell.minus is not None]
    return Section(record.title, record.note, header, rows, said)


def _columns(cells: Sequence[StudyCell]) -> list[tuple[str, bool]]:
    """Each quantity, and again, as True, where the paper has figures of it."""
    known = {cell.quantity for cell in cells if cell.paper is not None}
    names = dict.fromkeys(cell.quantity for cell in cells)
    return [(name, paper) for name in names for paper in (False, True) if not paper or name in known]


def _row(cell: StudyCell) -> Row:
    return cell.source, cell.split, cell.layer, cell.minus


def _name(row: Row) -> str:
    source, split, layer, minus = row
    of_layer = "" if layer is None else f"layer {layer}" + ("" if minus is None else f" minus layer {minus}")
    return ", ".join(filter(None, [source, split, of_layer]))


def _shown(cell: StudyCell | None, paper: bool) -> str:
    if cell is None or (paper and cell.paper is None):
        return ""
    return f"{cell.paper:{'+' if cell.minus is not None else ''}.4g}" if paper else number(cell)


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


def show(record: StudyRecord, results_root: str | None = None) -> None:
    """Prints the table of a study, and where its record is if it has one."""
    sections.show([section(record)])
    if results_root is not None:
        print(f"record: {record.place(results_root)}")
