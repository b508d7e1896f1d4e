"""A trial: one attempt to get something wrong past the code, drawn from a seed, and what came of it."""

import random
import shlex
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from elmo_bench.system import console

EQUAL, RESULT, ONE_LINE, FAULT = "equal", "result", "one line", "fault"
Answer = tuple[str, str]  # one of these four, and what was done and seen


class Area(NamedTuple):
    """Trials of one kind.

    Attributes:
        name: of the disturbance and the kind, as in `flips:weights.hdf5`.
        trials: their number in the full drill.
        trial: conducts one, drawn from the generator. EQUAL: the undisturbed result; RESULT: a valid one, where an
            undisturbed one does not exist; ONE_LINE: one error line for the user; FAULT: anything else.
        limit: seconds after which a trial counts as hanging. The first one includes the making of the scene.
        prepare: called once, in the process that conducts all trials in forks of itself.
    """

    name: str
    trials: int
    trial: Callable[[random.Random], Answer]
    limit: float = 120.0
    prepare: Callable[[], object] = lambda: None


def chance(seed: int, area: str, number: int) -> random.Random:
    """The generator of one trial: the same for the same three, whatever ran before."""
    return random.Random(f"{seed} {area} {number}")


def conduct(area: Area, seed: int, number: int) -> Answer:
    """One trial; an exception that it does not handle is a fault."""
    try:
        return area.trial(chance(seed, area.name, number))
    except Exception:
        return FAULT, traceback.format_exc()


def of_error(error: Exception) -> Answer:
    """What a command would make of an error: one line that a terminal can show, or else a fault."""
    line = console.explain(error)
    if line is not None and len(line.splitlines()) == 1 and line.isprintable():
        return ONE_LINE, line
    return FAULT, "".join(traceback.format_exception(error))


# What the trials of a drill came to, shown as a table.


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
