"""What the trials of a drill came to, shown as a table."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from tests.drill.trial import EQUAL, FAULT, ONE_LINE, RESULT, Answer, Area

SHOWN = 5  # faults of an area that are listed


class Tally:
    """Outcomes and faults by area."""

    def __init__(self) -> None:
        self.outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self.faults: dict[str, list[tuple[int, str]]] = {}

    def keep(self, area: str, answers: Mapping[int, Answer]) -> None:
        """Counts the answers of an area, by the number of the trial."""
        self.outcomes[area] = Counter(outcome for outcome, _ in answers.values())
        self.faults[area] = [(number, told) for number, (outcome, told) in answers.items() if outcome == FAULT]

    def show(self, areas: Sequence[Area], seed: int, console: Console) -> bool:
        """Prints the table, and the faults with the command that shows each again. Returns whether there are none."""
        table = Table("area", "trials", "equal, or a valid result", "one-line error", "anything else")
        for column in table.columns[1:]:
            column.justify = "right"
        for area in areas:
            table.add_row(area.name, *_cells(self.outcomes[area.name]))
        table.add_section()
        total = sum(self.outcomes.values(), Counter[str]())
        table.add_row("all", *_cells(total))
        console.print(table)
        for area, faults in self.faults.items():
            for number, told in faults[:SHOWN]:
                lines = told.strip().splitlines() or [""]
                console.print(f"{area}, trial {number}: {lines[-1]}", markup=False, soft_wrap=True)
                console.print(f"    {command(seed, area, number)}", markup=False, soft_wrap=True)
            if len(faults) > SHOWN:
                console.print(f"{area}: and {len(faults) - SHOWN} more", markup=False)
        return not total[FAULT]


def command(seed: int, area: str, number: int) -> str:
    """What shows a trial again."""
    return shlex.join(["python", "-m", "tests.drill", "--seed", str(seed), "--area", area, "--trial", str(number)])


def _cells(counts: Counter[str]) -> list[str]:
    columns = sum(counts.values()), counts[EQUAL] + counts[RESULT], counts[ONE_LINE], counts[FAULT]
    return [f"{number:,}" for number in columns]
