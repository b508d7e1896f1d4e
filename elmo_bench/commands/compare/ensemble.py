"""The recorded runs of an arm as one model: `elmo-bench ensemble task=sst5 scale=mini arm=elmo seeds=3`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from elmo_bench.commands import usage
from elmo_bench.configuration import pages, schema
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal.command import Argument, Command, flag
from elmo_bench.trained import ensemble_store

COMMAND = Command(
    "ensemble",
    "the recorded runs of an arm, one for each seed, as one model",
    (
        usage.TASK,
        usage.SCALE,
        usage.ARM,
        Argument("seeds", "the first so many, or their numbers as 1,2,4", 3, "N"),
        Argument("force", "make it again although it is recorded", False, parse=flag),
        *usage.PLACES,
    ),
    (("task=sst5 scale=mini seeds=3", "+ELMo"), ("task=ner scale=mini arm=baseline seeds=1,2", "the baseline")),
    (
        "Reads the checkpoints of the runs in the results folder, averages their scores or counts their votes, and "
        "writes a record with the official metrics, ensembles/SCALE/TASK/ID.json, which the report shows as a row.",
        usage.OVERRIDES,
    ),
    overrides=True,
    more=usage.of_pages,
    page="predicting",
)


def ensemble(seeds: Sequence[int], overrides: Sequence[str], force: bool = False) -> Path:
    """Makes the ensemble unless it is recorded; returns the path of its record.

    Args:
        seeds: of its members.
        overrides: of the configuration, which choose the runs besides their seed.
        force: make it again although it is recorded.

    Raises:
        UserError: a run without a record or a checkpoint, and the errors of `experiment.ensemble.make`.
    """
    cfgs = [pages.compose([*overrides, f"seed={seed}"]) for seed in seeds]
    found = ensemble_store.members(cfgs, " ".join(overrides))
    path = ensemble_store.place(cfgs[0].results_root, [member.record for member in found])
    if force or not path.is_file():
        from elmo_bench.trained.ensemble import make

        ensemble_store.write(path, *make(schema.typed(cfgs[0]), found))
    return path


def seeds_of(text: str) -> list[int]:
    """ "3" -> [1, 2, 3]; "1,4" -> [1, 4]. Raises `UserError` for anything else, and for fewer than two."""
    parts = text.split(",")
    if not all(part.isascii() and part.isdecimal() and len(part) < 10 for part in parts):
        raise UserError(f"seeds={text}: how many seeds, or their numbers as 1,2,4")
    numbers = [int(part) for part in parts]
    if len(numbers) == 1:
        numbers = list(range(1, min(numbers[0], 1000) + 1))
    if len(set(numbers)) < 2 or len(set(numbers)) < len(numbers):
        raise UserError(f"seeds={text}: an ensemble has at least two different seeds")
    return numbers


def main() -> None:
    """The entry point."""
    own, overrides = {"seeds": "3", "force": "false"}, []
    for argument in sys.argv[1:]:
        key, _, value = argument.partition("=")
        if key == "seed":
            raise UserError("seed: an ensemble has several; give seeds=N")
        if key in own:
            own[key] = value
        else:
            overrides.append(argument)
    path = ensemble(seeds_of(own["seeds"]), overrides, usage.FORCE.read(own["force"]))
    record = ensemble_store.read(path)
    for split, metrics in record["metrics"].items():
        print(f"{split}: {', '.join(f'{name} {value:.2f}' for name, value in metrics.items())}")
    print(f"{record['method']} of seeds {', '.join(map(str, record['seeds']))}; {path}")
