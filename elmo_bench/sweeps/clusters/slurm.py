"""Slurm: what is in its queue, submitting through submitit, and ending jobs.

Nothing here needs Slurm's accounting: what has become of a job that left the queue is told by its run's record and log.
"""

from __future__ import annotations

import io
import os
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.sweeps.clusters.settings import ClusterSettings, JobSettings
from elmo_bench.system import children
from elmo_bench.system.errors import UserError, printable

NAMES = {"minutes": "timeout_min", "mem_gb": "mem_gb", "cpus_per_task": "cpus_per_task"}  # else slurm_<key>


class Queued(NamedTuple):
    """A job in the queue: its state, as RUNNING or PENDING, and why it waits."""

    state: str
    reason: str

    @property
    def waits(self) -> bool:
        return self.state in ("PENDING", "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT")


def queue() -> dict[str, Queued]:
    """This user's jobs by their id, as "12" or "12_3". Raises `UserError` if Slurm does not answer."""
    listed = _called("squeue", "--noheader", "--array", f"--user={os.getuid()}", "--format=%i|%T|%r")
    return {job: Queued(state, reason) for job, state, reason in (line.split("|", 2) for line in listed.splitlines())}


def cancel(jobs: Sequence[str]) -> None:
    """Ends jobs; one that has ended in the meantime is no error."""
    if jobs:
        _called("scancel", "--quiet", *jobs)


def submit(
    tasks: Sequence[Callable[[], Any]],
    folder: Path,
    settings: ClusterSettings,
    job: JobSettings,
    name: str,
    after: str | None = None,
) -> list[str]:
    """Queues one job for each task, several of them as one job array; returns their ids.

    Args:
        tasks: are pickled; what they print goes to `<id>_0_log.out` in the folder.
        folder: on a file system that all nodes share.
        job: what each job needs.
        after: what they wait for, as "afterany:12".

    Raises:
        UserError: Slurm refuses them, or is not there.
    """
    try:
        import submitit
    except ImportError:
        raise UserError("on=slurm needs the extra `slurm`: pip install -c constraints.txt -e '.[slurm]'") from None
    try:
        attempts, started = settings.attempts, shlex.join(children.python("")[:-2])  # submitit adds -m and its module
        executor = submitit.AutoExecutor(folder, cluster="slurm", slurm_max_num_timeout=attempts, slurm_python=started)
        executor.update_parameters(**_parameters(settings, job, name, after))
        # What Slurm answers, which submitit prints, is in the error too.
        with _outside_of_jobs(), redirect_stderr(io.StringIO()), executor.batch():
            queued = [executor.submit(task) for task in tasks]
    except (RuntimeError, ValueError, subprocess.SubprocessError) as error:
        raise UserError(f"Slurm does not take the jobs: {last(error)}; see conf/cluster") from error
    return [each.job_id for each in queued]


def _parameters(settings: ClusterSettings, job: JobSettings, name: str, after: str | None) -> dict[str, Any]:
    asked = {NAMES.get(key, f"slurm_{key}"): value for key, value in dict(job).items() if value not in (None, [])}
    options = {"requeue": True, "kill-on-invalid-dep": "yes", **settings.options}
    return {
        **asked,
        "name": name,
        "stderr_to_stdout": True,
        "slurm_signal_delay_s": settings.warning,
        "slurm_array_parallelism": settings.at_once,
        "slurm_additional_parameters": options | ({"dependency": after} if after else {}),
    }


@contextmanager
def _outside_of_jobs() -> Iterator[None]:
    """Without what Slurm sets in a job, such as an interactive one in which a sweep is typed."""
    ours = {key: value for key, value in os.environ.items() if key.startswith("SLURM_")}
    for key in ours.keys() - {"SLURM_CONF"}:
        del os.environ[key]
    try:
        yield
    finally:
        os.environ.update(ours)


def _called(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    except FileNotFoundError:
        raise UserError(
            f"Slurm is not installed here (no {command[0]}); type this on a login node of a cluster"
        ) from None
    except subprocess.TimeoutExpired:
        raise UserError(f"{command[0]} does not answer within a minute") from None
    except subprocess.CalledProcessError as error:
        raise UserError(
            f"Slurm does not answer here ({command[0]}: {last(error.stderr)}); type this on a login node"
        ) from error


def last(text: Any) -> str:
    """The last line of a message that is not empty."""
    return (_lines(str(text)) or ["no reason given"])[-1].removeprefix("sbatch: error: ")


def last_line(log: Path) -> str:
    """The last error of ours in a job's log, else why Slurm ended the job, else the last line."""
    lines = _lines(log.read_text(encoding="utf-8", errors="replace")) if log.is_file() else []
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    ended = [line for line in lines if "error: *** " in line]
    return printable((errors or ended or lines or ["an empty log"])[-1])


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
