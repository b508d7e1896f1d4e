"""The tables of the recorded studies of the biLM, Tables 4 to 7, made of their numbers."""

from __future__ import annotations

from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.reporting import section as sections
from elmo_bench.reporting.section import Section


def section(record: StudyRecord) -> Section:
    """A row for each source, split and layer; a column for each quantity, and one for the paper's figures of it."""
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
    found = [(name, *(row.get(column, "") for column in header)) for name, row in rows.items()]
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


def show(record: StudyRecord, results_root: str | None = None) -> None:
    """Prints the table of a study, and where its record is if it has one."""
    sections.show([section(record)])
    if results_root is not None:
        print(f"record: {record.place(results_root)}")
