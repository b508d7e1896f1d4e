"""What the trials of a drill came to, shown as a table."""

import shlex
from collections import Counter
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from tests.drill.trial import EQUAL, FAULT, ONE_LINE, RESULT, Answer

SHOWN = 5  # faults of an area that are listed


def show(found: Mapping[str, Mapping[int, Answer]], seed: int, console: Console) -> bool:
    """Prints the table, and the faults with the command that shows each again. Returns whether there are none.

    Args:
        found: the answers of each area, by the number of the trial.
        seed: of the trials.
        console: where it is printed.
    """
    table = Table("area", "trials", "equal, or a valid result", "one-line error", "anything else")
    for column in table.columns[1:]:
        column.justify = "right"
    counts = {area: Counter(outcome for outcome, _ in answers.values()) for area, answers in found.items()}
    for area, count in counts.items():
        table.add_row(area, *_cells(count))
    table.add_section()
    total = sum(counts.values(), Counter[str]())
    table.add_row("all", *_cells(total))
    console.print(table)
    for area, answers in found.items():
        faults = [(number, told) for number, (outcome, told) in answers.items() if outcome == FAULT]
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
