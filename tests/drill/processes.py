"""Trials of whole commands: killed, signalled, on a full disk, several at once; typed again, they end as undisturbed.

Each trial is `trial(random.Random) -> (verdict, command)`: the verdict is "equal", "one line" (the command refused in
one line, and then went on to the same end) or "fault", with what shows it again.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import random
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import torch

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.options import Options
from tests.conftest import ROOT, Bench, clean_environment
from tests.drill.trial import Area

Verdict = tuple[str, str]
PATIENCE = 240  # seconds that an undisturbed command may take on a busy machine
WITHIN = 20  # seconds in which a signal must end a command
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
TIMES = ("seconds", "device_seconds", "tokens_per_second", "peak_memory_mib", "finished", "checkpoint", "machine",
         "commit", "dirty", "history", "checksum")  # fmt: skip
OPTIONS = {
    "lstm": {"dim": 12, "projection_dim": 6, "n_layers": 2, "cell_clip": 3, "proj_clip": 3},
    "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 4], [3, 8]], "n_highway": 1},
}
RECIPE = {
    "options.lstm.dim": 16, "options.lstm.projection_dim": 8, "options.char_cnn.embedding.dim": 4,
    "options.char_cnn.filters": "[[1,4],[2,8],[3,12]]", "text": "[[train.txt,null]]", "heldout": "[[dev.txt,null]]",
    "vocabulary": 60, "tokens": 19200, "rows": 8, "steps": 6, "negatives": 8, "lr": 0.02, "warmup": 5, "seed": 3,
}  # fmt: skip
WORLD = ("lm=4000,400,800", "ner=60,20,30", "srl=60,20,30", "coref=6,2,3", "snli=60,18,30", "squad=8,3,4",
         "sst=60,20,30", "names=300", "invented=3")  # fmt: skip
RECORDS = Path("results", "runs", "mini", "ner")
FILLER = "filler"  # takes the rest of a disk
RUN = re.compile(r" \(toy/open .*, seed \d+\)$")  # the name of a run behind its error


class Subject(NamedTuple):
    """A command, and how its result is read.

    Args:
        arguments: of Python, given the folder of inputs and the folder that everything is written to.
        result: what is compared, given the second folder.
        prepare: puts into the second folder what the command finds there.
    """

    arguments: Callable[[Path, Path], list[str]]
    result: Callable[[Path], Any]
    prepare: Callable[[Path], object] = lambda out: None


# Inputs, made once.


@functools.cache
def inputs() -> Path:
    """A folder with all that the commands read."""
    folder = Path(tempfile.mkdtemp(prefix="elmo-bench-drill-"))
    Bench(folder)
    draw = random.Random(0)
    for name, lines in (("train", 400), ("dev", 40)):
        text = "".join(" ".join(draw.choices([f"w{i}" for i in range(80)], k=7)) + "\n" for _ in range(lines))
        (folder / f"{name}.txt").write_text(text)
    torch.manual_seed(0)
    BiLM(Options.parse(OPTIONS)).export(folder / "tiny.json", folder / "tiny.hdf5")
    (folder / "in.jsonl").write_text('{"tokens": ["ba", "de", "gi"]}\n' * 50)
    return folder


def _toy(folder: Path, out: Path, *more: str) -> list[str]:
    places = [f"results_root={out}/results", f"cache_root={out}/cache"]
    place: Any = _Place(folder)
    kept = [one for one in Bench.overrides(place, *more) if not one.startswith(("results_root", "cache_root"))]
    return [*kept, *places]


class _Place:
    """What `Bench.overrides` reads, without the copying that makes a `Bench`."""

    def __init__(self, folder: Path):
        self.folder, self.data, self.results = folder, folder / "data", folder / "results"


def _command(folder: Path, name: str, *arguments: str) -> list[str]:
    return ["-m", "tests.command", str(folder / "conf"), name, *arguments]


def _predict(folder: Path, out: Path) -> list[str]:
    (checkpoint,) = reference("train").glob("results/work/open/toy/*/best.ckpt")
    return _command(folder, "predict", f"checkpoint={checkpoint}", f"input={folder}/in.jsonl", f"output={out}/p.jsonl")


def _pretrain(folder: Path, out: Path) -> list[str]:
    recipe = [f"recipe.{key}={value}" for key, value in RECIPE.items()]
    return [
        "-m", "elmo_bench", "pretrain", "scale=mini", f"root={folder}", f"cache_root={out}/cache", f"output={out}/bilm",
        "device=cpu", "compile=false", "every=0.1", *recipe,
    ]  # fmt: skip


# Results.


def _record(out: Path) -> Any:
    paths = sorted(out.glob("results/runs/*/*/*.json"))
    records = [json.loads(path.read_text()) for path in paths]
    kept = [{key: value for key, value in record.items() if key not in TIMES} for record in records]
    items = [hashlib.sha256(path.with_suffix(".items.npz").read_bytes()).hexdigest() for path in paths]
    return kept, items, [record["history"]["loss"] for record in records]


def _bilm(out: Path) -> Any:
    return {path.name: path.read_bytes() for path in sorted((out / "bilm").iterdir()) if path.name != "card.json"}


def _layers(out: Path) -> Any:
    with h5py.File(out / "layers.hdf5") as file:
        return {name: file[name][()].tobytes() for name in file if name != "sentence_to_index"}  # type: ignore[index]


def _files(*names: str) -> Callable[[Path], Any]:
    return lambda out: [(out / name).read_bytes() for name in names]


SUBJECTS: Mapping[str, Subject] = {
    "train": Subject(lambda i, o: _command(i, "train", *_toy(i, o)), _record),
    "reproduce": Subject(
        lambda i, o: _command(i, "reproduce", *_toy(i, o), "jobs=2", "task.fit.epochs=2"), _record
    ),
    "pretrain": Subject(_pretrain, _bilm),
    "embed": Subject(
        lambda i, o: ["-m", "elmo_bench", "embed", f"options={i}/tiny.json", f"weights={i}/tiny.hdf5",
                      f"input={i}/train.txt", f"output={o}/layers.hdf5", "group=20"], _layers,
    ),
    "predict": Subject(_predict, _files("p.jsonl")),
    "vocabulary": Subject(
        lambda i, o: ["-m", "elmo_bench", "vocabulary", f"text={i}/train.txt", f"output={o}/w.txt"], _files("w.txt")
    ),
    "mini": Subject(lambda i, o: ["-m", "elmo_bench", "mini", f"out={o}/world", *WORLD], _files("world/mini.json")),
    "report": Subject(
        lambda i, o: ["-m", "elmo_bench", "report", f"results_root={o}/results"],
        _files(*(f"results/{name}" for name in ("README.md", "report.html", "report.json", "figures/gains.svg"))),
        lambda o: shutil.copytree(ROOT / RECORDS, o / RECORDS),
    ),
}  # fmt: skip


def _prepared(path: Path) -> bool:
    """Whether a file was there before the command."""
    return str(RECORDS) in str(path)


# Running.


class Done(NamedTuple):
    """How a command ended."""

    status: int
    said: str  # on stderr
    seconds: float

    @property
    def lines(self) -> list[str]:
        return [line for line in self.said.splitlines() if line.startswith(("error: ", "interrupted"))]

    @property
    def refused(self) -> bool:
        """Whether it ended in one line with status 2, or one for each of its jobs, without a crash or a traceback."""
        reasons = {RUN.sub("", line.split(": ", 2)[-1]) for line in self.lines}
        return self.status == 2 and len(reasons) == 1 and "Traceback" not in self.said


def start(name: str, out: Path, limit: int | None = None) -> subprocess.Popen[str]:
    """A command in a process group of its own; no file that it writes may have more than `limit` bytes."""
    return subprocess.Popen(
        [sys.executable, *SUBJECTS[name].arguments(inputs(), out)], cwd=ROOT, text=True,
        preexec_fn=functools.partial(_prepare, limit), env=clean_environment() | {"OMP_NUM_THREADS": "1"},
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, process_group=0,
    )  # fmt: skip


def _prepare(limit: int | None) -> None:
    """In the new process: hears what a script in the background ignores, and has the limit."""
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def end(process: subprocess.Popen[str], seconds: float = PATIENCE) -> Done:
    """Waits for a command; one that does not end is killed, and has no status."""
    started = time.monotonic()
    try:
        _, said = process.communicate(timeout=seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        said, status = process.communicate()[1], -999
    return Done(status, said, time.monotonic() - started)


@functools.cache
def reference(name: str) -> Path:
    """The folder of an undisturbed command."""
    out = inputs() / "undisturbed" / name
    out.mkdir(parents=True)
    SUBJECTS[name].prepare(out)
    done = end(start(name, out))
    assert done.status == 0, done.said
    (out / "seconds").write_text(str(done.seconds))
    return out


def shown(name: str, out: Path, what: str) -> str:
    """The command that shows a fault again, and what disturbed it."""
    return f"{shlex.join(['python', *SUBJECTS[name].arguments(inputs(), out)])}  # {what}"


def left(out: Path) -> list[str]:
    """Temporary files that are still there."""
    return sorted(str(path.relative_to(out)) for path in out.rglob("*.partial*"))


def _typed_again(name: str, out: Path, what: str, verdict: str = "equal") -> Verdict:
    """Runs the command to its end, and compares the result with that of an undisturbed one."""
    done = end(start(name, out))
    if done.status:
        return "fault", shown(name, out, f"{what}; typed again: {done.status}, {done.said[-300:]}")
    if SUBJECTS[name].result(out) != SUBJECTS[name].result(reference(name)):
        return "fault", shown(name, out, f"{what}; typed again: another result")
    if left(out):
        return "fault", shown(name, out, f"{what}; left behind: {left(out)}")
    return verdict, ""


@contextlib.contextmanager
def _folder(name: str) -> Iterator[Path]:
    """A folder for what a command writes."""
    with tempfile.TemporaryDirectory(prefix=f"drill-{name}-", ignore_cleanup_errors=True) as place:
        SUBJECTS[name].prepare(Path(place))
        yield Path(place)


def _moment(draw: random.Random, name: str) -> float:
    return draw.uniform(0.05, 1.1) * float((reference(name) / "seconds").read_text())


# Trials.


def kill(draw: random.Random, name: str | None = None) -> Verdict:
    """SIGKILL at random moments, up to three times."""
    name = name or draw.choice(list(SUBJECTS))
    moments = [_moment(draw, name) for _ in range(draw.randint(1, 3))]
    with _folder(name) as out:
        for moment in moments:
            process = start(name, out)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moment)
            process.kill()
            process.communicate()
        return _typed_again(name, out, f"SIGKILL after {moments} s")


def interrupt(draw: random.Random, name: str | None = None) -> Verdict:
    """A signal at a random moment must end a command within seconds, in one line."""
    name = name or draw.choice(list(SUBJECTS))
    moment, number = 0.3 + _moment(draw, name), draw.choice(SIGNALS)
    what = f"{number.name} after {moment:.2f} s"
    with _folder(name) as out:
        process = start(name, out)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moment)
        process.send_signal(number)
        done = end(process, WITHIN)
        told = done.status == 128 + number and len(done.lines) == 1 and "Traceback" not in done.said
        if not told and done.status != 0 and not _too_early(done, number):
            return "fault", shown(name, out, f"{what}: {done.status}, {done.said[-300:]}")
        return _typed_again(name, out, what)


def _too_early(done: Done, number: signal.Signals) -> bool:
    """Whether the signal came while Python itself was starting."""
    return done.status in (-number, 128 + number, 1) and "elmo_bench/" not in done.said.replace("<frozen", "")


def full_disk(draw: random.Random, name: str | None = None) -> Verdict:
    """A disk that is too small, or where that cannot be mounted, a limit to the size of a file."""
    name = name or draw.choice(list(SUBJECTS))
    written = [path.stat().st_size for path in reference(name).rglob("*") if path.is_file() and not _prepared(path)]
    share = draw.uniform(0.0, 1.1)
    with _folder(name) as out, _small_disk(name, out, int(share * sum(written))) as mounted:
        limit = None if mounted else int(share * max(written))
        what = f"{share:.2f} of the room it needs"
        done = end(start(name, out, limit))
        if (done.status and not done.refused) or (done.refused and not re.search("no space|no room", done.said)):
            return "fault", shown(name, out, f"{what}: {done.status}, {done.said[-500:]}")
        if done.refused and left(out):
            return "fault", shown(name, out, f"{what}; left behind: {left(out)}")
        (out / FILLER).unlink(missing_ok=True)
        return _typed_again(name, out, what, "one line" if done.refused else "equal")


@contextlib.contextmanager
def _small_disk(name: str, place: Path, room: int) -> Iterator[bool]:
    """Mounts a disk with so many bytes of room, which is more once `FILLER` is gone; whether that is permitted."""
    size = 64 << 20
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode:
        yield False
        return
    try:
        SUBJECTS[name].prepare(place)
        with open(place / FILLER, "wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(4096, shutil.disk_usage(place).free - room))
        yield True
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def together(draw: random.Random, name: str | None = None, number: int = 8) -> Verdict:
    """Several processes with the same command and the same output."""
    name = name or draw.choice([one for one in SUBJECTS if one != "reproduce"])
    what = f"{number} at once"
    with _folder(name) as out:
        for done in [end(process) for process in [start(name, out) for _ in range(number)]]:
            if done.status and not done.refused:
                return "fault", shown(name, out, f"{what}: {done.status}, {done.said[-500:]}")
        return _typed_again(name, out, what)


TRIALS: Mapping[str, Callable[[random.Random], Verdict]] = {
    "SIGKILL": kill,
    "signals": interrupt,
    "full disks": full_disk,
    "processes at once": together,
}

# SIGKILL is in `kills.py`, too, in forks; here each trial starts Python anew, as a user does.
NUMBERS = {"SIGKILL": 5, "signals": 12, "full disks": 10, "processes at once": 5}
AREAS = [Area(f"processes:{name.replace(' ', '-')}", NUMBERS[name], trial, 900.0) for name, trial in TRIALS.items()]
