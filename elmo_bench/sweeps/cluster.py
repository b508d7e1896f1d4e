"""Slurm: the resources of a job, the queue, submitting through submitit, and the work of a job.

Nothing here needs Slurm's accounting: the run's record and log show what happened to a job that left the queue. If a
run's job does not finish:

- After a pre-emption or near the time limit (SIGUSR2), the job is queued again in its place, under its own id.
- After any other end, such as SIGKILL, a failed node or `scancel`, its successor starts. The first line of every job's
  script queues a successor (`start.sh`); Slurm drops it (`afternotok`) when the job succeeds.

Either way the run resumes from its last epoch. It is started at most `attempts` times. The training is a separate
process, as on one machine, and ignores Slurm's signals, which reach every process of a job: submitit alone decides what
happens, and until then the training continues.
"""

from __future__ import annotations

import io
import os
import shlex
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from omegaconf import OmegaConf
from pydantic import NonNegativeInt, PositiveInt

from elmo_bench.configuration.keys import Keys, Text, valid
from elmo_bench.records import store
from elmo_bench.system import console, places, processes
from elmo_bench.system.errors import UserError, printable
from elmo_bench.system.storage import yaml_text

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission

START = Path(__file__).with_name("start.sh")
RUNS = "runs"  # a file in the folder of a submission: the name of each task's run, one per line, for START
CANCELLED = "cancelled"  # a file there: jobs that have not started do nothing
WRONG = UserError.status  # the exit status of an error that another start would repeat
NAMES = {"minutes": "timeout_min", "mem_gb": "mem_gb", "cpus_per_task": "cpus_per_task"}  # others: slurm_<key>


# The resources: a file in conf/cluster/, changed by `cluster.KEY=VALUE`.


class JobSettings(Keys):
    """One job; None leaves a key to the cluster's default."""

    partition: Text | None = None
    account: Text | None = None
    qos: Text | None = None
    constraint: Text | None = None
    gres: Text | None = None
    gpus_per_node: NonNegativeInt | None = None
    cpus_per_task: PositiveInt = 4
    mem_gb: float | None = None
    minutes: PositiveInt = 720
    setup: list[Text] = []


class ClusterSettings(Keys):
    """The keys are explained in the configuration file, conf/cluster/slurm.yaml."""

    at_once: PositiveInt = 8
    attempts: PositiveInt = 5
    warning: NonNegativeInt = 90
    options: dict[str, Any] = {}
    run: JobSettings = JobSettings()
    prepare: JobSettings = JobSettings()


def settings(name: str, changes: Sequence[str] = ()) -> ClusterSettings:
    """The settings of a configuration file."""
    known, path = places.named("cluster"), places.page("cluster", name)
    if name not in known:
        raise UserError(f"on={name}: there is no such file in conf/cluster; {console.choices(name, ['local', *known])}")
    merged = OmegaConf.merge(yaml_text.read(path), OmegaConf.from_dotlist(list(changes)))
    return valid(ClusterSettings, OmegaConf.to_container(merged, resolve=True), "cluster", path=path)


# The work of a job.


@dataclass(frozen=True)
class QueuedRun:
    """A run of a submission, and its journal: a file of lines `queued ID`, `queued ID after ID` and `started ID`.

    The first line is added when the run is submitted, the others by its jobs (`start.sh`). The journal is on the file
    system that all nodes share, where short lines in append mode are written whole.

    Attributes:
        folder: the folder of the submission.
        name: the run's id.
        title: the run in words, for messages.
        record: the file that exists once the run is finished.
    """

    folder: Path
    name: str
    title: str
    record: Path

    @property
    def journal(self) -> Path:
        """The journal's file, which need not exist."""
        return self.folder / f"{self.name}.jobs"

    def queued(self, job: str) -> None:
        """Adds a job to the journal."""
        with open(self.journal, "a", encoding="utf-8") as file:
            file.write(f"queued {job}\n")

    @property
    def jobs(self) -> list[str]:
        """The ids of all jobs, the newest last."""
        return list(dict.fromkeys(job for _, job in self._lines()))

    @property
    def starts(self) -> int:
        """The number of starts of the run."""
        return [word for word, _ in self._lines()].count("started")

    def _lines(self) -> list[list[str]]:
        lines = self.journal.read_text(encoding="utf-8").splitlines() if self.journal.is_file() else []
        return [line.split()[:2] for line in lines]


@dataclass(frozen=True)
class Preparation:
    """The job that makes the inputs of a task's runs. It has no successor: the runs make missing files."""

    command: Sequence[str]

    def __call__(self) -> None:
        """Runs the command, which ends with this process. Errors that the user can correct are reported by the runs.

        Raises:
            RuntimeError: it ended for a reason that another start may fix.
        """
        environment = {**os.environ, **processes.environment()}
        process = subprocess.Popen(self.command, env=environment, process_group=0, preexec_fn=_ignore_signals)
        try:
            status = process.wait()
        finally:  # an exception: submitit's, when the job is about to be queued again
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if status not in (0, WRONG):
            raise RuntimeError(f"ended with status {status}")

    def checkpoint(self) -> DelayedSubmission | None:
        """For submitit, when the job is queued again: it continues where it stopped."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@dataclass(frozen=True)
class Attempt(Preparation):
    """One start of a run.

    Attributes:
        command: the command that trains or resumes it.
        run: the run.
        attempts: maximum number of starts.
    """

    run: QueuedRun
    attempts: int

    def __call__(self) -> None:
        """Trains the run to its end.

        Raises:
            RuntimeError: it did not finish; the successor starts.
        """
        if store.is_finished(self.run.record) or (self.run.folder / CANCELLED).exists():
            return
        if self.run.starts > self.attempts:
            raise RuntimeError(f"{self.run.title}: given up after {self.attempts} starts")
        super().__call__()

    def checkpoint(self) -> DelayedSubmission | None:
        """None if all its starts are used, so the job is not queued again."""
        return super().checkpoint() if self.run.starts < self.attempts else None


def _ignore_signals() -> None:
    for number in (signal.SIGTERM, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


def first_line(folder: Path, attempts: int) -> str:
    """The first line of the script of a run's job: notes the start, and queues the successor."""
    return f'sh {shlex.quote(str(START))} {shlex.quote(str(folder))} {attempts} "$0" "$@"'


# Slurm's queue.


class Queued(NamedTuple):
    """A job in the queue: its state, such as RUNNING or PENDING, and the reason why it waits."""

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
    """Ends jobs; it is not an error if a job has ended in the meantime."""
    if jobs:
        _called("scancel", "--quiet", *jobs)


def submit(
    tasks: Sequence[Preparation],
    folder: Path,
    cluster: ClusterSettings,
    job: JobSettings,
    name: str,
    after: str | None = None,
) -> list[str]:
    """Queues one job for each task, several of them as one job array; returns their ids.

    Args:
        tasks: to be pickled; their output goes to `<id>_0_log.out` in the folder.
        folder: on a file system that all nodes share.
        job: the resources of each job.
        after: the dependency, such as "afterany:12".
    """
    try:
        import submitit
    except ImportError:
        raise UserError("on=slurm needs the extra `slurm`: pip install -c constraints.txt -e '.[slurm]'") from None
    try:
        attempts, started = cluster.attempts, shlex.join(processes.python("")[:-2])  # submitit adds -m and its module
        executor = submitit.AutoExecutor(folder, cluster="slurm", slurm_max_num_timeout=attempts, slurm_python=started)
        executor.update_parameters(**_parameters(cluster, job, name, after))
        # Slurm's answer, which submitit prints, is also in the error.
        with _outside_of_jobs(), redirect_stderr(io.StringIO()), executor.batch():
            queued = [executor.submit(task) for task in tasks]
    except (RuntimeError, ValueError, subprocess.SubprocessError) as error:
        raise UserError(f"Slurm does not accept the jobs: {_last(str(error))}; see conf/cluster") from error
    return [each.job_id for each in queued]


def _parameters(cluster: ClusterSettings, job: JobSettings, name: str, after: str | None) -> dict[str, Any]:
    asked = {NAMES.get(key, f"slurm_{key}"): value for key, value in dict(job).items() if value not in (None, [])}
    options = {"requeue": True, "kill-on-invalid-dep": "yes", **cluster.options}
    return {
        **asked,
        "name": name,
        "stderr_to_stdout": True,
        "slurm_signal_delay_s": cluster.warning,
        "slurm_array_parallelism": cluster.at_once,
        "slurm_additional_parameters": options | ({"dependency": after} if after else {}),
    }


@contextmanager
def _outside_of_jobs() -> Iterator[None]:
    """Hides the variables that Slurm sets in a job, such as an interactive job in which a sweep is typed."""
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
        wrong = f"Slurm is not installed here (no {command[0]}); type this on a login node of a cluster"
    except subprocess.TimeoutExpired:
        wrong = f"{command[0]} does not answer within a minute"
    except subprocess.CalledProcessError as error:
        wrong = f"Slurm does not answer here ({command[0]}: {_last(error.stderr)}); type this on a login node"
    raise UserError(wrong)


def _last(text: str) -> str:
    """The last non-empty line of a message."""
    return (_lines(text) or ["no reason given"])[-1].removeprefix("sbatch: error: ")


def last_line(log: Path) -> str:
    """Our last error in a job's log, or Slurm's reason for ending the job, or the last line."""
    lines = _lines(log.read_text(encoding="utf-8", errors="replace"))
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    ended = [line for line in lines if "error: *** " in line]
    return printable((errors or ended or lines or ["an empty log"])[-1])


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
