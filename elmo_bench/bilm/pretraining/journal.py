"""The training log: a line of a CSV file every few updates, also sent to the progress bar and to W&B."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from elmo_bench.system.storage import limits
from elmo_bench.system.storage.disk import writing
from elmo_bench.system.storage.files import replacing


class Journal:
    """The file `log.csv` of a training's folder.

    Args:
        path: of the file.
        opened: opens an additional W&B run in a folder; None: there is no such run.
    """

    def __init__(self, path: Path, opened: Callable[[Path], Any] | None = None):
        limits.regular(path)
        self.path = path
        self.run = opened and opened(path.parent)

    def write(self, values: dict[str, float]) -> None:
        """Adds a line, by the names of its columns, of which the first is `update`."""
        new = not self.path.exists()
        with writing(self.path), open(self.path, "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(values)
            writer.writerow(f"{value:.6g}" if isinstance(value, float) else value for value in values.values())
        if self.run:
            self.run.log(values, step=int(values["update"]))

    def shorten(self, update: int) -> None:
        """Drops the lines after an update, which a resumed run writes again."""
        if not self.path.exists():
            return
        if update == 0:
            self.path.unlink()
            return
        header, *lines = self.path.read_text(encoding="utf-8").split("\n")
        kept = [line for line in lines if (match := re.match("[0-9]{1,18},", line)) and int(match[0][:-1]) <= update]
        with replacing(self.path) as file:
            file.write("\n".join([header, *kept]) + "\n")

    def close(self) -> None:
        if self.run:
            self.run.close()
