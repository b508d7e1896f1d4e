"""Weights on disk: the official HDF5 layout, read and written with h5py, and our own as safetensors.

Nothing is unpickled, and no link out of the file is followed. Official matrices are (input, output), ours (output,
input) as in torch, so most are transposed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from elmo_bench.bilm.options import Options
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.files import replacement, replacing
from elmo_bench.system.storage.json_text import CHECKSUM

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


class Entry(NamedTuple):
    """One dataset of the official layout, and its conversion to our parameters and back."""

    name: str
    shape: tuple[int, ...]
    to_ours: Callable[[Tensor], dict[str, Tensor]]
    to_official: Callable[[dict[str, Tensor]], Tensor]


def official_layout(options: Options) -> Iterator[Entry]:
    """Every dataset that a biLM of these options has."""
    n, p, c = options.n_filters, options.projection_dim, options.dim
    key = "encoder.characters.weight"
    yield Entry("char_embed", (261, options.char_dim), lambda x: {key: _with_mask_row(x)}, lambda ours: ours[key][1:])
    for i, (width, number) in enumerate(options.filters):
        yield _convolution(f"CNN/W_cnn_{i}", f"encoder.convolutions.{i}.weight", width, options.char_dim, number)
        yield _same(f"CNN/b_cnn_{i}", f"encoder.convolutions.{i}.bias", number)
    for i in range(options.n_highway):
        for part in ("carry", "transform"):
            yield _transposed(f"CNN_high_{i}/W_{part}", f"encoder.highways.{i}.{part}.weight", n, n)
            yield _same(f"CNN_high_{i}/b_{part}", f"encoder.highways.{i}.{part}.bias", n)
    if n != p:  # bilm-tf projects only where the widths differ
        yield _transposed("CNN_proj/W_proj", "encoder.projection.weight", n, p)
        yield _same("CNN_proj/b_proj", "encoder.projection.bias", p)
    for direction in range(2):
        for layer in range(options.n_layers):
            theirs = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
            ours = f"directions.{direction}.{layer}"
            yield _gates(f"{theirs}/W_0", ours, p, p, c)
            yield _same(f"{theirs}/B", f"{ours}.bias", 4 * c)
            yield _transposed(f"{theirs}/W_P_0", f"{ours}.projection", c, p)


def load_weights(module: nn.Module, options: Options, path: str | PathLike[str]) -> None:
    """Loads the weights of a file, official or ours by its first bytes, into a biLM, which may be on "meta".

    Raises:
        UserError: the file is missing, damaged, of neither format, or does not match the options (the error names the
            weight).
    """
    path = Path(path)
    limits.regular(path)
    try:
        with open(path, "rb") as file:
            signature = file.read(len(HDF5_SIGNATURE))
    except OSError as error:
        raise UserError(f"the weights cannot be read: {error.strerror or error}", path) from None
    read = _read_hdf5 if signature == HDF5_SIGNATURE else _read_safetensors
    ours = read(options, path)
    expected = {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}
    for name, shape in expected.items():
        if name not in ours:
            raise UserError(f"the weights lack {name!r}; do they belong to these options?", path)
        if tuple(ours[name].shape) != shape:
            actual = tuple(ours[name].shape)
            raise UserError(
                f"{name!r} has shape {actual}, but the options ask for {shape}; do they belong together?", path
            )
        if not torch.isfinite(ours[name]).all():
            raise UserError(f"{name!r} has values that are not finite; the file is damaged", path)
    if extra := sorted(set(ours) - set(expected)):
        raise UserError(f"unknown weight {extra[0]!r}; do the weights belong to these options?", path)
    module.load_state_dict(ours, assign=True)


def export_weights(
    module: nn.Module, options: Options, path: str | PathLike[str], dtype: torch.dtype = torch.float32
) -> None:
    """Writes the official layout (name ends in .hdf5 or .h5) or safetensors, atomically; float16 halves the size.

    Raises:
        UserError: an unknown file name ending, a folder that is not writable, or weights that overflow `dtype`.
    """
    path = Path(path)
    if path.suffix not in (".hdf5", ".h5", ".safetensors"):
        raise UserError("the name of a weights file must end in .hdf5, .h5 or .safetensors", path)
    ours = {name: tensor.detach().cpu().to(dtype).contiguous() for name, tensor in module.state_dict().items()}
    if broken := [name for name, tensor in ours.items() if not torch.isfinite(tensor).all()]:
        raise UserError(f"{broken[0]!r} has values that are not finite in {dtype}; nothing was written", path)
    try:
        if path.suffix == ".safetensors":
            with replacement(path) as partial:
                save_file(ours, partial, {CHECKSUM: _digest(ours)})
        else:
            with replacing(path, "wb") as file:
                file.write(_hdf5_image(options, ours))
    except (OSError, SafetensorError) as error:
        raise UserError(f"the weights cannot be written: {error}", path) from None


def stored_dtype(path: str | PathLike[str]) -> torch.dtype:
    """float16 if all numbers in a file of weights are stored so, else float32; the file has been loaded before."""
    if h5py.is_hdf5(path):
        with h5py.File(path, "r") as file:
            half = all(file[name].dtype == np.float16 for name in _datasets(file))  # type: ignore[union-attr]
    else:
        half = all(tensor.dtype == torch.float16 for tensor in load_file(path).values())
    return torch.float16 if half else torch.float32


def _hdf5_image(options: Options, ours: dict[str, Tensor]) -> bytes:
    """The bytes of an HDF5 file, made in memory: HDF5 ends the process where a disk is full."""
    with h5py.File("weights.hdf5", "w", driver="core", backing_store=False) as file:
        for entry in official_layout(options):
            file[entry.name] = entry.to_official(ours).contiguous().numpy()
        file.flush()
        return file.id.get_file_image()


def _read_hdf5(options: Options, path: Path) -> dict[str, Tensor]:
    ours: dict[str, Tensor] = {}
    try:
        with h5py.File(path, "r") as file:
            names, layout = _datasets(file), list(official_layout(options))
            if extra := sorted(names - {entry.name for entry in layout}):
                raise UserError(f"unknown dataset {extra[0]!r}; do the weights belong to these options?", path)
            for entry in layout:
                if entry.name not in names:
                    raise UserError(f"no dataset {entry.name!r}; do the weights belong to these options?", path)
                ours.update(entry.to_ours(_numbers(file, entry, path)))
    except UserError:
        raise
    except Exception as error:  # h5py has no exception of its own for damaged files
        raise UserError(f"damaged HDF5 ({error}); download the weights again", path) from None
    return {name: tensor.contiguous() for name, tensor in ours.items()}


def _datasets(file: h5py.File) -> set[str]:
    """Names of all datasets in the file itself; soft and external links are not followed."""
    names: set[str] = set()

    def visit(name: str, item: h5py.HLObject) -> None:
        if isinstance(item, h5py.Dataset):
            names.add(name)

    file.visititems(visit)
    return names


def _numbers(file: h5py.File, entry: Entry, path: Path) -> Tensor:
    dataset = file[entry.name]
    assert isinstance(dataset, h5py.Dataset)
    if dataset.is_virtual or dataset.external or dataset.dtype.kind != "f":
        raise UserError(f"dataset {entry.name!r} is not made of floating-point numbers in this file", path)
    if dataset.shape != entry.shape:
        raise UserError(
            f"dataset {entry.name!r} has shape {dataset.shape}, but the options ask for {entry.shape}; "
            "do options and weights belong together?",
            path,
        )
    with np.errstate(over="ignore"):  # overflow to infinity is reported by the caller
        return torch.from_numpy(dataset[()].astype(np.float32))


def _read_safetensors(options: Options, path: Path) -> dict[str, Tensor]:
    try:
        tensors = load_file(path)
        with safe_open(path, "pt") as file:
            recorded = (file.metadata() or {}).get(CHECKSUM)
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        message = f"neither official HDF5 nor safetensors ({error}): is it the file of the weights, and whole?"
        raise UserError(message, path) from None
    if recorded is not None and recorded != _digest(tensors):
        raise UserError(
            "damaged or changed: the weights do not match their checksum; restore or export them again", path
        )
    if wrong := [name for name, tensor in tensors.items() if not tensor.is_floating_point()]:
        raise UserError(f"{wrong[0]!r} is not made of floating-point numbers", path)
    return {
        name: tensor.to(torch.float32, copy=True) for name, tensor in tensors.items()
    }  # copied: the file may change


def _digest(tensors: Mapping[str, Tensor]) -> str:
    """The sha256 of names, types, shapes and numbers; safetensors has no checksum of its own."""
    digest = hashlib.sha256()
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        digest.update(tensor.contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _with_mask_row(x: Tensor) -> Tensor:
    return torch.cat([torch.zeros(1, x.shape[1]), x])  # id 0: no token


def _same(theirs: str, ours: str, size: int) -> Entry:
    return Entry(theirs, (size,), lambda x: {ours: x}, lambda all_: all_[ours])


def _transposed(theirs: str, ours: str, rows: int, columns: int) -> Entry:
    return Entry(theirs, (rows, columns), lambda x: {ours: x.t()}, lambda all_: all_[ours].t())


def _convolution(theirs: str, ours: str, width: int, char_dim: int, number: int) -> Entry:
    shape = (1, width, char_dim, number)  # TensorFlow's (height, width, in, out); ours (out, in, width)
    return Entry(
        theirs, shape, lambda x: {ours: x[0].permute(2, 1, 0)}, lambda all_: all_[ours].permute(2, 1, 0).unsqueeze(0)
    )


def _gates(theirs: str, ours: str, input_size: int, projection: int, cells: int) -> Entry:
    """TensorFlow multiplies [input ; previous output] by one matrix."""
    return Entry(
        theirs,
        (input_size + projection, 4 * cells),
        lambda x: {f"{ours}.input": x[:input_size].t(), f"{ours}.recurrent": x[input_size:].t()},
        lambda all_: torch.cat([all_[f"{ours}.input"], all_[f"{ours}.recurrent"]], dim=1).t(),
    )
