"""All that needs a GPU, part by part within a limit of time: its tests, then the measurements. What is done is kept."""

import hashlib
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import torch

from elmo_bench.reporting.section import pipes
from elmo_bench.speed.measuring import device_name
from elmo_bench.system import machine, places, processes
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_text
from elmo_bench.system.storage.hashing import fingerprint
from tests.gpu import part as measuring
from tests.gpu import tables

LIMITS = {
    "tests": 240.0,
    "encode": 60.0,
    "steps": 90.0,
    "pretraining": 150.0,
    "train": 240.0,
}  # seconds of each part, by its kind, on a GPU
SLOWER = 5.0  # times as long may a part take on a CPU, which others may use too
DETERMINISTIC = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}  # without it, cuBLAS may add up in another order each time
LEAST = 5.0  # seconds that are left for a part to be started
CODE = ("elmo_bench", "tasks", "tests", "conf")
Figures = dict[str, Any]


class Work(NamedTuple):
    """What is to be done.

    Args:
        place: the device; on a CPU the same parts run at reduced sizes.
        rows: folder of rows chosen before, or None.
        data: overrides that choose the data.
        parts: their names, in order.
    """

    place: torch.device
    rows: Path | None
    data: Sequence[str]
    parts: Sequence[str]

    @property
    def key(self) -> str:
        """Changes with the code, the device, torch and the data: only what was done with the same key is kept."""
        rows = [] if self.rows is None else [_digest([path]) for path in sorted(self.rows.glob("*.json"))]
        code = [path for folder in CODE for path in sorted((places.ROOT / folder).rglob("*.*")) if _is_code(path)]
        return fingerprint([_digest(code), device_name(self.place), torch.__version__, rows, list(self.data)])


def _is_code(path: Path) -> bool:
    return path.suffix in (".py", ".cpp", ".h", ".yaml")


def _digest(paths: Sequence[Path]) -> str:
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)).hexdigest()


def parts(kind: str) -> list[str]:
    """The names of all parts for a kind of device, in their order."""
    return ["tests", *measuring.names(kind)]


def run(work: Work, file: Path, limit: float, tell: Callable[[str], None]) -> Figures:
    """Does the parts that `file` does not have yet, and writes it after each one.

    Args:
        work: what to do.
        file: JSON; of other code, or of another device, it is begun again.
        limit: seconds for all parts together; a part is ended when they are over.
        tell: called with a line about each part.

    Returns:
        What `file` contains: key, the circumstances, and by part `seconds` and its figures, or `failed` and why.
    """
    until, found = time.monotonic() + limit, _begun(work, file)
    for part in work.parts:
        if part in found["parts"] and "failed" not in found["parts"][part]:
            tell(f"{part}: kept")
            continue
        left = until - time.monotonic()
        if left < LEAST:
            tell(f"{part}: no time left")
            continue
        longest = LIMITS[part.partition(".")[0]] * (SLOWER if work.place.type == "cpu" else 1)
        found["parts"][part] = _part(work, part, min(left, longest))
        tell(f"{part}: {told(found['parts'][part])}")
        write_text(file, json_text.dumps(found, indent=1) + "\n")
    return found


def _begun(work: Work, file: Path) -> Figures:
    found = json_text.read(file) if file.is_file() else {}
    if found.get("key") == work.key:
        return found
    return {"key": work.key, **machine.circumstances(work.place.type), "parts": {}}


def told(part: Figures) -> str:
    """A part in a few words."""
    if "failed" in part:
        return f"failed: {part['failed']}"
    counts = f"{part['passed']} tests passed, {part['skipped']} skipped, " if "passed" in part else ""
    return f"{counts}{part['seconds']:.0f} s"


def _part(work: Work, part: str, limit: float) -> Figures:
    """The figures of a part; `failed` says why there are none, or not all."""
    started = time.monotonic()
    try:
        figures = _tests(work, limit) if part == "tests" else _measured(work, part, limit)
    except subprocess.TimeoutExpired:
        figures = {"failed": f"not done after {limit:.0f} s"}
    except subprocess.CalledProcessError as error:
        figures = {"failed": (error.stderr.strip().splitlines() or [f"status {error.returncode}"])[-1]}
    return {"seconds": round(time.monotonic() - started, 1), **figures}


def _measured(work: Work, part: str, limit: float) -> Figures:
    return measuring.run(part, work.place.type, work.rows, work.data, limit)


def _tests(work: Work, limit: float) -> Figures:
    """Runs the tests of the device: how many passed and were skipped, why, and the messages of those that failed."""
    folder = places.ROOT / "tests"
    chosen = "gpu" if work.place.type == "cuda" else "not gpu"
    with tempfile.TemporaryDirectory() as name:
        report = Path(name) / "report.xml"
        command = processes.python(
            "pytest", "-q", "-m", chosen, "-p", "no:cacheprovider", "-o", "minversion=7", f"--junitxml={report}",
            *map(str, sorted(folder.rglob("test_gpu_*.py"))),
            *([str(folder / "running" / "test_devices.py")] if work.place.type == "cuda" else []),
        )  # fmt: skip
        done = subprocess.run(
            command, cwd=places.ROOT, env=os.environ | DETERMINISTIC, capture_output=True, text=True, timeout=limit
        )
        if not report.is_file():
            raise subprocess.CalledProcessError(done.returncode, command, stderr=done.stdout + done.stderr)
        return outcome(report)


def outcome(report: Path) -> Figures:
    """Of a JUnit file: passed, skipped, reasons; failed, where there are failures, and their messages by test."""
    cases = list(ElementTree.parse(report).iter("testcase"))
    wrong = {_name(case): _message(each) for case in cases for each in (*case.iter("failure"), *case.iter("error"))}
    skipped = [_message(each) for case in cases for each in case.iter("skipped")]
    figures: Figures = {"passed": len(cases) - len(wrong) - len(skipped), "skipped": len(skipped)}
    figures["reasons"] = sorted(set(skipped))
    return {**figures, "failed": f"{len(wrong)} of {len(cases)} tests", "failures": wrong} if wrong else figures


def _name(case: ElementTree.Element) -> str:
    return f"{case.get('classname')}::{case.get('name')}"


def _message(element: ElementTree.Element) -> str:
    return (element.get("message") or "").partition("\n")[0]


def markdown(found: Figures) -> str:
    """The same for people."""
    head, done = found["machine"], found["parts"]
    commit = f"commit {found['commit'] or 'unknown'}{' with changes' if found['dirty'] else ''}"
    about = (
        f"# {head.get('gpu', head['cpu'])}\n\nWritten by `make gpu`: torch {found['versions']['torch']}, {commit}.\n"
    )
    if head["accelerator"] == "cpu":
        about += (
            "\nMeasured on a CPU at reduced sizes: these figures show that the parts run, and nothing about a GPU.\n"
        )
    listed = "".join(f"| {name} | {told(part)} |\n" for name, part in done.items())
    failures = "".join(
        f"\n`{name}`: {message}\n" for part in done.values() for name, message in part.get("failures", {}).items()
    )
    sections = [f"{table.title}\n\n{pipes(table.header, table.rows)}\n" for table in tables.of_device(done)]
    return "\n".join([about, f"| part | outcome |\n| --- | --- |\n{listed}{failures}", *sections])
