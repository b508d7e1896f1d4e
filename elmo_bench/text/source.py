"""The source of a data set: files, below a folder if one is named, or the Hugging Face hub; `datasets` reads tables.

Readers turn their rows into tables of `datasets`, too. It is imported only here and where rows are read, because
prediction does not need it.
"""

from __future__ import annotations

import csv
import os
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from elmo_bench.system.console import choices
from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage import files, limits
from elmo_bench.system.storage.disk import writing
from elmo_bench.text.hub import load_from_hub

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, Features

# ending -> the format; except for csv also the builder of `datasets`
TABLES = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".jsonl": "json", ".json": "json"}
SPLITS = {"train": "train", "dev": "validation", "test": "test"}  # our names -> the hub's names
FILES = (*SPLITS, "folder")  # keys of `data` that name its files ...
PLACES = (*FILES, "hub", "revision", "configuration", "columns")  # ... and where it may be tables
CHUNK = 500  # rows held as Python objects, which take ten times the memory


def check_keys(data: Mapping[str, Any], *own: str, places: Sequence[str] = PLACES) -> None:
    """Refuses a key of `task.data` that is neither in `places` nor the reader's own.

    Also refuses an empty value, which would mean the current folder.
    """
    for key, value in data.items():
        if value == "":
            raise UserError(f"task.data.{key} is empty, perhaps from an unset shell variable; give a file or folder")
        if key not in places and key not in own:
            raise UserError(f"task.data.{key}: there is no such key; {choices(key, [*places, *own])}")


def of_hub(data: Mapping[str, Any]) -> bool:
    """Whether `data` names a data set of the hub, and no training file, which would take precedence."""
    return data.get("hub") is not None and data.get("train") is None


class Table(NamedTuple):
    """A split as a table, with columns by our names, and its origin. Messages count its rows from 0."""

    rows: Dataset
    split: str  # by our name
    path: Path | None  # None: of the hub
    origin: str  # in messages about the hub
    found: str  # its columns by their names in the source, for messages
    mend: str  # the remedy for wrong columns
    theirs: Mapping[str, str]  # the renamed columns' names in the source

    def unfit(self, why: str) -> UserError:
        """The error for unexpected columns; `why` completes "the table ..."."""
        if self.path is None:
            return UserError(f"{self.origin}, split {self.split}, {why}; {self.mend} (it has {self.found})")
        return UserError(f"the table {why}; it has {self.found}; {self.mend}", self.path)

    def fault(self, row: int, why: str, remedy: str = "correct the table") -> UserError:
        """The error for a value in a row."""
        origin = f"{self.origin}, {self.split} " if self.path is None else ""
        return UserError(f"{origin}row {row}: {why}; {remedy}", self.path)

    def require(self, *columns: str) -> None:
        """Refuses a table that lacks one of them."""
        if lacking := [column for column in columns if column not in self.rows.column_names]:
            raise self.unfit(f"lacks {' and '.join(lacking)}")

    def row(self, number: int) -> dict[str, Any]:
        """A row of a file to predict, by the file's names and without empty cells; empty for a split."""
        return {} if self.split else {self.theirs.get(n, n): c for n, c in self.rows[number].items() if c is not None}

    def cells(self, column: str) -> Iterator[Any]:
        """The cells of a column; an empty cell (null) is an error."""
        for row, cell in enumerate(self.rows[column]):
            if cell is None:
                raise self.fault(row, f"{column} is empty")
            yield cell

    def texts(self, column: str) -> Iterator[str]:
        """The same as `cells`, but only text."""
        for row, cell in enumerate(self.cells(column)):
            if not isinstance(cell, str):
                raise self.fault(row, f"{column} is {cell!r}, not text")
            yield cell

    def lists(self, column: str, numbers: bool = False) -> Iterator[list[Any]]:
        """The words of each cell: a list, or a text with spaces between words, as in CSV.

        Args:
            column: the name of the column.
            numbers: whether whole numbers may stand for words, also as 1.0 or as text; they become `int`.
        """
        kinds = (str, int) if numbers else (str,)
        for row, cell in enumerate(self.cells(column)):
            if isinstance(cell, str) and cell[:1] == "[" and cell[-1:] == "]" and len(cell.split()) > 1:
                remedy = "in CSV write the words with spaces between them, or write JSON lines or parquet"
                raise self.fault(row, f"{column} is a list as Python prints it", remedy)
            each = cell.split() if isinstance(cell, str) else cell if isinstance(cell, list) else [cell]
            each = list(map(whole_number, each)) if numbers else each
            if wrong := [one for one in each if type(one) not in kinds or one == ""]:
                what = "an empty word" if wrong[0] in (None, "") else f"{wrong[0]!r}, which is not text"
                raise self.fault(row, f"{column} has {what}")
            yield each


def with_inputs(rows: list[dict[str, Any]], opened: Table | Path) -> list[dict[str, Any]]:
    """The rows of a file; rows of a table get their original cells as "input"."""
    return rows if isinstance(opened, Path) else [row | {"input": opened.row(i)} for i, row in enumerate(rows)]


def whole_number(cell: Any) -> Any:
    """A whole number as `int`, also from 1.0 (as in a column with an empty cell) or text; anything else unchanged."""
    try:
        number = float(cell)
    except (TypeError, ValueError, OverflowError):
        return cell
    return int(number) if number.is_integer() and not isinstance(cell, bool) else cell


@dataclass(eq=False)
class DataSource:
    """The `data` of a task's configuration for one scale.

    Args:
        data: the file of each split, below {folder} if given; or, without a folder, a data set of the hub
            {hub, revision, configuration}. For a table, {columns} maps the names of columns: {ours: theirs}.
        instead: the settings that name files instead of the hub, for error messages.
        native: whether a file with the ending of a table has the reader's own format.
        otherwise: the remedy for {columns} if the files are not tables, for error messages.
        keys: the keys of `data` that the reader reads itself.
    """

    data: Mapping[str, Any]
    instead: str = "task.data.folder=DIR"
    native: Callable[[Path], bool] = lambda path: False
    otherwise: str = "leave it out"
    keys: Sequence[str] = ()

    def __post_init__(self):
        check_keys(self.data, *self.keys)
        self.hint = f"give {self.instead} to read files instead"
        self.columns: dict[str, str] = dict(self.data.get("columns") or {})
        self.from_hub = of_hub(self.data)
        self.title = f"the data set {self.data.get('hub')} of the hub"

    @property
    def tabular(self) -> bool:
        """Whether it is a table: from the hub, or files in a format of `datasets`. All splits must agree."""
        if self.from_hub:
            return True
        names = {split: self.data[split] for split in SPLITS if isinstance(self.data.get(split), str)}
        kinds = {name: self._is_table(self.path(split)) for split, name in names.items()}
        found = {*kinds.values()}
        if len(found) > 1:
            listed = ", ".join(f"{name} is {'a table' if kind else 'not'}" for name, kind in kinds.items())
            raise UserError(
                f"{listed}: all splits must be tables (.parquet, .json, .csv), or all the data set's own files"
            )
        if found == {False} and self.columns:
            raise UserError(f"task.data.columns is for tables, and {next(iter(kinds))} is not one; {self.otherwise}")
        return found == {True}

    def _is_table(self, path: Path) -> bool:
        return files.ending(path) in TABLES and (bool(self.columns) or not self.native(path))

    def open(self, path: StrPath) -> Table | Path:
        """A file for `predict` or `score`, as a table if it is one. Renamed columns may be missing."""
        path = Path(path)
        return self._table("", _read(path), path) if self._is_table(path) else path

    def path(self, split: str) -> Path:
        """The file of a split."""
        name = self.data.get(split)
        if name is None:
            raise UserError(f"no file is named for {split}: set task.data.{split}")
        return Path(os.path.expanduser(Path(self.data.get("folder") or "", name)))

    def load(self, splits: Mapping[str, str] = SPLITS) -> dict[str, Table | Path]:
        """The splits by our names: tables, or the data set's own files."""
        if not self.from_hub:
            tabular, paths = self.tabular, {split: self.path(split) for split in splits}
            return {split: self._table(split, _read(path), path) if tabular else path for split, path in paths.items()}
        if own := [split for split in splits if self.data.get(split) is not None]:
            raise UserError(
                f"task.data.{own[0]} names a file, and task.data.train none, so that {self.title} would be read; "
                f"name the files of all splits"
            )
        dataset = load_from_hub(
            self.data["hub"], self.data.get("revision"), self.data.get("configuration"), hint=self.hint
        )
        if missing := [split for split in splits.values() if split not in dataset]:
            there = ", ".join(map(str, dataset))
            raise UserError(f"{self.title} has no split {', '.join(missing)}; {self.hint} (it has {there})")
        return {ours: self._table(ours, dataset[theirs]) for ours, theirs in splits.items()}

    def _table(self, split: str, rows: Dataset, path: Path | None = None) -> Table:
        found = ", ".join(f"{name} ({kind})" for name, kind in rows.features.items())[:500]
        remedy = "+task.data.columns.OURS=THEIRS names another column" if path else self.hint
        table = Table(rows, split, path, self.title, found, remedy, self.columns)
        if split:
            table.require(*self.columns.values())
        named = {theirs: ours for ours, theirs in self.columns.items() if theirs in rows.column_names}
        renamed = {theirs: ours for theirs, ours in named.items() if ours != theirs}
        replaced = [ours for ours in renamed.values() if ours in rows.column_names and ours not in renamed]
        return table._replace(rows=rows.remove_columns(replaced).rename_columns(renamed))


def _read(path: Path) -> Dataset:
    """A file as a table, in memory: `datasets` would keep a copy in its cache.

    An empty table is refused here: `datasets` has a different error for each format, none of which is clear.
    """
    import datasets

    limits.regular(path, missing=False)
    builder = TABLES[files.ending(path.name)]
    if builder == "csv":
        return datasets.Dataset.from_dict(_columns(path))
    datasets.disable_progress_bars()
    try:
        if builder == "parquet":
            from pyarrow.parquet import read_metadata

            empty = read_metadata(path).num_rows == 0
        else:
            with files.open_bytes(path) as file:  # not by lines, because an array may be one long line
                empty = not any(map(bytes.strip, iter(lambda: file.read(files.BUFFER), b"")))
        if empty:
            raise UserError("the table has no rows", path)
        options = {"data_files": {"train": str(path)}, "split": "train", "keep_in_memory": True}
        with tempfile.TemporaryDirectory() as cache:
            return datasets.load_dataset(builder, cache_dir=cache, **options)  # type: ignore[return-value]
    except UserError:
        raise
    except Exception as error:  # the readers of these formats raise many kinds
        cause = error.__cause__ or error
        raise UserError(f"cannot be read as {builder} ({' '.join(str(cause).split())})", path) from None


def _columns(path: Path) -> dict[str, list[str | None]]:
    """The columns of a CSV or TSV file as text; an empty cell is None, and columns without a name are left out.

    Not by pandas, as in `datasets`: it turns surplus cells into an index, continues over lines after a stray quote,
    and turns text into numbers and dates.
    """
    tabs = files.ending(path.name) == ".tsv"
    with files.open_text(path) as lines:
        reader = csv.reader(lines, delimiter="\t" if tabs else ",", strict=True)
        rows = []
        try:
            header = next(reader, [])
            for row in filter(None, reader):
                if len(row) != len(header):
                    quoted = "" if tabs else "; a cell with a comma is written in double quotes"
                    raise UserError(
                        f"{len(row)} cells, where the header has {len(header)}{quoted}", path, reader.line_num
                    )
                if tabs and any("\t" in cell or "\n" in cell for cell in row):
                    raise csv.Error("a quoted cell continues after a tab or the end of the line")
                rows.append(row)
        except csv.Error as error:
            raise UserError(
                f'cannot be read as {"TSV" if tabs else "CSV"} ({error}); is a " not closed?', path, reader.line_num
            ) from None
    if not rows:
        raise UserError("the table has no rows", path)
    if twice := [name for name, number in Counter(header).items() if number > 1 and name]:
        raise UserError(f"the column {twice[0]} occurs twice in the header", path, 1)
    return {name: [row[i] or None for row in rows] for i, name in enumerate(header) if name}


def tables(splits: Mapping[str, list[dict[str, Any]]]) -> DatasetDict:
    """The rows of each split as a table."""
    from datasets import Dataset, DatasetDict

    return DatasetDict({split: Dataset.from_list(rows) for split, rows in splits.items()})


def mapped(rows: Iterable[dict[str, Any]], features: Features) -> Dataset:
    """The rows as a table that is memory-mapped from a temporary file, which is deleted with the table."""
    from datasets import Dataset
    from datasets.arrow_writer import ArrowWriter

    with tempfile.TemporaryDirectory() as folder, writing(folder):
        file = Path(folder) / "rows.arrow"
        with ArrowWriter(path=str(file), features=features, writer_batch_size=CHUNK) as writer:
            for row in rows:
                writer.write(row)
            writer.finalize()
        return Dataset.from_file(str(file))
