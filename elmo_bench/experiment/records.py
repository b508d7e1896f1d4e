"""One JSON file a finished run: written last and atomically, so that a record means a finished run."""

from __future__ import annotations

import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from elmo_bench.system.errors import UserError
from elmo_bench.system.files import replacing
from elmo_bench.system.places import ROOT

Record = dict[str, Any]
KEYS = ("task", "scale", "seed", "metrics", "config", "bilm", "seconds", "machine", "versions", "commit",
        "layer_weights", "gamma")  # fmt: skip
PACKAGES = ("torch", "pytorch-lightning", "hydra-core", "omegaconf", "datasets", "numpy", "seqeval", "h5py")


def place(results_root: str | Path, scale: str, task: str, run: str) -> Path:
    """Where the record of a run lies."""
    return Path(results_root) / "runs" / scale / task / f"{run}.json"


def work(results_root: str | Path, scale: str, task: str, run: str) -> Path:
    """The folder of a run's checkpoints and metrics; it holds what a half-finished run resumes from."""
    return Path(results_root) / "work" / scale / task / run


def write(path: Path, record: Record) -> None:
    """Whole or not at all. Raises `ValueError` where a fixed key is missing."""
    if missing := [key for key in KEYS if key not in record]:
        raise ValueError(f"a record needs {', '.join(missing)}")
    write_text(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def write_text(path: Path, text: str) -> None:
    """Writes a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text)


def read(path: Path) -> Record:
    """Raises `UserError` where the file is no record."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"not a readable record ({error}); remove it and run again", path) from None
    if not isinstance(record, dict) or any(key not in record for key in KEYS):
        raise UserError("a record without its fixed keys; remove it and run again", path)
    return record


def read_all(results_root: str | Path) -> list[Record]:
    """All records below `results_root`, in the order of their paths."""
    return [read(path) for path in sorted((Path(results_root) / "runs").glob("*/*/*.json"))]


def mean_and_deviation(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean, and the sample standard deviation (n - 1); None for a single value."""
    return fmean(values), stdev(values) if len(values) > 1 else None


def grouped(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Runs that differ in their seed alone, by seed."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(record["group"], []).append(record)
    return {key: sorted(group, key=lambda record: record["seed"]) for key, group in groups.items()}


@cache
def commit() -> tuple[str | None, bool | None]:
    """The commit of the code and whether tracked files differ from it (records aside); None without git."""
    try:
        head = _git("rev-parse", "HEAD")
        return head, bool(_git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!results"))
    except (OSError, subprocess.SubprocessError):
        return None, None


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout.strip()


def versions() -> dict[str, str]:
    """Of Python and of the packages that a result can depend on."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def machine(accelerator: str) -> dict[str, Any]:
    """The hardware, without names of hosts or users."""
    import torch

    described: dict[str, Any] = {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gib": _memory(),
        "platform": f"{platform.system()} {platform.machine()}",
        "accelerator": accelerator,
    }
    if accelerator == "cuda":
        described["gpu"] = torch.cuda.get_device_name()
    return described


def peak_mib() -> float:
    """The most memory that this process has held so far."""
    status = Path("/proc/self/status")
    if status.exists():  # its parent's is not counted, as `ru_maxrss` would on Linux
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1024)


def peaks(accelerator: str) -> dict[str, int]:
    """`peak_memory_mib`: resident memory of the process, over all runs in it; beside it that of a GPU in use."""
    found = {"peak_memory_mib": round(peak_mib())}
    if accelerator == "cuda":
        import torch

        found["device_peak_memory_mib"] = round(torch.cuda.max_memory_allocated() / 2**20)
    return found


def _cpu() -> str:
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None
