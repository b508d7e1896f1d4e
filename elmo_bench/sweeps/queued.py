"""The runs of a sweep as jobs of a cluster: submitting them, how far they are, ending them.

A submission has a folder, results/own/work/cluster/<time>: `submission.json`, a journal for each run, and the logs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from elmo_bench.records import store
from elmo_bench.running.unfinished import start_anew
from elmo_bench.sweeps import local
from elmo_bench.sweeps.clusters import settings, slurm
from elmo_bench.sweeps.clusters.attempt import CANCELLED, RUNS, Attempt, JobJournal, Preparation, first_line
from elmo_bench.sweeps.clusters.settings import ClusterSettings
from elmo_bench.sweeps.clusters.slurm import Queued
from elmo_bench.sweeps.plan import Plan, Planned
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_bytes
from elmo_bench.system.storage.locks import held
from elmo_bench.system.terminal import console
from elmo_bench.text.source import of_hub

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


class QueueRow(NamedTuple):
    """One run in the status: its state (`STATES`), its title, and what is known beside it."""

    state: str
    title: str
    more: str = ""


class Status(NamedTuple):
    """How far a sweep is."""

    sweep: str
    rows: Sequence[QueueRow]

    def lines(self) -> list[str]:
        """A line of counts, and one for each run that is not recorded."""
        states = [row.state for row in self.rows]
        counts = ", ".join(f"{states.count(state)} {state}" for state in STATES if state in states)
        unfinished = sorted((row for row in self.rows if row.state != "recorded"), key=lambda r: STATES.index(r.state))
        return [f"{self.sweep}: {counts}", *(f"  {row.state}  {row.title}{row.more}" for row in unfinished)]


def submit(plan: Plan) -> None:
    """Queues the runs that are neither recorded nor queued already, and returns at once.

    First a job for each task and biLM that makes what the runs read, then one job array that waits for the end of
    these. If such a job is killed, the first run that needs its files makes them.

    Raises:
        UserError: Slurm refuses, or another process is submitting.
    """
    for error in dict.fromkeys((*plan.refused, *plan.errors.values())):
        console.show(error)
    if plan.runs:
        root = Path(plan.config.results_root).absolute()
        with held(cluster_folder(root), "another process is submitting runs; wait for it"):
            _submit(plan, root, settings.read(plan.request.on, plan.request.cluster))
    for error in (*plan.refused, *plan.errors.values()):
        raise error


def _submit(plan: Plan, root: Path, cluster: ClusterSettings) -> None:
    there = queued_runs(root)
    new = [each for each in plan.new if each.run not in there]
    waiting = len(plan.new) - len(new)
    counts = f"{len(plan.runs) - len(plan.new)} recorded, {waiting} queued before, {len(new)} queued now"
    if new:
        print(plan.cost(new), flush=True)
        _fetch(new)
        _queue(plan, new, root, cluster)
    print(f"{plan.request.sweep}: {counts}; elmo-bench queue shows how far they are", flush=True)


def _queue(plan: Plan, new: Sequence[Planned], root: Path, cluster: ClusterSettings) -> None:
    folder = cluster_folder(root) / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    folder.mkdir()
    preparing = [Preparation([*local.PREPARE, *each.point.overrides]) for each in _preparing(new)]
    prepare = slurm.submit(preparing, folder, cluster, cluster.prepare, f"{NAME}-prepare") if preparing else []
    after = "afterany:" + ":".join(dict.fromkeys(job.partition("_")[0] for job in prepare)) if prepare else None
    attempts = [_attempt(each, root, folder, cluster.attempts) for each in new]
    write_bytes(folder / RUNS, "".join(f"{each.run}\n" for each in new).encode())
    job = cluster.run.model_copy(update={"setup": [first_line(folder, cluster.attempts), *cluster.run.setup]})
    for each in new:
        if each.config.force:
            start_anew(store.work(root, each.config.scale.name, each.point.task, each.run))
    try:
        jobs = slurm.submit(attempts, folder, cluster, job, NAME, after)
    except UserError:
        slurm.cancel(prepare)
        raise
    for attempt, job in zip(attempts, jobs, strict=True):
        attempt.journal.queued(job)
    runs = {
        each.run: {"title": each.title, "record": str(attempt.record)}
        for each, attempt in zip(new, attempts, strict=True)
    }
    title = f"{plan.request.sweep} {','.join(plan.request.tasks)} {plan.request.scale}"
    write_bytes(folder / FILE, json_text.dumps({"sweep": title, "runs": runs, "prepare": prepare}, indent=1).encode())


def _attempt(run: Planned, root: Path, folder: Path, attempts: int) -> Attempt:
    record = store.place(root, run.config.scale.name, run.point.task, run.run)
    goes_on = ["force=false"] * run.config.force  # `start_anew` has been called here, for all its jobs
    command = [*local.TRAIN, "hydra.mode=RUN", *run.point.overrides, *goes_on]
    return Attempt(run.title, command, record, journal(folder, run.run), attempts)


def _preparing(new: Sequence[Planned]) -> list[Planned]:
    """One run for each task and source of layers: the one on most data, of which the others read a part."""
    largest: dict[str, Planned] = {}
    for each in sorted(new, key=lambda each: each.config.fraction):
        layers = None if each.config.baseline else each.config.bilm
        text = each.config.vectors if each.config.trains_vectors else None
        largest[repr((each.point.task, layers, text))] = each
    needed = {each.point.task for each in largest.values() if not each.config.baseline}
    return [each for each in largest.values() if not each.config.baseline or each.point.task not in needed]


def _fetch(new: Sequence[Planned]) -> None:
    """Gets the data of the hub here, where there is a network; the nodes may have none."""
    from hydra.utils import instantiate

    for run in {each.point.task: each.config for each in reversed(new)}.values():
        if of_hub(run.task.data or {}) and not run.scale.maker:
            instantiate(run.task.reader).load()


def journal(folder: Path, run: str) -> JobJournal:
    """Of the jobs of a run."""
    return JobJournal(folder / f"{run}.jobs")


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
    rows: dict[str, list[QueueRow]] = {}
    for submission, run in last.values():
        rows.setdefault(submission.sweep, []).append(_row(submission, run, there))
    return [Status(sweep, found) for sweep, found in rows.items()]


def _row(submission: Submission, run: str, there: Mapping[str, Queued]) -> QueueRow:
    title, jobs = submission.runs[run]["title"], submission.jobs(run)
    if store.is_finished(Path(submission.runs[run]["record"])):
        return QueueRow("recorded", title)
    starts = journal(submission.folder, run).starts
    again = f", start {starts}" if starts > 1 else ""
    if running := [job for job in jobs if job in there and not there[job].waits]:
        return QueueRow("running", title, f" (job {running[0]}{again})")
    if waiting := [job for job in jobs if job in there]:
        return QueueRow("waiting", title, f" (job {waiting[0]}, {there[waiting[0]].reason})")
    if (submission.folder / CANCELLED).exists():
        return QueueRow("cancelled", title)
    logs = (submission.folder / f"{job}_0_log.out" for job in reversed(jobs))
    log = next(filter(Path.is_file, logs), None)
    return QueueRow("failed", title, f": {slurm.last_line(log)}; log: {log}" if log else ": ended before it began")


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
