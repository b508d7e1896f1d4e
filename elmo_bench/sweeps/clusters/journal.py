"""The jobs of one run, in a file of lines `queued ID`, `queued ID after ID` and `started ID`.

The first line is added where the run is submitted, the others by its jobs (`start.sh`).
"""

from __future__ import annotations

from pathlib import Path


class Journal:
    """Kept on the file system that all nodes share. Short lines in append mode are whole on it.

    Args:
        path: of the file; it need not exist.
    """

    def __init__(self, path: Path):
        self.path = path

    def queued(self, job: str) -> None:
        """Adds a job."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(f"queued {job}\n")

    @property
    def jobs(self) -> list[str]:
        """The ids of all jobs, the newest last."""
        return list(dict.fromkeys(line.split()[1] for line in self._lines()))

    @property
    def starts(self) -> int:
        """How often the run was started."""
        return sum(line.startswith("started ") for line in self._lines())

    def _lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines() if self.path.is_file() else []
