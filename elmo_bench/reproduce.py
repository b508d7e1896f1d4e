"""The paper's Table 1 for a task: `python -m elmo_bench.reproduce task=ner scale=open seeds=3 data_root=FOLDER`.

Baseline and +ELMo where the task's page puts it, over seeds 1 to N (`task=all`: every task); prints ours beside the
paper's and writes results/README.md. Recorded runs are not run again. Any other override goes to every run.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from elmo_bench import cli, report
from elmo_bench.errors import UserError
from elmo_bench.records import Record
from elmo_bench.train import train

ARMS = (["elmo.where=none"], [])
OWN = ("task", "scale", "seeds")


def reproduce(task: str, scale: str, seeds: int, overrides: Sequence[str] = ()) -> list[Record]:
    """The records of both arms of one task, baseline first.

    Raises:
        UserError: an unknown task, missing data, a value that cannot be meant.
    """
    cli.page(task)
    records = []
    for arm in ARMS:
        for seed in range(1, seeds + 1):
            records.append(train(cli.compose([f"task={task}", f"scale={scale}", f"seed={seed}", *arm, *overrides])))
    return records


def main() -> None:
    """The entry point."""
    own, rest = _split(sys.argv[1:])
    seeds = own.get("seeds", "1")
    if not seeds.isdecimal() or not 1 <= int(seeds) <= 1000:
        raise UserError(f"seeds={seeds}: how many seeds, a whole number from 1 to 1000")
    names = cli.tasks() if own.get("task") == "all" else [own.get("task") or "ner"]
    cfg = cli.compose([f"task={cli.page(names[0]).stem}", *rest])
    records: list[Record] = []
    failed: list[UserError] = []
    for name in names:
        try:
            records += reproduce(name, own.get("scale") or "mini", int(seeds), rest)
        except UserError as error:
            cli.show(error)  # now; the other tasks still run
            failed.append(error)
    if records:
        report.refresh(cfg.results_root)
        report.show(report.sections(records))
    if failed:
        raise failed[0]


def _split(argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Our own arguments and the overrides. Raises `UserError` for what is neither."""
    own, rest = {}, []
    for argument in argv:
        key, equals, value = argument.partition("=")
        if not equals:
            raise UserError(f"{argument}: arguments are written key=value")
        if key == "seed":
            raise UserError("seed: reproduce runs seeds 1 to N; give seeds=N")
        if key in OWN:
            own[key] = value
        else:
            rest.append(argument)
    return own, rest


if __name__ == "__main__":
    cli.report(main)
