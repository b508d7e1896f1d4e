"""Builds and calls the functions of `kernels.cpp`, the compiled part of the frozen biLM.

Plain C functions through `ctypes`, and not an extension of torch: they compile in two seconds, fit every version of
torch, and leave Python's lock free, so that threads run them side by side. A library is kept for the machine that built
it.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import torch
from torch import Tensor

from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.files import replacement, write_text
from elmo_bench.system.hashing import fingerprint
from elmo_bench.system.integrity import check_digests, digests

SOURCE = Path(__file__).with_suffix(".cpp")
FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-shared", "-fPIC")
COMPILERS = (os.environ.get("CXX", ""), "c++", "g++", "clang++")
PATIENCE = 120  # seconds for the compiler
LIBRARY = "kernels.so"
CARD = "card.json"


class Kernels:
    """The functions of `kernels.cpp` on tensors: contiguous float32 on the CPU."""

    def __init__(self, path: str | os.PathLike[str]):
        self.library = ctypes.CDLL(os.fspath(path))
        self.lanes, self.panel = int(self.library.lanes()), int(self.library.panel())

    def packed(self, weight: Tensor) -> Tensor:
        """(out, in) -> (panels, in, panel), with zeros for the missing outputs of the last panel."""
        panels = -(-len(weight) // self.panel)
        padded = weight.new_zeros(panels * self.panel, weight.shape[1])
        padded[: len(weight)] = weight.detach()
        return padded.view(panels, self.panel, -1).mT.contiguous()

    def convolve(self, ids: Tensor, used: Tensor, table: Tensor, width: int, weight: Tensor, bias: Tensor) -> Tensor:
        """Every filter's maximum over the windows of each word, before the activation.

        Args:
            ids: (n, K) int32 characters.
            used: (n,) int32 numbers of characters before the padding.
            table: (characters, size) embeddings.
            width: of the windows.
            weight: (number, width * size), packed.
            bias: (panels * panel,).

        Returns:
            (n, panels * panel).
        """
        (n, columns), size, panels = ids.shape, table.shape[1], len(weight)
        out, space = table.new_empty(n, panels * self.panel), table.new_empty(columns * size)
        self._call(
            "convolve", ids, used, n, columns, table, size, width, weight, bias, panels, out, out.shape[1], space
        )
        return out

    def highway(self, x: Tensor, both: Tensor) -> None:
        """x + sigmoid(carry) (relu(transform) - x), in place.

        Args:
            x: (n, size), a multiple of `lanes`.
            both: (n, 2 * size), transform beside carry.
        """
        self._call("highway", x, both, *x.shape)

    def lstm(
        self,
        gates: Tensor,
        sizes: Tensor,
        recurrent: Tensor,
        projection: Tensor,
        clips: tuple[float, float],
        h: Tensor,
        c: Tensor,
    ) -> Tensor:
        """The time loop of one direction of one layer.

        Args:
            gates: (N, 4C) products of the input, with biases; for each `lanes` cells: i, f, o, j.
            sizes: (steps,) int64 rows of each step, never increasing.
            recurrent: (4C, P), gates in this order, packed.
            projection: (P, C), packed; P is a multiple of `panel`.
            clips: of cells and outputs.
            h, c: (B, P) and (B, C): the states before, replaced by each row's last ones.

        Returns:
            (N, P).
        """
        cells, width = c.shape[1], h.shape[1]
        out, hidden = h.new_empty(len(gates), width), torch.empty_like(c)
        self._call("lstm", gates, sizes, len(sizes), recurrent, projection, cells, width, *clips, h, c, hidden, out)
        return out

    def _call(self, name: str, *arguments: Tensor | int | float) -> None:
        self.library[name](*map(_plain, arguments))


def _plain(value: Tensor | int | float) -> ctypes.c_void_p | ctypes.c_long | ctypes.c_float:
    if isinstance(value, Tensor):
        assert value.is_contiguous()
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_long(value) if isinstance(value, int) else ctypes.c_float(value)


def built() -> Path:
    """The path of the library for this source, compiler and processor, made if necessary.

    Raises:
        OSError, subprocess.SubprocessError: there is no compiler, it fails, or there is no place for the library.
    """
    compiler = next((found for name in COMPILERS if name and (found := shutil.which(name))), None)
    if compiler is None:
        raise OSError("no C++ compiler")
    stat = os.stat(compiler)
    key = fingerprint([SOURCE.read_text(encoding="utf-8"), FLAGS, compiler, stat.st_size, stat.st_mtime, _processor()])
    folder = places.machine_cache() / "kernels" / key
    if not _whole(folder):
        _compile(compiler, folder)
    return folder / LIBRARY


def _processor() -> list[str]:
    """What `-march=native` depends on: a home folder may be shared by several machines."""
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        return sorted({line for line in lines if line.startswith(("model name", "flags", "Features", "CPU part"))})
    return [platform.machine(), platform.processor(), platform.node()]


def _whole(folder: Path) -> bool:
    """Whether the folder holds a library as it was built: a damaged one would end the process."""
    try:
        check_digests(folder, json.loads((folder / CARD).read_text(encoding="utf-8")), "")
    except (OSError, ValueError, AttributeError, UserError):
        return False
    return (folder / LIBRARY).is_file()


def _compile(compiler: str, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with replacement(folder / LIBRARY) as library:
        command = [compiler, *FLAGS, str(SOURCE), "-o", str(library)]
        subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    write_text(folder / CARD, json.dumps(digests(folder, [LIBRARY])) + "\n")
