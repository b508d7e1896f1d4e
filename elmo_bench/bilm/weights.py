"""Weights on disk: the official HDF5 layout, read and written with h5py, and our own as safetensors.

Nothing is unpickled, and no link out of the file is followed. Official matrices have the shape (input, output), ours
(output, input) as in torch, so most are transposed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from os import PathLike
from pathlib import Path

import h5py
import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from elmo_bench.bilm.options import Options
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.files import open_bytes, replacement, replacing
from elmo_bench.system.storage.json_text import CHECKSUM

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def official(ours: Mapping[str, Tensor], options: Options) -> dict[str, list[Tensor]]:
    """Every dataset of the official layout, by its name, as views of our parameters.

    Args:
        ours: the parameters of a biLM, by name.
        options: the options of the biLM.

    Returns:
        The parts of each dataset, from top to bottom.
    """
    views = {"char_embed": [ours["encoder.characters.weight"][1:]]}  # our id 0 means no token

    def add(dataset: str, parameter: str, *more: str) -> None:
        views[dataset] = [ours[name].t() for name in (parameter, *more)]  # (in, out); a vector is its own transpose

    for i in range(len(options.char_cnn.filters)):
        weight = ours[f"encoder.convolutions.{i}.weight"]  # (out, in, width); theirs (height, width, in, out)
        views[f"CNN/W_cnn_{i}"] = [weight.permute(2, 1, 0).unsqueeze(0)]
        add(f"CNN/b_cnn_{i}", f"encoder.convolutions.{i}.bias")
    for i in range(options.char_cnn.n_highway):
        for part in ("carry", "transform"):
            add(f"CNN_high_{i}/W_{part}", f"encoder.highways.{i}.{part}.weight")
            add(f"CNN_high_{i}/b_{part}", f"encoder.highways.{i}.{part}.bias")
    if options.char_cnn.n_filters != options.lstm.projection_dim:  # bilm-tf projects only where the widths differ
        add("CNN_proj/W_proj", "encoder.projection.weight")
        add("CNN_proj/b_proj", "encoder.projection.bias")
    for direction in range(2):
        for layer in range(options.lstm.n_layers):
            cell, name = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell", f"directions.{direction}.{layer}"
            add(f"{cell}/W_0", f"{name}.input", f"{name}.recurrent")  # one matrix for [input ; previous output]
            add(f"{cell}/B", f"{name}.bias")
            add(f"{cell}/W_P_0", f"{name}.projection")
    return views


def load_weights(module: nn.Module, options: Options, path: str | PathLike[str]) -> None:
    """Loads the weights of a file, official or ours by its first bytes, into a biLM, which may be on "meta"."""
    path = Path(path)
    with open_bytes(path) as file:
        signature = file.read(len(HDF5_SIGNATURE))
    ours = _read_hdf5(module, options, path) if signature == HDF5_SIGNATURE else _read_safetensors(path)
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
        if len(shape) > 1 and not ours[name].any():
            raise UserError(f"{name!r} is zero everywhere; the file was not written to its end", path)
    if extra := sorted(set(ours) - set(expected)):
        raise UserError(f"unknown weight {extra[0]!r}; do the weights belong to these options?", path)
    module.load_state_dict(ours, assign=True)


def export_weights(
    module: nn.Module, options: Options, path: str | PathLike[str], dtype: torch.dtype = torch.float32
) -> None:
    """Writes the official layout (name ends in .hdf5 or .h5) or safetensors, atomically; float16 halves the size."""
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
            # Made in memory, because HDF5 ends the process if the disk is full.
            with h5py.File("weights.hdf5", "w", driver="core", backing_store=False) as image:
                for name, parts in official(ours, options).items():
                    image[name] = torch.cat(parts).contiguous().numpy()
                image.flush()
                with replacing(path, "wb") as file:
                    file.write(image.id.get_file_image())
    except (OSError, SafetensorError) as error:
        raise UserError(f"the weights cannot be written: {error}", path) from None


def stored_dtype(path: str | PathLike[str]) -> torch.dtype:
    """float16 if a weights file, already loaded, stores all its numbers as float16, else float32."""
    if h5py.is_hdf5(path):
        with h5py.File(path, "r") as file:
            half = all(file[name].dtype == np.float16 for name in _datasets(file))  # type: ignore[union-attr]
    else:
        half = all(tensor.dtype == torch.float16 for tensor in load_file(path).values())
    return torch.float16 if half else torch.float32


def _read_hdf5(module: nn.Module, options: Options, path: Path) -> dict[str, Tensor]:
    """The parameters of a module, from a file in the official layout."""
    wanted, numbers = official(module.state_dict(), options), {}
    try:
        with h5py.File(path, "r") as file:
            names = _datasets(file)
            if extra := sorted(names - wanted.keys()):
                raise UserError(f"unknown dataset {extra[0]!r}; do the weights belong to these options?", path)
            for name, parts in wanted.items():
                if name not in names:
                    raise UserError(f"no dataset {name!r}; do the weights belong to these options?", path)
                numbers[name] = _numbers(file, name, (sum(map(len, parts)), *parts[0].shape[1:]), path)
    except UserError:
        raise
    except Exception as error:  # h5py has no specific exception for damaged files
        raise UserError(f"damaged HDF5 ({error}); download the weights again", path) from None
    ours = {name: torch.zeros(parameter.shape, dtype=torch.float32) for name, parameter in module.state_dict().items()}
    for name, parts in official(ours, options).items():
        for part, read in zip(parts, numbers[name].split([len(part) for part in parts]), strict=True):
            part.copy_(read)
    return ours


def _datasets(file: h5py.File) -> set[str]:
    """Names of all datasets in the file itself; soft and external links are not followed.

    Raises:
        ValueError: groups nested without end, or more groups than any biLM has.
    """
    names, left, groups = set(), limits.NODES, dict[str, h5py.Group]({"": file})
    while groups:
        place, group = groups.popitem()
        left -= len(group)
        if left < 0 or place.count("/") > limits.LEVELS:
            raise ValueError(f"more groups than a biLM has, below {place[:40]}")
        for name in group:
            item = group[name] if isinstance(group.get(name, getlink=True), h5py.HardLink) else None
            if isinstance(item, h5py.Dataset):
                names.add(f"{place}{name}")
            elif isinstance(item, h5py.Group):
                groups[f"{place}{name}/"] = item
    return names


def _numbers(file: h5py.File, name: str, shape: tuple[int, ...], path: Path) -> Tensor:
    dataset = file[name]
    assert isinstance(dataset, h5py.Dataset)
    if dataset.is_virtual or dataset.external or dataset.dtype.kind != "f":
        raise UserError(f"dataset {name!r} does not consist of floating-point numbers", path)
    if dataset.shape != shape:
        raise UserError(
            f"dataset {name!r} has shape {dataset.shape}, but the options ask for {shape}; "
            "do options and weights belong together?",
            path,
        )
    there = dataset.id.get_num_chunks() if dataset.chunks else dataset.id.get_storage_size()
    if there < (len([*dataset.iter_chunks()]) if dataset.chunks else dataset.nbytes):  # HDF5 reads zeros there
        raise UserError(f"dataset {name!r} was not written to its end; export or download the weights again", path)
    with np.errstate(over="ignore"):  # overflow to infinity is reported by the caller
        return torch.from_numpy(dataset[()].astype(np.float32))


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        tensors = load_file(path)
        with safe_open(path, "pt") as file:
            recorded = (file.metadata() or {}).get(CHECKSUM)
    except (SafetensorError, OSError, ValueError, RuntimeError) as error:
        message = f"neither official HDF5 nor safetensors ({error}): is it a weights file, and is it complete?"
        raise UserError(message, path) from None
    if recorded is not None and recorded != _digest(tensors):
        raise UserError(
            "damaged or changed: the weights do not match their checksum; restore or export them again", path
        )
    if wrong := [name for name, tensor in tensors.items() if not tensor.is_floating_point()]:
        raise UserError(f"{wrong[0]!r} does not consist of floating-point numbers", path)
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
