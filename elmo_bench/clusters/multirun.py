"""Hydra's own launcher of Slurm jobs (`-m launcher=slurm`), as a person wants it.

By itself it asks `sacct` about its jobs, which clusters without slurmdbd do not have, does not say where logs lie, and
ends with a traceback at the first job that was killed, or that Slurm refuses.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Any

from hydra.core.utils import JobReturn, JobStatus
from hydra.experimental.callback import Callback

from elmo_bench.clusters import slurm
from elmo_bench.system import children
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal import console

SECONDS = 30  # between two looks at the queue, at most


class Jobs(Callback):
    """A callback of Hydra's, named on the launcher's page; changes what submitit does where the command is typed."""

    def on_multirun_start(self, config: Any, **others: Any) -> None:
        """Puts our watcher and our collection in the place of submitit's."""
        from submitit.core.utils import UncompletedJobError
        from submitit.slurm.slurm import SlurmExecutor, SlurmInfoWatcher, SlurmJob

        submit, results = SlurmExecutor._internal_process_submissions, SlurmJob.results
        launched = _Launched()

        def submitted(executor: Any, tasks: list[Any]) -> list[Any]:
            with slurm.said_by_us():
                jobs = submit(executor, tasks)
            return launched.queued(jobs)

        def collected(job: Any) -> list[JobReturn]:
            try:
                (returned,) = results(job)
                error = None if returned.status == JobStatus.COMPLETED else returned._return_value
            except UncompletedJobError:  # also what a job raised outside of its run
                error = UserError(f"job {job.job_id} ended early: {slurm.last_line(job.paths.stdout)}")
            return [launched.ended(job, error)]

        os.environ.pop(children.PARENT, None)  # a job does not end with this command
        SlurmJob.watcher._delay_s = SECONDS
        setattr(SlurmInfoWatcher, "update", _update)  # noqa: B010
        setattr(SlurmExecutor, "_internal_process_submissions", submitted)  # noqa: B010
        setattr(SlurmJob, "results", collected)  # noqa: B010
        console.EXPLAINERS.append(_explain)


class _Launched:
    """The jobs that are waited for; when the last has ended, the first error is raised."""

    def __init__(self) -> None:
        self.waiting: set[str] = set()
        self.failed: list[Exception] = []

    def queued(self, jobs: list[Any]) -> list[Any]:
        self.waiting |= {job.job_id for job in jobs}
        for job in jobs:
            print(f"job {job.job_id} is queued; its log: {job.paths.stdout}", flush=True)
        return jobs

    def ended(self, job: Any, error: Any) -> JobReturn:
        self.waiting.discard(job.job_id)
        if error is not None:
            told = UserError(f"{console.explain(error) or repr(error)}; log: {job.paths.stdout}")
            console.show(told)
            self.failed.append(told)
        if self.failed and not self.waiting:
            raise self.failed[0]
        return JobReturn(status=JobStatus.COMPLETED)


def _update(watcher: Any) -> None:
    """Asks the queue instead of the accounting: a job that has left it has ended."""
    with suppress(UserError):  # Slurm is busy: asked again soon
        there = slurm.queue()
        for job in watcher._registered:
            waits = job in there and there[job].waits
            watcher._info_dict[job] = {"State": "PENDING" if waits else "RUNNING" if job in there else "ENDED"}
    watcher._last_status_check = time.time()


def _explain(error: BaseException) -> str | None:
    """One line for what Slurm refuses, or where it is missing."""
    from submitit.core.utils import FailedJobError, FailedSubmissionError

    if isinstance(error, (FailedJobError, FailedSubmissionError)):
        return f"Slurm does not take the jobs: {slurm.last(error)}; see conf/launcher/slurm.yaml"
    if isinstance(error, RuntimeError) and "srun" in str(error):
        return "there is no srun on this machine: type this where Slurm's commands are"
    return None
