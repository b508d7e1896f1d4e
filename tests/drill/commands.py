"""Commands that are killed, interrupted, short of room or typed several times at once.

The same command, typed again, must come to the undisturbed result. Every one runs in a fork (see `warm.py`);
`tests/system` shows for whole processes that they hear signals and end in one line.
"""

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.commands.bilm import Vocabulary
from elmo_bench.commands.compare import Publish, Report
from elmo_bench.commands.run import Reproduce
from elmo_bench.commands.train import Data
from elmo_bench.layers import shards
from elmo_bench.records import publishing
from elmo_bench.sources import pages as data_pages
from elmo_bench.sweeps import local
from elmo_bench.system import console, processes
from tests.drill import results, scene, warm
from tests.drill.trial import EQUAL, FAULT, ONE_LINE, Answer, Area
from tests.sources.test_data_command import COMMIT, bank, tar_gz

TRIES = 5  # to hit a command before it ends
WITHIN = 20.0  # seconds in which a signal must end a command
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
DISK = 64 << 20  # bytes
FILLER = "filler"  # takes the rest of a disk
RUN = re.compile(r" \(toy/open .*, seed \d+\)$")  # the name of a run behind its error


class Whole(NamedTuple):
    """What a command does undisturbed: its value, the seconds that it takes, and the sizes of the files it writes."""

    value: Any
    seconds: float
    sizes: list[int]


class Ended(NamedTuple):
    """How a command ended, and what it said on stderr."""

    status: int
    said: str

    def fault(self, what: str) -> Answer:
        return FAULT, f"{self.said}\n{what}: status {self.status}, {self.said.strip()[-500:]!r}"

    @property
    def lines(self) -> list[str]:
        return [line for line in self.said.splitlines() if line.startswith(("error: ", "interrupted"))]

    @property
    def refused(self) -> bool:
        """Whether it ended in one line with status 2, or one for each of its jobs, without a crash or a traceback."""
        reasons = {RUN.sub("", line.split(": ", 2)[-1]) for line in self.lines}
        return self.status == 2 and len(reasons) == 1 and "Traceback" not in self.said


class Typed:
    """A command that runs in a fork, in which no file may have more than `limit` bytes."""

    def __init__(self, action: Callable[[], Any], limit: int | None = None):
        self.log = Path(tempfile.mkstemp(".log")[1])
        self.child = warm.start(lambda: self._run(action, limit))

    def _run(self, action: Callable[[], Any], limit: int | None) -> None:
        os.dup2(os.open(self.log, os.O_WRONLY | os.O_APPEND), 2)
        if limit is not None:
            import resource

            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        console.report(action)

    def signalled(self, number: int, moment: float) -> None:
        """Sends a signal after so many seconds, if the command has not ended."""
        time.sleep(moment)
        os.kill(self.child, number)

    def ended(self, within: float = float("inf")) -> Ended:
        """Waits for the end; a command that does not end in time is killed."""
        until = time.monotonic() + within
        while not (found := os.waitpid(self.child, os.WNOHANG))[0]:
            time.sleep(0.01)
            if time.monotonic() > until:
                os.kill(self.child, signal.SIGKILL)
        return Ended(os.waitstatus_to_exitcode(found[1]), self.log.read_text(errors="replace"))


class Command:
    """A command.

    Args:
        make: the scene.
        act: the command; its value is compared.
    """

    def __init__(self, make: Callable[[Path], Any], act: Callable[[Path], Any]):
        self.make, self.act = make, act

    @cached_property
    def scene(self) -> scene.Scene:
        return scene.of(self.make)

    @cached_property
    def undisturbed(self) -> Whole:
        self.scene.restore()
        started = time.monotonic()
        value = self.run()
        return Whole(value, time.monotonic() - started, [path.stat().st_size for path in self.scene.written()])

    def run(self) -> Any:
        """The value of the command; an error is a fault, even one of a single line."""
        outcome, value = warm.call(lambda: self.act(self.scene.place))
        if outcome != warm.VALUE:
            raise RuntimeError(value)
        return value

    def type(self, limit: int | None = None) -> Typed:
        """Starts the command."""
        return Typed(lambda: self.act(self.scene.place), limit)

    def typed_again(self, what: str, verdict: str = EQUAL) -> Answer:
        """Runs the disturbed command to its end, and compares the result with the undisturbed one."""
        try:
            value = self.run()
        except RuntimeError as error:
            return FAULT, f"{error}\n{what}; typed again: {str(error).strip().splitlines()[-1]}"
        if value != self.undisturbed.value:
            return FAULT, f"{what}; typed again: another result"
        return verdict, what

    def left(self) -> list[str]:
        """Temporary files that are still there."""
        return sorted(path.name for path in self.scene.place.rglob("*.partial*"))


def kill(command: Command, draw: random.Random) -> Answer:
    """SIGKILL one to three times at random moments."""
    seconds, moments = command.undisturbed.seconds, []
    command.scene.restore()
    for _ in range(draw.choice((1, 1, 2, 3))):
        longest = seconds
        for _ in range(TRIES):
            moments.append(draw.uniform(0, longest))
            typed = command.type()
            typed.signalled(signal.SIGKILL, moments[-1])
            if typed.ended().status == -signal.SIGKILL:
                break
            longest *= 0.7
    return command.typed_again(f"killed after {', '.join(f'{each:.2f}' for each in moments)} of {seconds:.2f} s")


def interrupt(command: Command, draw: random.Random) -> Answer:
    """A signal at a random moment must end a command within seconds, in one line."""
    moment, number = draw.uniform(0.05, 1.1) * command.undisturbed.seconds, draw.choice(SIGNALS)
    command.scene.restore()
    typed = command.type()
    typed.signalled(number, moment)
    done, what = typed.ended(WITHIN), f"{number.name} after {moment:.2f} s"
    told = done.status == 128 + number and len(done.lines) == 1 and "Traceback" not in done.said
    if not told and done.status not in (0, -number):  # ended before the signal, or had not begun to listen
        return done.fault(what)
    return command.typed_again(what)


def full_disk(command: Command, draw: random.Random) -> Answer:
    """A disk that is too small, or where that cannot be mounted, a limit to the size of a file."""
    share, sizes = draw.uniform(0.0, 1.1), command.undisturbed.sizes
    what = f"{share:.2f} of the room it needs"
    with small_disk(command.scene, int(share * sum(sizes))) as mounted:
        done = command.type(None if mounted else int(share * max(sizes))).ended()
        if done.status and not (done.refused and re.search("(?i)no space|no room", done.said)):
            return done.fault(what)
        if done.refused and command.left():
            return FAULT, f"{what}; left behind: {command.left()}"
        (command.scene.place / FILLER).unlink(missing_ok=True)
        return command.typed_again(what, ONE_LINE if done.refused else EQUAL)


@contextlib.contextmanager
def small_disk(made: scene.Scene, room: int) -> Iterator[bool]:
    """A scene on a disk with so many bytes of room, which is more once `FILLER` is gone; whether that is permitted."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(made.place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        made.restore()
        yield False
        return
    try:
        made.restore()
        with open(made.place / FILLER, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(4096, shutil.disk_usage(made.place).free - room))
        yield True
    finally:
        subprocess.run(["umount", "-l", str(made.place)], check=True)


def at_once(command: Command, draw: random.Random) -> Answer:
    """Several processes with the same command and the same output."""
    command.undisturbed  # noqa: B018 (its scene is restored before, not after the processes)
    command.scene.restore()
    number = draw.randint(2, 8)
    for done in [typed.ended() for typed in [command.type() for _ in range(number)]]:
        if done.status and not done.refused:
            return done.fault(f"{number} at once")
    if command.left():
        return FAULT, f"{number} at once; left behind: {command.left()}"
    return command.typed_again(f"{number} at once")


# What each command does, and what of it is compared.


def _cache(place: Path) -> Any:
    """Fills the cache in several shards."""
    shards.SHARD_BYTES = 400
    return results.cached(place)


def _sweep(place: Path) -> Any:
    scene.sweep(place)
    return results.records(place)


def _reproduce(place: Path) -> Any:
    """Runs in processes of their own."""
    os.environ["REAL"] = "1"
    local.TRAIN = processes.python("tests.command", str(place / "conf"), "train")
    with scene.arguments(*scene.overrides(place, "jobs=2", "task.fit.epochs=1")):
        Reproduce.parse(sys.argv[1:]).run()
    return results.records(place)


def _report(place: Path) -> Any:
    scene.opened(place)
    with scene.arguments(f"results_root={place}/results"):
        Report.parse(sys.argv[1:]).run()
    return results.pages(place)


def _vocabulary(place: Path) -> Any:
    with scene.arguments(f"text={place}/train.txt", f"output={place}/words.txt"):
        Vocabulary.parse(sys.argv[1:]).run()
    return (place / "words.txt").read_bytes()


def _archive(folder: Path) -> None:
    """A folder of sources, as `elmo-bench data source=FOLDER` takes it, and what it holds."""
    (folder / "a.txt").write_text("".join(f"{number:x} lamps\n" for number in range(50_000)))
    (folder / f"bank-{COMMIT}.tar.gz").write_bytes(tar_gz({"a.txt": (folder / "a.txt").read_bytes()}))


def _fetch(place: Path) -> Any:
    made = bank(place, "a.txt.xz", "a.txt")
    data_pages.load = lambda: {"bank": made}
    with scene.arguments(f"data_root={place}/root", f"source={place}"):
        Data.parse(sys.argv[1:]).run()
    return results.contents(place / "root")


def _publish(place: Path) -> Any:
    """Offline, and what marks a run of W&B as whole."""
    scene.opened(place)
    with scene.arguments(f"results_root={place}/results"):
        Publish.parse(sys.argv[1:]).run()
    marks = sorted((place / "results").glob("wandb/offline-run-*/"))
    return [(mark.name.rpartition("-")[2], (mark / publishing.DIGEST).read_text()) for mark in marks]


COMMANDS = {
    "train": Command(scene.bench, results.of_run),
    "cache": Command(scene.bilm, _cache),
    "pretrain": Command(scene.text, partial(results.exported, every=0)),
    "sweep": Command(scene.bench, _sweep),
    "reproduce": Command(scene.bench, _reproduce),
    "report": Command(scene.swept, _report),
    "data": Command(scene.text, results.world),
    "fetch": Command(_archive, _fetch),
    "publish": Command(scene.swept, _publish),
    "vectors": Command(scene.bench, results.of_vectors),
    "predict": Command(scene.trained, results.predicted),
    "embed": Command(scene.bilm, results.embedded),
    "vocabulary": Command(scene.text, _vocabulary),
}
SLOW = ("reproduce", "publish")  # start processes
DISTURBANCES = {"kills": (kill, 10), "signals": (interrupt, 3), "disks": (full_disk, 3), "at-once": (at_once, 1)}
AREAS = [
    Area(f"{what}:{name}", min(number, 2) if name in SLOW else number, partial(trial, command), 900.0, warm.ready)
    for what, (trial, number) in DISTURBANCES.items()
    for name, command in COMMANDS.items()
]
