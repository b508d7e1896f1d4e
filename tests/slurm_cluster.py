"""A Slurm of one node on this machine, without network and accounting; its daemons are plain processes."""

import getpass
import os
import platform
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from elmo_bench.system import processes
from tests.conftest import clean_environment

COMMANDS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol")
CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
KillWait=2
SchedulerParameters=sched_interval=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=4000 State=UNKNOWN
PartitionName=debug Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class NotStarted(Exception):
    """The daemons do not work on this machine; what they say."""


def missing() -> list[str]:
    """The commands of Slurm and munge that are not installed."""
    return [name for name in COMMANDS if shutil.which(name, path=_path()) is None]


@contextmanager
def cluster(folder: Path) -> Iterator[dict[str, str]]:
    """Starts the daemons and ends them with the block; yields the environment for Slurm's commands.

    Raises:
        NotStarted: they are installed, but do not work.
    """
    for name, mode in (("", 0o755), ("state", 0o755), ("spool", 0o755), ("key", 0o700)):
        (folder / name).mkdir(mode=mode, parents=True, exist_ok=True)
    host = platform.node().partition(".")[0]
    settings = {"folder": folder, "host": host, "user": getpass.getuser(), "ports": _free_ports(2)}
    (folder / "slurm.conf").write_text(CONF.format(**settings))
    environment = clean_environment() | {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": _path()}
    running: list[subprocess.Popen[bytes]] = []
    try:
        for command in (_munge(folder), ("slurmctld", "-D", "-i"), ("slurmd", "-D", "-N", host)):
            running.append(_started(command, folder, environment))
            time.sleep(0.5)
        _until_idle(environment, folder)
        yield environment
    finally:
        _end_jobs(environment)
        for process in reversed(running):
            _ended(process)


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_ports(number: int) -> list[int]:
    """Ports of this machine that nothing listens at."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(number)]
        return [each.getsockname()[1] for each in sockets]


def _munge(folder: Path) -> list[str]:
    """The command of munge's daemon, with a new key; forced, since others may not enter a test's folder."""
    key = folder / "key" / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    places = {"key-file": key, "socket": folder / "munge.sock"}
    places |= {f"{name}-file": folder / "key" / name for name in ("pid", "log", "seed")}
    return ["munged", "--foreground", "--force", *(f"--{name}={place}" for name, place in places.items())]


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def _started(command: Sequence[str], folder: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """A daemon, which ends also where the tests are killed."""
    tests = os.getpid()
    with open(folder / f"{command[0]}.log", "wb") as log:
        return subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                preexec_fn=lambda: processes.end_with_parent(tests))  # fmt: skip


def _until_idle(environment: dict[str, str], folder: Path) -> None:
    for _ in range(300):
        asked = subprocess.run("sinfo -h -o %T".split(), env=environment, capture_output=True, text=True)
        if asked.stdout.strip() == "idle":
            return
        time.sleep(0.2)
    raise NotStarted("\n".join(path.read_text() for path in folder.glob("*.log")))


def _end_jobs(environment: dict[str, str]) -> None:
    """Ends what a failed test left, and waits until its processes are gone."""
    subprocess.run(["scancel", "--quiet", f"--user={getpass.getuser()}"], env=environment, capture_output=True)
    for _ in range(150):
        listed = subprocess.run(["squeue", "-h"], env=environment, capture_output=True, text=True)
        if not listed.stdout.strip():
            return
        time.sleep(0.2)
