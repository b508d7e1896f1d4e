"""Checkpoints of a pretraining, and those of earlier versions of this package."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import torch

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.integrity import load_checkpoint

AGAIN = "force=true trains from the start"
EARLIER = b"elmo_bench checkpoint 1 "  # then the sha256 of the rest in hexadecimal, then a newline
HEADER = len(EARLIER) + 64 + 1


def load(path: Path) -> dict[str, Any]:
    """What `save_checkpoint` wrote, on the CPU.

    Raises:
        UserError: the file is damaged or not such a checkpoint; its content is not used then.
    """
    try:
        with open(path, "rb") as file:
            start = file.read(len(EARLIER))
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); {AGAIN}", path) from None
    return _earlier(path) if start == EARLIER else load_checkpoint(path, AGAIN)


def _earlier(path: Path) -> dict[str, Any]:
    """A checkpoint with a header that holds the sha256 of the rest."""
    content = path.read_bytes()
    payload = memoryview(content)[HEADER:]
    if content[len(EARLIER) : HEADER] != hashlib.sha256(payload).hexdigest().encode() + b"\n":
        raise UserError(f"damaged: it does not match its checksum; {AGAIN}", path)
    return torch.load(io.BytesIO(payload), map_location="cpu", weights_only=True)
