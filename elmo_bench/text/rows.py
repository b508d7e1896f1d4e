"""Rows of a large data set outside of the process's memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from datasets import Dataset, Features
from datasets.arrow_writer import ArrowWriter

from elmo_bench.system.storage.disk import writing

CHUNK = 500  # rows that are Python objects at once; as such they take ten times the memory


def mapped(rows: Iterable[dict[str, Any]], features: Features) -> Dataset:
    """The rows as a table that the system reads from a temporary file, page by page; the file goes with the table.

    Raises:
        UserError: the folder of temporary files has no room.
    """
    with tempfile.TemporaryDirectory() as folder, writing(folder):
        file = Path(folder) / "rows.arrow"
        with ArrowWriter(path=str(file), features=features, writer_batch_size=CHUNK) as writer:
            for row in rows:
                writer.write(row)
            writer.finalize()
        return Dataset.from_file(str(file))
