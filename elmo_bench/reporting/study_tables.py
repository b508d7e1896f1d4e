"""Tables of studies of the biLM, the paper's Tables 4 to 7; and remarks from `overlap` below tables of scores."""

from __future__ import annotations

from collections.abc import Iterable

from elmo_bench.configuration.pages import table
from elmo_bench.records.studies import LONG, SHARED, StudyCell, StudyRecord
from elmo_bench.reporting.intervals import interval_text
from elmo_bench.reporting.score_tables import Overlaps
from elmo_bench.reporting.section import Section, show

OVERLAP = "the biLM's text has 13 consecutive words in common with {dev} sentences of dev, and {test} of test"
CHANCE = 1.0  # percent of the longer sentences of dev: a smaller share occurs by chance


def of_study(record: StudyRecord) -> Section:
    """A row for each source, split and layer; a column for each quantity, and one for the paper's figures of it.

    Tasks are in the paper's order, other sources in the order of the study.
    """
    rows, columns = dict[str, dict[str, str]](), dict[str, None]()
    for cell in record.cells:
        minus = "" if cell.minus is None else f" minus layer {cell.minus}"
        layer = "" if cell.layer is None else f"layer {cell.layer}{minus}"
        row = rows.setdefault(", ".join(filter(None, [cell.source, cell.split, layer])), {})
        row[cell.quantity], theirs = _number(cell), f"{cell.quantity}, the paper"
        columns |= {cell.quantity: None, theirs: None}
        if cell.paper is not None:
            row[theirs] = f"{cell.paper:{'+' if minus else ''}.4g}"
    header = [column for column in columns if any(column in row for row in rows.values())]
    remarks = [difference_text(cell) for cell in record.cells if cell.minus is not None]
    order = [*table("table1").paper]
    names = sorted(rows, key=lambda name: [*order, task := name.partition(",")[0]].index(task))
    found = [(name, *(rows[name].get(column, "") for column in header)) for name in names]
    return Section(record.title, record.note, ("", *header), found, remarks)


def _number(cell: StudyCell) -> str:
    """ "93.42 [93.01, 93.83]", a difference with its sign, "1,958", "3 of 10"; a text as it is."""
    if cell.text:
        return cell.text
    if isinstance(cell.value, int):
        return f"{cell.value:,}" + ("" if cell.n is None else f" of {cell.n:,}")
    form = "{:.2f}" if cell.minus is None else "{:+.2f}"
    interval = None if cell.low is None or cell.high is None else (cell.low, cell.high)
    return form.format(cell.value) + (f" [{interval_text(interval, form, ', ')}]" if interval else "")


def difference_text(cell: StudyCell) -> str:
    """The better of two layers, if the interval of their difference shows it, and the better one in the paper."""
    upper, lower = f"layer {cell.layer}", f"layer {cell.minus}"
    if cell.low is None or cell.high is None or cell.low <= 0 <= cell.high:
        result = "no layer is shown to be better"
    else:
        result = f"{upper} is better than {lower}" if cell.low > 0 else f"{lower} is better than {upper}"
    paper = "" if cell.paper is None else f"; in the paper {upper if cell.paper > 0 else lower} is"
    measured = ", ".join(filter(None, [f"{upper} minus {lower}: {_number(cell)}", cell.behind]))
    return f"{cell.source}, {cell.quantity}: {result} ({measured}){paper}."


def show_study(record: StudyRecord, results_root: str | None = None) -> None:
    """Prints the table of a study, and the path of its record if it has one."""
    show([of_study(record)])
    if results_root is not None:
        print(f"record: {record.place(results_root)}")


def overlaps_of(studies: Iterable[StudyRecord]) -> Overlaps:
    """The biLM's overlap with dev, if it is more than chance, by the records of `elmo-bench analysis.overlap`."""
    found: dict[tuple[str, str], list[str]] = {}
    for study in (study for study in studies if study.study == "overlap"):
        known = {(cell.source, cell.split, cell.quantity): int(cell.value) for cell in study.cells}
        for task in dict.fromkeys(cell.source for cell in study.cells):
            counts = {split: (known.get((task, split, SHARED), 0), known.get((task, split, LONG), 0))
                      for split in ("dev", "test")}  # fmt: skip
            shared, long = counts["dev"]
            if 100 * shared > CHANCE * long:
                texts = {split: "{:,} of the {:,} longer".format(*both) for split, both in counts.items()}
                found.setdefault((study.scale, task), []).append(OVERLAP.format(**texts))
    return found
