"""The circumstances of a result: machine, versions of packages, commit of the code, peak memory."""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import metadata
from pathlib import Path
from shutil import which
from typing import Any

from elmo_bench.system.places import CHECKOUT, ROOT

GIVEN = "CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS"  # the GPUs of a job
HIDDEN = "", "-1", "NoDevFiles"  # values of CUDA_VISIBLE_DEVICES without a GPU
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4  # from <malloc.h>
DRIVER = "/proc/driver/nvidia/version"
PACKAGES = ("torch", "pytorch-lightning", "hydra-core", "omegaconf", "datasets", "numpy", "seqeval", "h5py")


_prepared: dict[str, float] = {}


@contextmanager
def preparing(what: str) -> Iterator[None]:
    """Counts the CPU seconds for making a run's inputs before it trains."""
    began = time.process_time()
    yield
    _prepared[what] = round(time.process_time() - began, 1)


def prepared() -> dict[str, float]:
    """The CPU seconds counted by `preparing` since the last call."""
    found = {**_prepared}
    _prepared.clear()
    return found


@cache
def commit() -> tuple[str | None, bool | None]:
    """The commit of the code, and whether tracked files other than results differ from it; None without git."""
    git = "git", "-C", str(ROOT)
    head = _printed(*git, "rev-parse", "HEAD") if CHECKOUT else None
    changes = head and _printed(*git, "status", "--porcelain", "--untracked-files=no", "--", ".", ":!results")
    return (None, None) if changes is None else (head, bool(changes))


def _printed(*command: str) -> str | None:
    """The output of a program; None if it is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that a result can depend on."""
    installed = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed


def machine(accelerator: str) -> dict[str, Any]:
    """The hardware, without names of hosts or users."""
    import torch

    described: dict[str, Any] = {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "platform": f"{platform.system()} {platform.machine()}",
        "accelerator": accelerator,
    }
    if accelerator == "cuda":
        described["gpu"] = torch.cuda.get_device_name()
    return described


def circumstances(accelerator: str) -> dict[str, Any]:
    """The metadata of every result: machine, versions, commit, and whether the code differs from the commit."""
    head, dirty = commit()
    return {"machine": machine(accelerator), "versions": versions(), "commit": head, "dirty": dirty}


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> list[str]:
    """The GPUs that torch sees, as CUDA_VISIBLE_DEVICES names them."""
    import torch

    number, visible = torch.cuda.device_count(), os.environ.get("CUDA_VISIBLE_DEVICES")
    return (visible.split(",") if visible else [str(i) for i in range(number)])[:number]


def unseen_gpu() -> str | None:
    """A message if torch does not see a GPU that exists or belongs to the job: the evidence and the remedy.

    An empty CUDA_VISIBLE_DEVICES hides the GPUs of a machine, and a Slurm job has only the GPUs assigned to it.
    """
    import torch

    if torch.cuda.is_available() or os.environ.get("CUDA_VISIBLE_DEVICES") in HIDDEN:
        return None
    sign = next((f"{name}={os.environ[name]}" for name in GIVEN if os.environ.get(name)), None)
    if sign is None and "SLURM_JOB_ID" not in os.environ:
        listed = DRIVER if Path(DRIVER).exists() else which("nvidia-smi") and _printed("nvidia-smi", "-L")
        sign = listed if listed in (None, DRIVER) else " ".join(["nvidia-smi", *listed.splitlines()[:1]])
    if sign is None:
        return None
    remedy = (
        "check the driver with nvidia-smi"
        if torch.version.cuda
        else "it is the CPU build: rm -rf .venv && make setup TORCH=cuda"
    )
    return f"there is a GPU ({sign}), but torch {torch.__version__} sees none; {remedy}"


def keep_freed_memory(however_large: bool = False) -> None:
    """Makes glibc keep freed memory for this process, since training frees and allocates the same arrays at every step.

    Memory returned to the system would be cleared again, page by page, at the next allocation. Arrays of 32 MiB and
    more are kept only with `however_large`: if their sizes change from step to step, this takes a sixth more memory.
    """
    with suppress(OSError, AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(M_MMAP_THRESHOLD, 1 << 25)  # the maximum of glibc
        if however_large:
            mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, (1 << 31) - 1)


def peak_mib() -> float:
    """The peak memory of this process so far, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux, `ru_maxrss` would include the parent's peak
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1024)


def peaks(accelerator: str) -> dict[str, int]:
    """`peak_memory_mib`: peak resident memory of the process, over all its runs; on a GPU, also the device's peak."""
    memory = {"peak_memory_mib": round(peak_mib())}
    if accelerator == "cuda":
        import torch

        memory["device_peak_memory_mib"] = round(torch.cuda.max_memory_allocated() / 2**20)
    return memory


def processor() -> str:
    """The processor's name."""
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
