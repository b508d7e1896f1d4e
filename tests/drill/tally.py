"""What the trials of a drill came to: kept in a file, so that a killed drill goes on, and shown as a table."""

from __future__ import annotations

import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.drill.trial import EQUAL, FAULT, ONE_LINE, RESULT, Answer, Area, chance

SHOWN = 5  # faults of an area that are listed


class Tally:
    """Outcomes by area, in a file with a line of JSON for some trials of an area; several processes may write it."""

    def __init__(self, path: Path):
        self.path = path
        self.read()

    def read(self) -> None:
        """Counts what the file holds."""
        self.done: dict[str, set[int]] = defaultdict(set)
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self.faults: dict[str, list[tuple[int, str]]] = defaultdict(list)
        content = self.path.read_text(encoding="utf-8") if self.path.is_file() else ""
        if not content.endswith("\n"):  # the last line of a killed drill
            content = content[: content.rfind("\n") + 1]
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self.path.write_text(content, encoding="utf-8")
        for line in map(json.loads, content.splitlines()):
            self.done[line["area"]].update(line["numbers"])
            self.outcomes[line["area"]].update(line["outcomes"])
            self.faults[line["area"]].extend((number, told) for number, told in line["faults"])

    def keep(self, area: str, answers: Mapping[int, Answer]) -> None:
        """Adds answers to the file."""
        faults = [(number, told) for number, (outcome, told) in answers.items() if outcome == FAULT]
        outcomes = Counter(outcome for outcome, _ in answers.values())
        line = {"area": area, "numbers": list(answers), "outcomes": outcomes, "faults": faults}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def missing(self, area: Area, seed: int, fraction: float = 1.0) -> list[int]:
        """The trials of an area that are still to be done.

        Of a fraction that is less than one trial, the seed decides whether there is one.
        """
        total = int(area.trials * fraction + chance(seed, area.name, -1).random())
        return [number for number in range(min(total, area.trials)) if number not in self.done[area.name]]

    def show(self, areas: Sequence[Area], seed: int, console: Console) -> bool:
        """Prints the table, and the faults with the command that shows each again. Returns whether there are none."""
        table = Table("area", "trials", "equal, or a valid result", "one-line error", "anything else")
        for column in table.columns[1:]:
            column.justify = "right"
        for area in areas:
            table.add_row(area.name, *_cells(self.outcomes[area.name]))
        table.add_section()
        total = sum((self.outcomes[area.name] for area in areas), Counter[str]())
        table.add_row("all", *_cells(total))
        console.print(table)
        for area in areas:
            faults = sorted(self.faults[area.name])
            for number, told in faults[:SHOWN]:
                lines = told.strip().splitlines() or [""]
                console.print(f"{area.name}, trial {number}: {lines[-1]}", markup=False, soft_wrap=True)
                console.print(f"    {command(seed, area.name, number)}", markup=False, soft_wrap=True)
            if len(faults) > SHOWN:
                console.print(f"{area.name}: and {len(faults) - SHOWN} more", markup=False)
        return not total[FAULT]


def command(seed: int, area: str, number: int) -> str:
    """What shows a trial again."""
    return shlex.join(["python", "-m", "tests.drill", "--seed", str(seed), "--area", area, "--trial", str(number)])


def _cells(counts: Counter[str]) -> list[str]:
    columns = sum(counts.values()), counts[EQUAL] + counts[RESULT], counts[ONE_LINE], counts[FAULT]
    return [f"{number:,}" for number in columns]
