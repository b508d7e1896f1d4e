"""Rows as tables of `datasets`, which is imported only here and where rows are read: predicting does without."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.system.storage.disk import writing

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, Features

CHUNK = 500  # rows that are Python objects at once; as such they take ten times the memory


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
