"""Compiles the functions of `kernels.cpp`, once per machine, and calls them, also in parallel threads.

Plain C functions through `ctypes`, not an extension of torch: they compile in seconds, work with any version of torch,
and release Python's lock, so that threads run in parallel. A library is kept for the machine that built it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from enum import IntEnum
from functools import cache
from pathlib import Path
from threading import local
from typing import NamedTuple, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.system import places
from elmo_bench.system.machine import cores
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
        OSError, subprocess.SubprocessError: there is no compiler, it fails, or the library cannot be written.
    """
    compiler = next((found for name in COMPILERS if name and (found := shutil.which(name))), None)
    if compiler is None:
        raise OSError("no C++ compiler")
    stat = os.stat(compiler)
    texts = [path.read_text(encoding="utf-8") for path in (SOURCE, *sorted(SOURCE.parent.glob("*.h")))]
    key = fingerprint([texts, list(FLAGS), compiler, stat.st_size, stat.st_mtime, _processor()])
    folder = places.machine_cache() / "kernels" / key
    # A damaged library would crash the process, and a library that others could write would run their code.
    if not (private(folder) and is_made_here(folder / LIBRARY)):
        _compile([compiler, *FLAGS, str(SOURCE)], folder)
    return folder / LIBRARY


def _processor() -> list[str]:
    """The properties that `-march=native` depends on: several machines may share a home folder."""
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


GATES = 128  # rows whose input products are kept at once

Linear = tuple[Tensor, Tensor]  # weight and bias
Argument = Tensor | int | float


class Factors(IntEnum):
    """The type of the factors of matrix products, by the numbers of `kernels.cpp`."""

    FLOATS = 0
    PAIRS = 1  # pairs of bfloat16, in vectors
    AMX = 2  # pairs of bfloat16, in tiles of registers


class Weights(NamedTuple):
    """Weights of one direction of one LSTM layer; the 4C gates in the order i, f, o, j for each `lanes` cells."""

    input: Tensor  # (4C, P), packed
    bias: Tensor  # (4C,)
    recurrent: Tensor  # (4C, P), packed
    projection: Tensor  # (P, C), packed


class EncoderWeights(NamedTuple):
    """Weights of the token encoder, packed, with a bias for every column of their panels."""

    table: Tensor  # (characters, words) embeddings, as factors
    kinds: list[tuple[int, int]]  # width and number of each kind of filter
    squash: bool  # tanh instead of relu
    features: int  # number of all filters
    filled: int  # the same, rounded up to a multiple of half a panel by columns of zeros
    filters: list[Linear]  # of each kind: (number, width * size)
    highways: list[Linear]  # (2 * filled, filled): alternating half panels of transform and carry
    projection: list[Linear]  # (P, filled), or none


def load(half: bool = False) -> Kernels | None:
    """The compiled functions, unchecked; None without a compiler or if they are turned off.

    Args:
        half: those that multiply in bfloat16; also None if the processor or the compiler has no instructions for it.
    """
    if os.environ.get("ELMO_BENCH_KERNELS") == "0":
        return None
    try:
        return Kernels(built(), half)
    except (OSError, AttributeError, subprocess.SubprocessError):
        return None


def checked(half: bool, difference: Callable[[Kernels], float], near: float) -> Kernels | None:
    """The functions from `load`, if their `difference` from torch is below `near`; otherwise None."""
    found = load(half)
    with torch.inference_mode(False), torch.enable_grad(), torch.autocast("cpu", enabled=False):
        return found if found and difference(found) < near else None


class Kernels:
    """The functions of `kernels.cpp` on float32 tensors on the CPU, contiguous unless stated otherwise.

    Args:
        path: the library.
        half: multiply in bfloat16, by AMX if possible; sums and everything else remain float32.

    Attributes:
        multiplied: the type of the products' factors.
        step: the size of a row of an operand is a multiple of this.

    Raises:
        OSError: the processor or the compiler has no instructions for `half`.
    """

    def __init__(self, path: str | os.PathLike[str], half: bool = False):
        self.library = ctypes.CDLL(os.fspath(path))
        self.lanes, self.panel = int(self.library.lanes()), int(self.library.panel())
        self.library.distance.restype = ctypes.c_long
        self.half, self.step = half, 2 * self.lanes if half else self.lanes
        self.multiplied = Factors(self.library.halves()) if half else Factors.FLOATS
        if half and self.multiplied == Factors.FLOATS:
            raise OSError("no instructions for bfloat16")

    def factors(self, x: Tensor) -> Tensor:
        """(..., n) -> (..., words): the factors of products; two bfloat16 numbers take the place of a float32."""
        x = x.detach()
        return _widened(x, x.shape[-1] % 2).bfloat16().contiguous().view(torch.float32) if self.half else x

    def packed(self, weight: Tensor) -> Tensor:
        """(out, in) -> (panels, words, panel), with zeros for the missing outputs of the last panel.

        In bfloat16 with zeros for the missing words of the last vector too.
        """
        words = self.factors(weight)
        missing = -words.shape[1] % self.lanes if self.half else 0
        padded = _widened(words, missing, -len(weight) % self.panel)
        return padded.unflatten(0, (-1, self.panel)).mT.contiguous()

    def encode(self, ids: Tensor, used: Tensor, encoder: EncoderWeights, most: int, threads: int) -> Tensor:
        """The token vectors of words.

        Args:
            ids: (U, K) int32 characters.
            used: (U,) int32 numbers of characters before the padding.
            encoder: its weights.
            most: words that a thread encodes at once.
            threads: the number of threads.

        Returns:
            (U, P or more): columns beyond P are meaningless.
        """
        (words, columns), size, filled = ids.shape, encoder.table.shape[1], encoder.filled
        pairs = [*encoder.filters, *encoder.highways, *encoder.projection]
        panels = len(encoder.projection[0][0]) if encoder.projection else 0
        out = _space(words, panels * self.panel or filled)
        self.call(
            "encode", threads, ids, used, words, columns, encoder.table, size, torch.tensor(encoder.kinds),
            len(encoder.kinds), encoder.squash, encoder.features, filled, len(encoder.highways), panels,
            _addresses(pairs), most, out, out.shape[1],
        )  # fmt: skip
        return out

    def lstm(
        self,
        tokens: Tensor,
        order: Tensor,
        places: Tensor,
        sizes: Tensor,
        weights: Sequence[Weights],
        clips: tuple[float, float],
        skip: bool,
        h: Tensor,
        c: Tensor,
        out: Tensor,
        threads: int,
    ) -> None:
        """Both directions of all L layers.

        Args:
            tokens: (N, P), P a multiple of `panel`.
            order, places: (2, N) int64: for each packed word of a direction its token, and its row in `out` or -1.
            sizes: (steps,) int64 rows of each step, never increasing, N in total.
            weights: of the forward layers, then of the backward layers.
            clips: the bounds of cells and outputs.
            skip: every layer but the first adds its input to its output.
            h, c: (2, L, B, P) and (2, L, B, C): the initial states, replaced by each row's final ones; C is a multiple
                of `step`.
            out: (places, L+1, 2, P), of which [:, 1:] is written.
            threads: the number of threads.
        """
        words, (_, layers, batch, width), cells = len(tokens), h.shape, c.shape[3]
        together = max(batch, min(words, GATES))
        self.call(
            "lstm", threads, tokens, order, places, words, sizes, len(sizes), _addresses(weights), layers, cells,
            width, *clips, skip, h, c, out, self._operand(together, width), self._operand(batch, width),
            self._operand(batch, cells), _space(2 * words * width), _space(cells // self.lanes * self._distance(batch)),
            _space(threads * together * self.panel), _space(together * 4 * cells), together,
        )  # fmt: skip

    def _operand(self, rows: int, size: int) -> Tensor:
        """Space for an operand."""
        words = size // 2 if self.half else size
        return _space(-(-words // self.lanes) * self._distance(rows))

    def _distance(self, rows: int) -> int:
        """Floats between the blocks of an operand."""
        return int(self.library.distance(ctypes.c_long(self.multiplied), ctypes.c_long(rows)))

    def call(self, name: str, threads: int, *arguments: Argument) -> None:
        """Calls a function, which gets the arguments as one structure."""
        values = [_plain(argument) for argument in arguments]
        given = _structure(tuple(map(type, values)))(*values)
        self.library[name](ctypes.byref(given), *map(ctypes.c_long, (self.multiplied, threads)))


def _widened(x: Tensor, columns: int, rows: int = 0) -> Tensor:
    """A tensor with columns and rows of zeros added; `F.pad` would copy it even if nothing is added."""
    return F.pad(x, (0, columns, 0, rows)) if columns or rows else x


@cache
def _structure(kinds: tuple[type, ...]) -> type[ctypes.Structure]:
    fields = [(f"field{number}", kind) for number, kind in enumerate(kinds)]
    return type("Arguments", (ctypes.Structure,), {"_fields_": fields})


def _space(*size: int) -> Tensor:
    return torch.empty(size, dtype=torch.float32, device="cpu")


def _addresses(parts: Iterable[Iterable[Tensor]]) -> Tensor:
    return torch.tensor([_address(tensor) for part in parts for tensor in part])


def _address(tensor: Tensor) -> int:
    """The tensor's data pointer. With another layout or type, the functions would read noise or beyond its end."""
    assert tensor.is_contiguous()
    assert tensor.device.type == "cpu"
    assert tensor.dtype == torch.float32 or not tensor.is_floating_point()
    return tensor.data_ptr()


def _plain(value: Argument) -> ctypes.c_void_p | ctypes.c_long | ctypes.c_float:
    if isinstance(value, Tensor):
        return ctypes.c_void_p(_address(value))
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_long(value)


Result = TypeVar("Result")


def direction_threads(run: Callable[[int], Result], like: Tensor) -> list[Result]:
    """`run(0)` and `run(1)`, in parallel if that helps: without gradients, on a CPU with two or more threads."""
    threads = torch.get_num_threads()
    if torch.is_grad_enabled() or like.device.type != "cpu" or threads < 2:
        return [run(0), run(1)]
    return list(_pool(os.getpid(), threads).map(torch.no_grad()(run), range(2)))  # the mode is per thread


@cache
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    """One pool per process, since threads do not survive a fork."""
    pool = ThreadPoolExecutor(2, "bilm", lambda: torch.set_num_threads(threads // 2))
    list(pool.map(lambda _: time.sleep(0.01), range(2)))  # both start now
    torch.set_num_threads(threads)  # the calls above also changed the default of new threads
    return pool


# torch's threads wait for each other at the end of each operation. If another process occupies a core, this wait takes
# some milliseconds, while a copy takes some microseconds.


class _Outside(local):
    threads: int | None = None  # torch's number outside of `torch_alone`


_outside = _Outside()


@contextmanager
def torch_alone() -> Iterator[None]:
    """For compiled functions and the copies around them: torch's operations inside use one thread."""
    before = torch.get_num_threads()
    _outside.threads = before
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
        _outside.threads = None


def most_threads() -> int:
    """Threads of compiled functions: as many as torch uses, but no more than cores, since they wait for each other."""
    return min(_outside.threads or torch.get_num_threads(), cores())


def copied(x: Tensor) -> Tensor:
    """A contiguous copy without gradients, on a CPU by one thread."""
    return torch.from_numpy(x.numpy().copy()) if x.device.type == "cpu" else x.contiguous()
