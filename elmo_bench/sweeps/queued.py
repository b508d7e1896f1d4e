"""The runs of a sweep as jobs of a cluster: submitting them, how far they are, ending them.

A submission has a folder, results/own/work/cluster/<time>: `submission.json`, a journal for each run, and the logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.records import store
from elmo_bench.sweeps import local
from elmo_bench.sweeps.clusters import settings, slurm
from elmo_bench.sweeps.clusters.attempt import CANCELLED, RUNS, Attempt, Preparation, first_line
from elmo_bench.sweeps.clusters.journal import Journal
from elmo_bench.sweeps.clusters.settings import ClusterSettings
from elmo_bench.sweeps.clusters.slurm import Queued
from elmo_bench.sweeps.plan import Plan, Point
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_bytes
from elmo_bench.system.storage.locks import exclusive
from elmo_bench.system.terminal import console

FILE = "submission.json"
NAME = "elmo-bench"  # of the jobs in Slurm
STATES = ("recorded", "running", "waiting", "cancelled", "failed")


class Submission(NamedTuple):
    """What was queued by one command.

    Attributes:
        folder: of it.
        sweep: its title.
        runs: the title and record of each run, by its name.
        prepare: ids of the jobs that all runs wait for.
    """

    folder: Path
    sweep: str
    runs: Mapping[str, Mapping[str, str]]
    prepare: Sequence[str]

    def jobs(self, run: str) -> list[str]:
        """The ids of a run's jobs, the newest last."""
        return journal(self.folder, run).jobs


class Row(NamedTuple):
    """One run in the status: its state (`STATES`), its title, and what is known beside it."""

    state: str
    title: str
    more: str = ""


class Status(NamedTuple):
    """How far a sweep is."""

    sweep: str
    rows: Sequence[Row]

    def lines(self) -> list[str]:
        """A line of counts, and one for each run that is not recorded."""
        states = [row.state for row in self.rows]
        counts = ", ".join(f"{states.count(state)} {state}" for state in STATES if state in states)
        unfinished = sorted((row for row in self.rows if row.state != "recorded"), key=lambda r: STATES.index(r.state))
        return [f"{self.sweep}: {counts}", *(f"  {row.state}  {row.title}{row.more}" for row in unfinished)]


def submit(plan: Plan) -> None:
    """Queues the runs that are neither recorded nor queued already, and returns at once.

    First a job for each task and biLM that makes what the runs read, then one job array that waits for the end of
    these. What a job that was killed has not made, the first run makes that needs it.

    Raises:
        UserError: Slurm refuses, or another process is submitting.
    """
    for error in dict.fromkeys((*plan.refused, *plan.errors.values())):
        console.show(error)
    if plan.composed:
        root = Path(plan.config.results_root).absolute()
        with exclusive(cluster_folder(root), "another process is submitting runs; wait for it"):
            _submit(plan, root, settings.read(plan.request.on, plan.request.cluster))
    for error in (*plan.refused, *plan.errors.values()):
        raise error


def _submit(plan: Plan, root: Path, cluster: ClusterSettings) -> None:
    there = queued_runs(root)
    new = [point for point in plan.new if plan.composed[point].run not in there]
    waiting = len(plan.new) - len(new)
    counts = f"{len(plan.composed) - len(plan.new)} recorded, {waiting} queued before, {len(new)} queued now"
    if new:
        print(plan.cost(new), flush=True)
        _fetch(plan, new)
        _queue(plan, new, root, cluster)
    print(f"{plan.request.sweep}: {counts}; elmo-bench queue shows how far they are", flush=True)


def _queue(plan: Plan, new: Sequence[Point], root: Path, cluster: ClusterSettings) -> None:
    folder = cluster_folder(root) / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    folder.mkdir()
    preparing = [Preparation([*local.PREPARE, *point.overrides]) for point in _preparing(plan, new)]
    prepare = slurm.submit(preparing, folder, cluster, cluster.prepare, f"{NAME}-prepare") if preparing else []
    after = "afterany:" + ":".join(dict.fromkeys(job.partition("_")[0] for job in prepare)) if prepare else None
    attempts = [_attempt(plan, point, root, folder, cluster.attempts) for point in new]
    write_bytes(folder / RUNS, "".join(f"{plan.composed[point].run}\n" for point in new).encode())
    job = replace(cluster.run, setup=[first_line(folder, cluster.attempts), *cluster.run.setup])
    try:
        jobs = slurm.submit(attempts, folder, cluster, job, NAME, after)
    except UserError:
        slurm.cancel(prepare)
        raise
    for attempt, job in zip(attempts, jobs, strict=True):
        Journal(attempt.journal).queued(job)
    runs = {
        plan.composed[p].run: {"title": a.title, "record": str(a.record)} for p, a in zip(new, attempts, strict=True)
    }
    title = f"{plan.request.sweep} {','.join(plan.request.tasks)} {plan.request.scale}"
    write_bytes(folder / FILE, json_text.dumps({"sweep": title, "runs": runs, "prepare": prepare}, indent=1).encode())


def _attempt(plan: Plan, point: Point, root: Path, folder: Path, attempts: int) -> Attempt:
    composed = plan.composed[point]
    record = store.place(root, plan.request.scale, point.task, composed.run)
    command = [*local.TRAIN, "hydra.mode=RUN", *point.overrides]
    return Attempt(composed.title, command, record, journal(folder, composed.run).path, attempts)


def _preparing(plan: Plan, new: Sequence[Point]) -> list[Point]:
    """One run for each task and source of layers: the one on most data, of which the others read a part."""
    largest: dict[str, Point] = {}
    for point in sorted(new, key=lambda point: plan.composed[point].config.fraction):
        run = plan.composed[point].config
        layers = None if run.baseline else run.bilm
        text = run.vectors if run.trains_vectors else None
        largest[repr((point.task, layers, text))] = point
    needed = {point for point in largest.values() if not plan.composed[point].config.baseline}
    without = {point.task for point in largest.values()} - {point.task for point in needed}
    return [point for point in largest.values() if point in needed or point.task in without]


def _fetch(plan: Plan, new: Sequence[Point]) -> None:
    """Gets the data of the hub here, where there is a network; the nodes may have none."""
    from hydra.utils import instantiate

    for task in dict.fromkeys(point.task for point in new):
        run = next(plan.composed[point].config for point in new if point.task == task)
        data: Any = run.task.data or {}
        if data.get("hub") and data.get("folder" if "folder" in data else "train") is None and not run.scale.maker:
            instantiate(run.task.reader).load()


def journal(folder: Path, run: str) -> Journal:
    """Of the jobs of a run."""
    return Journal(folder / f"{run}.jobs")


def cluster_folder(results_root: Path) -> Path:
    """The folder of all submissions."""
    return results_root / "work" / "cluster"


def submissions(results_root: Path) -> list[Submission]:
    """All submissions, the newest last."""
    found = []
    for path in sorted(cluster_folder(results_root).glob(f"*/{FILE}")):
        stored = json_text.read(path)
        found.append(Submission(path.parent, stored["sweep"], stored["runs"], stored["prepare"]))
    return found


def queued_runs(results_root: Path) -> set[str]:
    """The names of the runs that wait or run."""
    there = slurm.queue()
    return {run for each in submissions(results_root) for run in each.runs if there.keys() & {*each.jobs(run)}}


def status(results_root: Path) -> list[Status]:
    """How far each sweep is; of a run that was queued several times, the last time counts."""
    last: dict[str, tuple[Submission, str]] = {}
    for submission in submissions(results_root):
        last |= {run: (submission, run) for run in submission.runs}
    there = slurm.queue() if last else {}
    rows: dict[str, list[Row]] = {}
    for submission, run in last.values():
        rows.setdefault(submission.sweep, []).append(_row(submission, run, there))
    return [Status(sweep, found) for sweep, found in rows.items()]


def _row(submission: Submission, run: str, there: Mapping[str, Queued]) -> Row:
    title, jobs = submission.runs[run]["title"], submission.jobs(run)
    if Path(submission.runs[run]["record"]).is_file():
        return Row("recorded", title)
    starts = journal(submission.folder, run).starts
    again = f", start {starts}" if starts > 1 else ""
    if running := [job for job in jobs if job in there and not there[job].waits]:
        return Row("running", title, f" (job {running[0]}{again})")
    if waiting := [job for job in jobs if job in there]:
        return Row("waiting", title, f" (job {waiting[0]}, {there[waiting[0]].reason})")
    if (submission.folder / CANCELLED).exists():
        return Row("cancelled", title)
    log = _log(submission.folder, jobs[::-1])
    return Row("failed", title, f": {slurm.last_line(log)}; log: {log}" if log else ": ended before it began")


def _log(folder: Path, jobs: Sequence[str]) -> Path | None:
    """The log of the first of these jobs that has one."""
    paths = (folder / f"{job}_0_log.out" for job in jobs)
    return next((path for path in paths if path.is_file()), None)


def cancel(results_root: Path) -> int:
    """Ends all jobs of all sweeps, those that wait first, so that none of them follows one that is ended."""
    there, found = slurm.queue(), submissions(results_root)
    for submission in found:
        (submission.folder / CANCELLED).touch()
    jobs = {job for each in found for job in (*each.prepare, *(job for run in each.runs for job in each.jobs(run)))}
    waiting = [job for job in jobs & there.keys() if there[job].waits]
    running = [job for job in jobs & there.keys() if not there[job].waits]
    slurm.cancel(waiting)
    slurm.cancel(running)
    return len(waiting) + len(running)
