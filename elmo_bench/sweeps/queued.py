"""The runs of a sweep as jobs of a cluster: submitting them, their status, cancelling them.

A submission has a folder, results/own/work/cluster/<time>: `submission.json`, a journal for each run, and the logs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from elmo_bench.records import store
from elmo_bench.running.unfinished import start_anew
from elmo_bench.sweeps import cluster, local
from elmo_bench.sweeps.cluster import CANCELLED, RUNS, Attempt, ClusterSettings, Preparation, Queued, QueuedRun
from elmo_bench.sweeps.plan import Plan, Point
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_text
from elmo_bench.system.storage.locks import held
from elmo_bench.text.source import of_hub

FILE = "submission.json"
NAME = "elmo-bench"  # the name of the jobs in Slurm
STATES = ("recorded", "running", "waiting", "cancelled", "failed")


class Submission(NamedTuple):
    """The runs queued by one command.

    Attributes:
        folder: of the submission.
        sweep: its title.
        runs: in their order.
        prepare: ids of the jobs that all runs wait for.
    """

    folder: Path
    sweep: str
    runs: Sequence[QueuedRun]
    prepare: Sequence[str]


def submit(plan: Plan) -> None:
    """Queues the runs that are neither recorded nor queued already, and returns at once.

    First a job for each task and biLM that makes the runs' inputs, then one job array that waits for the end of these.
    If such a job is killed, the first run that needs its files makes them.
    """
    from hydra.utils import instantiate

    counts, asked = "", plan.request
    if plan.runs:
        root = Path(plan.runs[0].config.results_root).absolute()
        with held(cluster_folder(root), "another process is submitting runs; wait for it"):
            settings, there = cluster.settings(asked.on, asked.cluster), queued_runs(root)
            new = [each for each in plan.new if each.run not in there]
            recorded, waiting = len(plan.runs) - len(plan.new), len(plan.new) - len(new)
            if new:
                print(plan.cost(new), flush=True)
                # Gets the data of the hub here, where there is a network; the nodes may have none.
                for run in {each.task: each.config for each in reversed(new)}.values():
                    if of_hub(run.task.data or {}) and not run.scale.maker:
                        instantiate(run.task.reader).load()
                _queue(plan, new, root, settings)
        counts = f"{recorded} recorded, {waiting} queued before, {len(new)} queued now"
    plan.end(f"{asked.sweep}: {counts}; elmo-bench queue shows their progress")


def _queue(plan: Plan, new: Sequence[Point], root: Path, settings: ClusterSettings) -> None:
    folder = cluster_folder(root) / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"
    folder.mkdir()
    preparing = [Preparation([*local.PREPARE, *each.overrides]) for each in _preparing(new)]
    prepare = cluster.submit(preparing, folder, settings, settings.prepare, f"{NAME}-prepare") if preparing else []
    after = "afterany:" + ":".join(dict.fromkeys(job.partition("_")[0] for job in prepare)) if prepare else None
    attempts = []
    for each in new:
        record = store.place(root, each.config.scale.name, each.task, each.run)
        command = [*local.TRAIN, "hydra.mode=RUN", *each.overrides]
        if each.config.force:  # once, for all its jobs
            start_anew(store.work(root, each.config.scale.name, each.task, each.run))
            command.append("force=false")
        attempts.append(Attempt(command, QueuedRun(folder, each.run, each.title, record), settings.attempts))
    runs = [attempt.run for attempt in attempts]
    write_text(folder / RUNS, "".join(f"{run.name}\n" for run in runs))
    setup = [cluster.first_line(folder, settings.attempts), *settings.run.setup]
    job = settings.run.model_copy(update={"setup": setup})
    try:
        jobs = cluster.submit(attempts, folder, settings, job, NAME, after)
    except UserError:
        cluster.cancel(prepare)
        raise
    for run, queued in zip(runs, jobs, strict=True):
        run.queued(queued)
    title = f"{plan.request.sweep} {','.join(plan.request.tasks)} {plan.request.scale}"
    stored = {run.name: {"title": run.title, "record": str(run.record)} for run in runs}
    write_text(folder / FILE, json_text.dumps({"sweep": title, "runs": stored, "prepare": prepare}, indent=1))


def _preparing(new: Sequence[Point]) -> list[Point]:
    """One run for each task and source of layers: the one on most data, of which the others read a part."""
    largest: dict[str, Point] = {}
    for each in sorted(new, key=lambda each: each.config.fraction):
        layers = None if each.config.baseline else each.config.bilm
        text = each.config.vectors if each.config.trains_vectors else None
        largest[repr((each.task, layers, text))] = each
    needed = {each.task for each in largest.values() if not each.config.baseline}
    return [each for each in largest.values() if not each.config.baseline or each.task not in needed]


def cluster_folder(results_root: Path) -> Path:
    """The folder of all submissions."""
    return results_root / "work" / "cluster"


def submissions(results_root: Path) -> list[Submission]:
    """All submissions, the newest last."""
    found = []
    for path in sorted(cluster_folder(results_root).glob(f"*/{FILE}")):
        stored, folder = json_text.read(path), path.parent
        runs = [QueuedRun(folder, name, run["title"], Path(run["record"])) for name, run in stored["runs"].items()]
        found.append(Submission(folder, stored["sweep"], runs, stored["prepare"]))
    return found


def queued_runs(results_root: Path) -> set[str]:
    """The names of waiting and running runs."""
    there = cluster.queue()
    return {run.name for each in submissions(results_root) for run in each.runs if there.keys() & {*run.jobs}}


def status(results_root: Path) -> dict[str, list[tuple[str, str]]]:
    """By sweep, the state of each run (`STATES`), and its title with details.

    For a run that was queued several times, the last time counts.
    """
    last = {run.name: (each.sweep, run) for each in submissions(results_root) for run in each.runs}
    there = cluster.queue() if last else {}
    rows: dict[str, list[tuple[str, str]]] = {}
    for sweep, run in last.values():
        state, more = _state(run, there)
        rows.setdefault(sweep, []).append((state, run.title + more))
    return rows


def in_lines(sweep: str, rows: Iterable[tuple[str, str]]) -> list[str]:
    """A line of counts, and one for each run that is not recorded."""
    states = [state for state, _ in rows]
    counts = ", ".join(f"{states.count(state)} {state}" for state in STATES if state in states)
    unfinished = sorted((row for row in rows if row[0] != "recorded"), key=lambda row: STATES.index(row[0]))
    return [f"{sweep}: {counts}", *(f"  {state}  {title}" for state, title in unfinished)]


def _state(run: QueuedRun, there: Mapping[str, Queued]) -> tuple[str, str]:
    """The state of a run, with details."""
    if store.is_finished(run.record):
        return "recorded", ""
    queued = sorted((job for job in run.jobs if job in there), key=lambda job: there[job].waits)
    if queued and not there[queued[0]].waits:
        return "running", f" (job {queued[0]}{f', start {run.starts}' if run.starts > 1 else ''})"
    if queued:
        return "waiting", f" (job {queued[0]}, {there[queued[0]].reason})"
    if (run.folder / CANCELLED).exists():
        return "cancelled", ""
    logs = (run.folder / f"{job}_0_log.out" for job in reversed(run.jobs))
    log = next(filter(Path.is_file, logs), None)
    return "failed", f": {cluster.last_line(log)}; log: {log}" if log else ": ended before it began"


def cancel(results_root: Path) -> int:
    """Ends all jobs of all sweeps, waiting jobs first, so that none of them succeeds a job that is ended."""
    there, jobs = cluster.queue(), set[str]()
    for each in submissions(results_root):
        (each.folder / CANCELLED).touch()
        jobs.update(each.prepare, *(run.jobs for run in each.runs))
    jobs &= there.keys()
    for waits in (True, False):
        cluster.cancel([job for job in jobs if there[job].waits == waits])
    return len(jobs)
