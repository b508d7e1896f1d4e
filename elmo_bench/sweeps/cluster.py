"""Slurm: what a job is asked for, the queue, submitting through submitit, and what a job does.

Nothing here needs Slurm's accounting: the run's record and log show what happened to a job that left the queue. What
follows if a run's job does not finish:

- A pre-emption or a coming time limit (SIGUSR2): the job is queued again in its place, under its own id.
- Anything else that ends it, such as SIGKILL, a failed node or `scancel`: its successor starts. The first line of every
  job's script queues one (`start.sh`); Slurm drops it (`afternotok`) when the job ends well.

Either way the run resumes from its last epoch. It is started at most `attempts` times. The training is a process of its
own, as on one machine, and ignores Slurm's signals, which reach every process of a job: submitit alone decides what
follows, and until then the training goes on.
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
from elmo_bench.system import children, console, places
from elmo_bench.system.errors import UserError, printable
from elmo_bench.system.storage import yaml_text

if TYPE_CHECKING:
    from submitit.helpers import DelayedSubmission

START = Path(__file__).with_name("start.sh")
RUNS = "runs"  # a file in the folder of a submission: the name of each task's run, a line each, for START
CANCELLED = "cancelled"  # another: what has not started does nothing
WRONG = UserError.status  # of an error that another start would not mend
NAMES = {"minutes": "timeout_min", "mem_gb": "mem_gb", "cpus_per_task": "cpus_per_task"}  # else slurm_<key>


# What a cluster is asked for: a file in conf/cluster/, changed by `cluster.KEY=VALUE`.


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


# What a job does.


@dataclass(frozen=True)
class QueuedRun:
    """A run of a submission, and its journal: a file of lines `queued ID`, `queued ID after ID` and `started ID`.

    The first line is added where the run is submitted, the others by its jobs (`start.sh`). The journal is kept on the
    file system that all nodes share. Short lines in append mode are whole on it.

    Attributes:
        folder: of the submission.
        name: of the run, its id.
        title: for messages.
        record: the file that says it is finished.
    """

    folder: Path
    name: str
    title: str
    record: Path

    @property
    def journal(self) -> Path:
        """The file need not exist."""
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
        """How often the run was started."""
        return [word for word, _ in self._lines()].count("started")

    def _lines(self) -> list[list[str]]:
        lines = self.journal.read_text(encoding="utf-8").splitlines() if self.journal.is_file() else []
        return [line.split()[:2] for line in lines]


@dataclass(frozen=True)
class Preparation:
    """The job that makes the files that the runs of a task read. It has no successor: the runs make what is missing."""

    command: Sequence[str]

    def __call__(self) -> None:
        """Runs the command, which ends with this process. Errors that the user can correct are reported by the runs.

        Raises:
            RuntimeError: another start may mend what ended it.
        """
        environment = {**os.environ, **children.environment()}
        process = subprocess.Popen(
            self.command,
            env=environment,
            process_group=0,
            preexec_fn=lambda: [signal.signal(each, signal.SIG_IGN) for each in (signal.SIGTERM, signal.SIGUSR2)],
        )
        try:
            status = process.wait()
        finally:  # an exception: submitit's, when the job is about to be queued again
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if status not in (0, WRONG):
            raise RuntimeError(f"ended with status {status}")

    def checkpoint(self) -> DelayedSubmission | None:
        """What submitit runs when the job is queued again: it continues where it stopped."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@dataclass(frozen=True)
class Attempt(Preparation):
    """One start of a run.

    Attributes:
        command: that trains it, or resumes it.
        run: the run.
        attempts: how often it is started at most.
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
        """None if all its starts are used, so that the job is not queued again."""
        return super().checkpoint() if self.run.starts < self.attempts else None


def first_line(folder: Path, attempts: int) -> str:
    """The first line of the script of a run's job: the start is noted, and the successor queued."""
    return f'sh {shlex.quote(str(START))} {shlex.quote(str(folder))} {attempts} "$0" "$@"'


# Slurm's queue.


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
    tasks: Sequence[Preparation],
    folder: Path,
    cluster: ClusterSettings,
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
    """
    try:
        import submitit
    except ImportError:
        raise UserError("on=slurm needs the extra `slurm`: pip install -c constraints.txt -e '.[slurm]'") from None
    try:
        attempts, started = cluster.attempts, shlex.join(children.python("")[:-2])  # submitit adds -m and its module
        executor = submitit.AutoExecutor(folder, cluster="slurm", slurm_max_num_timeout=attempts, slurm_python=started)
        executor.update_parameters(**_parameters(cluster, job, name, after))
        # What Slurm answers, which submitit prints, is in the error too.
        with _outside_of_jobs(), redirect_stderr(io.StringIO()), executor.batch():
            queued = [executor.submit(task) for task in tasks]
    except (RuntimeError, ValueError, subprocess.SubprocessError) as error:
        raise UserError(f"Slurm does not take the jobs: {_last(str(error))}; see conf/cluster") from error
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
        wrong = f"Slurm is not installed here (no {command[0]}); type this on a login node of a cluster"
    except subprocess.TimeoutExpired:
        wrong = f"{command[0]} does not answer within a minute"
    except subprocess.CalledProcessError as error:
        wrong = f"Slurm does not answer here ({command[0]}: {_last(error.stderr)}); type this on a login node"
    raise UserError(wrong)


def _last(text: str) -> str:
    """The last line of a message that is not empty."""
    return (_lines(text) or ["no reason given"])[-1].removeprefix("sbatch: error: ")


def last_line(log: Path) -> str:
    """The last error of ours in a job's log, else why Slurm ended the job, else the last line."""
    lines = _lines(log.read_text(encoding="utf-8", errors="replace"))
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    ended = [line for line in lines if "error: *** " in line]
    return printable((errors or ended or lines or ["an empty log"])[-1])


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
