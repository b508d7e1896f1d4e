"""The place of a data set: files, below a folder if one is named, or the hub; `datasets` reads tables of either.

Readers make their rows tables of `datasets`, too. It is imported only here and where rows are read: predicting does
without.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import files
from elmo_bench.system.storage.disk import writing
from elmo_bench.text.hub import load_from_hub

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, Features

TABLES = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".jsonl": "json"}  # ending -> the builder of `datasets`
SPLITS = {"train": "train", "dev": "validation", "test": "test"}  # our names -> the hub's names
CHUNK = 500  # rows that are Python objects at once; as such they take ten times the memory


class DataSource:
    """The `data` of a task's configuration for one scale.

    Args:
        data: the file of each split, below {folder} if given; or, without a folder, a data set of the hub
            {hub, revision, configuration}. Of a table, {columns} names those that are called otherwise: {ours: theirs}.
        instead: the settings that name files instead of the hub, for error messages.
        native: endings of files that the reader reads itself.
    """

    def __init__(self, data: Mapping[str, Any], instead: str = "task.data.folder=DIR", native: Sequence[str] = ()):
        self.data, self.native, self.hint = dict(data), native, f"give {instead} to read files instead"
        self.columns: dict[str, str] = dict(self.data.get("columns") or {})
        self._found = ""  # the columns of the table that was read last

    @property
    def tabular(self) -> bool:
        """Whether it is a table: of the hub, or files in a format of `datasets`. Splits are not mixed."""
        if self.from_hub:
            return True
        names = [self.data[split] for split in SPLITS if isinstance(self.data.get(split), str)]
        kinds = {_ending(name) in TABLES and (bool(self.columns) or _ending(name) not in self.native) for name in names}
        if len(kinds) > 1:
            raise UserError(f"{', '.join(names)}: all splits must be tables (.parquet, .jsonl, .csv), or none")
        return kinds == {True}

    @property
    def from_hub(self) -> bool:
        """Whether a data set of the hub is named, and neither a folder nor a table, which would take precedence."""
        table = isinstance(self.data.get("train"), str) and _ending(self.data["train"]) in TABLES
        return self.data.get("hub") is not None and self.data.get("folder") is None and not table

    def path(self, split: str) -> Path:
        """The file of a split. Raises `UserError` if none is named."""
        name = self.data.get(split)
        if name is None:
            raise UserError(f"no file is named for {split}: set task.data.{split}")
        return Path(os.path.expanduser(Path(self.data.get("folder") or "", name)))

    def load(self, splits: Mapping[str, str] = SPLITS) -> dict[str, Dataset]:
        """The splits of a table, by our names, with columns by our names.

        Raises:
            UserError: it cannot be loaded, or lacks a split or a column that is named.
        """
        if not self.from_hub:
            return {split: self._named(self._table(self.path(split))) for split in splits if self.data.get(split)}
        dataset = load_from_hub(
            self.data["hub"], self.data.get("revision"), self.data.get("configuration"), hint=self.hint
        )
        if missing := [split for split in splits.values() if split not in dataset]:
            raise self.unfit(f"has no split {', '.join(missing)}")
        return {ours: self._named(dataset[theirs]) for ours, theirs in splits.items()}

    def _table(self, path: Path) -> Dataset:
        """A file as a table, in memory: `datasets` would keep a copy in its cache."""
        from datasets import load_dataset

        files.check(path)
        ending = _ending(path.name)
        options: dict[str, Any] = {"sep": "\t"} if ending == ".tsv" else {}
        try:
            with tempfile.TemporaryDirectory() as cache:
                builder, given = TABLES[ending], {"train": str(path)}
                read = load_dataset(builder, data_files=given, split="train", cache_dir=cache, keep_in_memory=True,
                                    **options)  # fmt: skip
        except Exception as error:  # whatever the readers of these formats raise
            cause = error.__cause__ or error
            raise UserError(f"cannot be read as {ending[1:]} ({' '.join(str(cause).split())})", path) from None
        return read  # type: ignore[return-value]

    def _named(self, table: Dataset) -> Dataset:
        self._found = ", ".join(f"{name} ({kind})" for name, kind in table.features.items())[:500]
        if absent := [theirs for theirs in self.columns.values() if theirs not in table.column_names]:
            raise self.unfit(f"has no column {', '.join(absent)}")
        return table.rename_columns({theirs: ours for ours, theirs in self.columns.items() if ours != theirs})

    def unfit(self, why: str) -> UserError:
        """The error for a table that is not as expected; `why` completes "the data set ..."."""
        if self.from_hub:
            return UserError(f"the data set {self.data['hub']} of the hub {why}; {self.hint} (it has {self._found})")
        names = ", ".join(str(self.data[split]) for split in SPLITS if self.data.get(split))
        rename = "+task.data.columns.OURS=THEIRS names another column"
        return UserError(f"the data set {names} {why}; it has {self._found}; {rename}")


def _ending(name: str) -> str:
    return Path(name).suffix.lower()


def words_of_cell(value: Any) -> list[str]:
    """The words, or tags, in a cell of a table: a list, or a text with spaces between them, as in CSV."""
    return value.split() if isinstance(value, str) else [str(each) for each in value]


def tables(splits: Mapping[str, list[dict[str, Any]]]) -> DatasetDict:
    """The rows of each split as a table."""
    from datasets import Dataset, DatasetDict

    return DatasetDict({split: Dataset.from_list(rows) for split, rows in splits.items()})


def mapped(rows: Iterable[dict[str, Any]], features: Features) -> Dataset:
    """The rows as a table that the system reads from a temporary file, page by page; the file goes with the table.

    Raises:
        UserError: the folder of temporary files has no room.
    """
    from datasets import Dataset
    from datasets.arrow_writer import ArrowWriter

    with tempfile.TemporaryDirectory() as folder, writing(folder):
        file = Path(folder) / "rows.arrow"
        with ArrowWriter(path=str(file), features=features, writer_batch_size=CHUNK) as writer:
            for row in rows:
                writer.write(row)
            writer.finalize()
        return Dataset.from_file(str(file))
