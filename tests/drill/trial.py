"""A trial: one attempt to get something wrong past the code, drawn from a seed, and what came of it."""

import random
import traceback
from collections.abc import Callable
from typing import NamedTuple

from elmo_bench.system.terminal import console

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
