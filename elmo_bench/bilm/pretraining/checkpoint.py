"""Checkpoints that are written atomically and verified by a checksum when they are read."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any

import torch

from elmo_bench.system.errors import UserError
from elmo_bench.system.files import replacing

MARK = b"elmo_bench checkpoint 1 "  # then the sha256 of the rest in hexadecimal, then a newline
HEADER = len(MARK) + 64 + 1


def save(state: dict[str, Any], path: Path) -> None:
    """Writes tensors and plain values; a crash leaves the old file or the new one. The caller must hold a lock."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getbuffer()
    with replacing(path, "wb", locked=True) as file:
        file.write(MARK + hashlib.sha256(content).hexdigest().encode() + b"\n")
        file.write(content)
    sync(path.parent)


def load(path: Path) -> dict[str, Any]:
    """What `save` wrote, on the CPU.

    Raises:
        UserError: the file is damaged or not such a checkpoint; its content is not used then.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror})", path) from None
    header, payload = content[:HEADER], memoryview(content)[HEADER:]
    if not header.startswith(MARK) or header[len(MARK) : -1] != hashlib.sha256(payload).hexdigest().encode():
        raise UserError("the checkpoint is damaged; force=true trains from the start", path)
    return torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)


def sync(folder: Path) -> None:
    """Makes a rename in a folder durable, if the system supports it."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # folders cannot be opened on this system
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
