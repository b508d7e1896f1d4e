"""The paper's Table 1 for a task: `python -m elmo_bench.reproduce task=ner scale=open seeds=3 data_root=FOLDER`.

Runs the sweep conf/sweep/table1.yaml, the arms that the task's page names, over seeds 1 to N (`task=all`: every task);
prints our results beside the paper's and writes results/README.md. Recorded runs are not run again. Any other override
applies to every run.

`jobs=N` trains N runs at a time, each on its share of the cores; by default two, if there are two cores and no GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from omegaconf import DictConfig

from elmo_bench import report
from elmo_bench.clusters.local import Job, run_jobs
from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.composing import compose_all
from elmo_bench.experiment import usage
from elmo_bench.experiment.arms import check, placed
from elmo_bench.experiment.launch import finished, train
from elmo_bench.experiment.missing import check_files
from elmo_bench.experiment.run_names import label, run_name
from elmo_bench.experiment.store import Record
from elmo_bench.experiment.sweeps import points
from elmo_bench.reporting import tables
from elmo_bench.system import console
from elmo_bench.system.errors import UserError
from elmo_bench.system.machine import cores

OWN = ("task", "scale", "seeds", "jobs")
TRAIN = [sys.executable, "-m", "elmo_bench.train"]


def reproduce(
    task: str, scale: str, seeds: int, overrides: Sequence[str] = (), at_once: int | None = 1
) -> list[Record]:
    """The records of all arms of one task, baseline first.

    Args:
        task, scale: their names.
        seeds: runs seeds 1 to this one.
        overrides: for every run.
        at_once: how many runs are trained at a time; None: as many as the machine allows.

    Raises:
        UserError: an unknown task, missing data, a value that is not allowed.
    """
    pages.page(task)
    chosen = [f"task={task}", f"scale={scale}", *overrides]
    check(task, list(pages.compose(chosen).task.arms))
    runs = [[*chosen, *point] for point in points("table1", chosen, seeds=range(1, seeds + 1))]
    cfgs = compose_all(runs)
    check_files(*map(schema.typed, cfgs))  # of all arms, so that all that is missing is named at once
    new = [i for i, cfg in enumerate(cfgs) if cfg.force or not finished(cfg)]
    if len(new) < 2 or (at_once := at_once or fitting(cfgs[0])) < 2:
        return [train(cfg) for cfg in cfgs]
    train_together([runs[i] for i in new], [cfgs[i] for i in new], at_once)
    return [(i in new and finished(cfg)) or train(cfg) for i, cfg in enumerate(cfgs)]


def train_together(runs: Sequence[list[str]], cfgs: Sequence[DictConfig], at_once: int) -> None:
    """Trains each run in a separate process, given its overrides and the configuration that they compose to.

    The last run starts first: it has ELMo, and prepares what others need too (a biLM, its cached layers).

    Raises:
        UserError: the error of the first run that failed; all errors have been printed.
    """
    jobs = [Job(_title(cfg), [*TRAIN, *run]) for run, cfg in zip(runs, cfgs, strict=True)]
    errors = {str(error): error for error in run_jobs([jobs[-1], *jobs[:-1]], at_once) if error}
    for error in errors.values():
        console.show(error)
    if errors:
        raise next(iter(errors.values()))


def _title(cfg: DictConfig) -> str:
    run = schema.typed(cfg)
    arm, variant = placed(run)
    return run_name(run.task.name, run.scale.name, label(arm, run.elmo.where, variant), run.seed)


def fitting(cfg: DictConfig) -> int:
    """How many runs to train at a time: two if there are two cores and no GPU, else one."""
    if cfg.trainer.accelerator != "cpu":
        import torch

        if torch.cuda.is_available():
            return 1
    return min(2, cores())


def main() -> None:
    """The entry point."""
    own, rest = _split(sys.argv[1:])
    seeds = own.get("seeds", "1")
    if not _counts(seeds):
        raise UserError(f"seeds={seeds}: how many seeds, a whole number from 1 to 1000")
    at_once = own.get("jobs")
    if at_once is not None and not _counts(at_once):
        raise UserError(f"jobs={at_once}: how many runs at a time, a whole number from 1 to 1000")
    names = pages.tasks() if own.get("task") == "all" else [own.get("task") or "ner"]
    cfg = pages.compose([f"task={pages.page(names[0]).stem}", *rest])
    records: list[Record] = []
    failed: list[UserError] = []
    for task in names:
        try:
            records += reproduce(task, own.get("scale") or "mini", int(seeds), rest, int(at_once) if at_once else None)
        except UserError as error:
            console.show(error)  # at once; the other tasks still run
            failed.append(error)
    if records:
        report.refresh(cfg.results_root)
        report.show(tables.sections(records))
    if failed:
        raise failed[0]


def _counts(text: str) -> bool:
    """Whether a text is a whole number from 1 to 1000."""
    return text.isdecimal() and len(text) < 5 and 1 <= int(text) <= 1000


def _split(argv: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Our own arguments and the overrides. Raises `UserError` for anything else."""
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
    usage.REPRODUCE.run(main)
