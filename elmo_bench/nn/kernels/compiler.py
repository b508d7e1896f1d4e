"""Compiles the project's C++ functions, once for each machine."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from elmo_bench.system import places
from elmo_bench.system.storage.files import others, private, replacement
from elmo_bench.system.storage.hashing import fingerprint
from elmo_bench.system.storage.integrity import is_made_here, note

SOURCE = Path(__file__).with_name("kernels.cpp")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-shared", "-fPIC")
COMPILERS = (os.environ.get("CXX", ""), "c++", "g++", "clang++")
PATIENCE = 120  # seconds for the compiler
LIBRARY = "kernels.so"


def built() -> Path:
    """The path of the compiled library for this compiler and processor, made if necessary.

    Raises:
        OSError, subprocess.SubprocessError: there is no compiler, it fails, or there is no place for the library.
    """
    compiler = next((found for name in COMPILERS if name and (found := shutil.which(name))), None)
    if compiler is None:
        raise OSError("no C++ compiler")
    stat = os.stat(compiler)
    texts = [path.read_text(encoding="utf-8") for path in (SOURCE, *sorted(SOURCE.parent.glob("*.h")))]
    key = fingerprint([texts, list(FLAGS), compiler, stat.st_size, stat.st_mtime, _processor()])
    folder = places.machine_cache() / "kernels" / key
    # A damaged library would end the process, and one that somebody else could write would run their code in it.
    if not (private(folder) and is_made_here(folder / LIBRARY)):
        _compile([compiler, *FLAGS, str(SOURCE)], folder)
    return folder / LIBRARY


def _processor() -> list[str]:
    """What `-march=native` depends on: a home folder may be shared by several machines."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    return [platform.machine(), platform.processor(), platform.node()]


def _compile(command: Sequence[str], folder: Path) -> None:
    if others(folder):
        shutil.rmtree(folder)
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    print("compiling the C++ functions, once for this machine", file=sys.stderr, flush=True)
    with replacement(folder / LIBRARY) as library:
        subprocess.run([*command, "-o", str(library)], check=True, capture_output=True, timeout=PATIENCE)
        library.chmod(0o755)
    note(folder / LIBRARY)
