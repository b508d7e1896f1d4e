"""Studies of the biLM, Tables 4 to 7: JSON files analysis/<scale>/<study>/<id>.json, which contain numbers.

Tables and sentences are made from the numbers when they are shown, and a finding of the paper selects one number by
study, biLM and quantity.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, NonNegativeInt

from elmo_bench.configuration.keys import shape, valid
from elmo_bench.records.record import Name, Number, Plain
from elmo_bench.records.store import Mismatch, in_lines, matching
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import write_text
from elmo_bench.system.storage.hashing import fingerprint
from elmo_bench.system.storage.json_text import read_sealed, sealed

REMEDY = "restore it (git checkout), or remove it and run the study again"
LONG, SHARED = "long", "long, in common"  # quantities of the study `overlap`: long sentences; long sentences in common
CELL = shape(
    source=str, quantity=str, value=Number, layer=(NonNegativeInt, None), minus=(NonNegativeInt, None), split=(str, ""),
    low=(Number, None), high=(Number, None), degrees=(Annotated[float, Field(ge=1)], None), n=(NonNegativeInt, None),
    clusters=(NonNegativeInt, None), paper=(Number, None), text=(str, ""),
)  # fmt: skip
STUDY = shape(
    scale=Name, study=Name, what=str, note=str, bilm=str, table=NonNegativeInt | None, settings=Plain, cells=list[CELL],
)  # fmt: skip
DIGITS = 4  # decimal places of the numbers in a file


@dataclass(frozen=True)
class StudyCell:
    """One number of a study; or a text, such as the neighbours of a word, where `value` is 0.

    Attributes:
        source: the measured object: a biLM or another source of vectors by its name, a task, a word.
        quantity: the measured quantity, with its unit if not percent: a column of the table.
        value: the number; an int if it is a count.
        layer: of the source, from 0.
        minus: the layer whose value is subtracted; the value is then a difference.
        split: of the data, if there are several.
        low, high: the 95 % interval.
        degrees: the degrees of freedom of its standard error; None: one fewer than the clusters.
        n, clusters: the numbers of examples and of independent clusters (documents, if known).
        paper: the paper's figure.
    """

    source: str
    quantity: str
    value: int | float
    layer: int | None = None
    minus: int | None = None
    split: str = ""
    low: int | float | None = None
    high: int | float | None = None
    degrees: int | float | None = None
    n: int | None = None
    clusters: int | None = None
    paper: int | float | None = None
    text: str = ""

    @property
    def behind(self) -> str:
        """The numbers of its examples and clusters; empty if unknown."""
        return "" if self.n is None or self.clusters is None else f"{self.n:,} examples in {self.clusters:,} clusters"


@dataclass(frozen=True)
class StudyRecord:
    """One study at one scale.

    Attributes:
        what: its title, without scale and biLM.
        note: a description of the measurement.
        cells: its numbers, in the order of the table.
        bilm: the name of the biLM; empty for a study of a text.
        table: the number of the paper's table.
        settings: everything that the result depends on; their hash is the id.
    """

    scale: str
    study: str
    what: str
    note: str
    cells: list[StudyCell]
    bilm: str = ""
    table: int | None = None
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The name of its file."""
        return fingerprint(self.settings)

    @property
    def title(self) -> str:
        """The title of the table, with scale and biLM."""
        table = f"Table {self.table}: " if self.table else ""
        return f"{table}{self.what}, scale {self.scale}" + (f", biLM {self.bilm}" if self.bilm else "")

    def place(self, results_root: str | Path) -> Path:
        """The path of its file."""
        return Path(results_root) / "analysis" / self.scale / self.study / f"{self.id}.json"

    def find(self, quantity: str, source: str, layer: int | None = None, minus: int | None = None) -> list[StudyCell]:
        """The numbers of a quantity of a source; `minus` selects a difference of two layers, in either order."""
        of_source = [cell for cell in self.cells if (cell.quantity, cell.source) == (quantity, source)]
        found = [cell for cell in of_source if (cell.layer, cell.minus) == (layer, minus)]
        if found or minus is None:
            return found
        turned = []
        for cell in (cell for cell in of_source if (cell.layer, cell.minus) == (minus, layer)):
            ends = {"value": cell.value, "low": cell.high, "high": cell.low, "paper": cell.paper}
            signed = {key: None if end is None else -end for key, end in ends.items()}
            turned.append(replace(cell, layer=layer, minus=minus, **signed))
        return turned


def write(record: StudyRecord, results_root: str | Path, more: Mapping[str, Any] | None = None) -> StudyRecord:
    """Writes a study, and returns it as read back."""
    path = record.place(results_root)
    write_text(path, dumps(record, more or {}))
    return read(path)


def dumps(record: StudyRecord, more: Mapping[str, Any]) -> str:
    """A study as JSON, with its checksum: a line for each key, and for each cell."""
    page = {key: value for key, value in vars(record).items() if key != "cells"}
    return sealed(in_lines({**page, **more, "cells": [*map(_plain, record.cells)]}, ["cells"]))


def _plain(cell: StudyCell) -> dict[str, Any]:
    """A cell's values that differ from the defaults."""
    given = {each.name: value for each in fields(StudyCell) if (value := getattr(cell, each.name)) != each.default}
    return {key: round(value, DIGITS) if isinstance(value, float) else value for key, value in given.items()}


def read_all(results_root: str | Path) -> list[StudyRecord]:
    """All studies below `results_root`, by table and title. Invalid files are left out; a line says so."""
    found = matching(read, sorted((Path(results_root) / "analysis").glob("*/*/[!.]*.json")))
    return sorted(found, key=lambda record: (record.table is None, record.table, record.title))


def read(path: Path) -> StudyRecord:
    """A study.

    Raises:
        Mismatch: its form or path is wrong.
    """
    page = read_sealed(path, "study", REMEDY, always=True)
    try:
        valid(STUDY, page)
    except UserError as error:
        raise Mismatch(f"not a study of this version: {error}; {REMEDY}", path) from None
    cells = [StudyCell(**{key: cell[key] for key in CELL.model_fields if key in cell}) for cell in page["cells"]]
    slack = 10.0**-DIGITS  # of rounding
    for cell in cells:
        if cell.low is None or cell.high is None:
            within = cell.low is cell.high
        else:
            within = cell.low - slack <= cell.value <= cell.high + slack
        if not within:
            which = f"the interval of {cell.quantity} of {cell.source}"
            raise Mismatch(f"{which} does not contain its value; {REMEDY}", path)
    values: dict[str, Any] = {key: page[key] for key in STUDY.model_fields}
    values["cells"] = cells
    record = StudyRecord(**values)
    if (own := record.place("")).parts[-4:] != path.absolute().parts[-4:]:
        raise Mismatch(f"this study belongs at {own}; move or remove it", path)
    return record
