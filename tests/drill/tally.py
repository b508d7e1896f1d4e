"""What the trials of a drill came to: kept in a file, so that a killed drill goes on, and shown as a table."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.drill.crew import Chunk
from tests.drill.trial import EQUAL, FAULT, ONE_LINE, RESULT, Answer, Area, chance

SHOWN = 5  # faults of an area that are listed


class Tally:
    """Outcomes by area.

    Args:
        path: a line of JSON for each chunk of trials; None: nothing is kept.
    """

    def __init__(self, path: Path | None = None):
        self.path = path
        self.done: dict[str, set[int]] = {}
        self.outcomes: dict[str, Counter[str]] = {}
        self.faults: dict[str, list[tuple[int, str]]] = {}
        for line in self._lines():
            self._count(**line)

    def _lines(self) -> Iterator[dict]:
        if self.path is None or not self.path.is_file():
            return
        content = self.path.read_text(encoding="utf-8")
        if content and not content.endswith("\n"):  # the last line of a killed drill
            content = content[: content.rfind("\n") + 1]
            self.path.write_text(content, encoding="utf-8")
        yield from map(json.loads, content.splitlines())

    def keep(self, chunk: Chunk, answers: Sequence[Answer]) -> None:
        """Counts the answers of a chunk, and keeps them."""
        outcomes = Counter(outcome for outcome, _ in answers)
        pairs = zip(chunk.numbers, answers, strict=True)
        faults = [[number, told] for number, (outcome, told) in pairs if outcome == FAULT]
        line = {"area": chunk.area, "first": chunk.numbers[0], "outcomes": dict(outcomes), "faults": faults}
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        self._count(**line)

    def _count(self, area: str, first: int, outcomes: dict[str, int], faults: list) -> None:
        self.done.setdefault(area, set()).update(range(first, first + sum(outcomes.values())))
        self.outcomes.setdefault(area, Counter()).update(outcomes)
        self.faults.setdefault(area, []).extend((number, told) for number, told in faults)

    def missing(self, area: Area, seed: int, fraction: float = 1.0) -> Iterator[range]:
        """The trials of an area that are still to be done, in ranges of at most a fiftieth of all.

        Of a fraction that is less than one trial, the seed decides whether there is one.
        """
        done = self.done.get(area.name, set())
        total = int(area.trials * fraction + chance(seed, area.name, -1).random())
        size = max(1, area.trials // 50)
        numbers = [number for number in range(min(total, area.trials)) if number not in done]
        while numbers:
            length = next((i for i, n in enumerate(numbers[:size]) if n != numbers[0] + i), len(numbers[:size]))
            yield range(numbers[0], numbers[0] + length)
            del numbers[:length]

    def show(self, areas: Sequence[Area], seed: int, console: Console) -> bool:
        """Prints the table, and the faults with the command that shows each again. Returns whether there are none."""
        table = Table("area", "trials", "equal, or a valid result", "one-line error", "anything else")
        for column in table.columns[1:]:
            column.justify = "right"
        total: Counter[str] = Counter()
        for area in areas:
            counts = self.outcomes.get(area.name, Counter())
            total.update(counts)
            table.add_row(area.name, *_cells(counts))
        table.add_section()
        table.add_row("all", *_cells(total))
        console.print(table)
        for area in areas:
            self._show_faults(area, seed, console)
        return not total[FAULT]

    def _show_faults(self, area: Area, seed: int, console: Console) -> None:
        faults = sorted(self.faults.get(area.name, []))
        for number, told in faults[:SHOWN]:
            lines = told.strip().splitlines() or [""]
            console.print(f"{area.name}, trial {number}: {lines[-1]}", markup=False, soft_wrap=True)
            console.print(f"    {command(seed, area.name, number)}", markup=False, soft_wrap=True)
        if len(faults) > SHOWN:
            console.print(f"{area.name}: and {len(faults) - SHOWN} more", markup=False)


def command(seed: int, area: str, number: int) -> str:
    """What shows a trial again."""
    return shlex.join(["python", "-m", "tests.drill", "--seed", str(seed), "--area", area, "--trial", str(number)])


def _cells(counts: Counter[str]) -> list[str]:
    columns = sum(counts.values()), counts[EQUAL] + counts[RESULT], counts[ONE_LINE], counts[FAULT]
    return [f"{number:,}" for number in columns]
