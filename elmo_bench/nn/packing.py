"""The order of a batch's tokens: sentence by sentence outside the LSTMs, step by step inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

BLOCK = 1024  # packed rows whose input product is kept at once on a CPU; more would not fit into the cache
DEVICE_BLOCK = 16384  # elsewhere; fewer would be too many small products
T = TypeVar("T")
END = object()


class Packing:
    """Index arithmetic of one batch.

    Args:
        lengths: the lengths of the sentences, marks included.

    Attributes:
        rows: (B,) sentences in packed order, longest first.
        batch_sizes: number of sentences that reach each step.
        sentences: (N,) the sentence of each packed token, as its position in `rows`.
        orders: for each direction, the token at each packed position, and the inverse. The backward direction reads
            its sentences from their ends, so that both are left-aligned.
        inside: (N,) positions of the tokens that are not marks, sentence by sentence.
    """

    def __init__(self, lengths: Sequence[int], device: torch.device | None = None):
        all_lengths = np.asarray(lengths, dtype=np.int64)
        rows = np.argsort(-all_lengths, kind="stable")
        ends = np.cumsum(all_lengths)
        starts = ends - all_lengths
        steps = np.arange(all_lengths.max(initial=0))[:, None]  # (T, 1)
        reached = steps < all_lengths[rows]  # (T, B)
        forward, backward = (starts[rows] + steps)[reached], (ends[rows] - 1 - steps)[reached]
        marks = np.zeros(int(all_lengths.sum()), dtype=bool)
        marks[starts], marks[ends - 1] = True, True

        self.rows = on_device(rows, device)
        self.sentences = on_device(np.nonzero(reached)[1], device)
        self.batch_sizes: list[int] = reached.sum(axis=1).tolist()
        self.orders = [
            (on_device(order, device), on_device(np.argsort(order), device)) for order in (forward, backward)
        ]
        self.inside = on_device(np.flatnonzero(~marks), device)


def padded(flat: Tensor, lengths: Sequence[int]) -> Tensor:
    """(n_layers, N, W), the words of all sentences one after another -> (B, n_layers, T, W), zero-padded."""
    counts = torch.tensor(lengths, dtype=torch.long)
    mask = torch.arange(max(lengths, default=0))[None] < counts[:, None]  # (B, T)
    rows = flat.new_zeros(*mask.shape, flat.shape[0], flat.shape[2])  # (B, T, n_layers, W)
    rows[mask.to(flat.device)] = flat.transpose(0, 1)
    return rows.transpose(1, 2)


def budgeted(lengths: Sequence[int], budget: int, padded: bool = False) -> Iterator[list[int]]:
    """Indices of sentences in batches of at most `budget` tokens (a longer sentence alone), longest first.

    With `padded`, every sentence of a batch counts with the length of its first.
    """
    batch, tokens = [], 0
    for i in sorted(range(len(lengths)), key=lambda i: -lengths[i]):
        size = lengths[batch[0] if padded and batch else i]
        if batch and tokens + size > budget:
            yield batch
            batch, tokens, size = [], 0, lengths[i]
        batch.append(i)
        tokens += size
    if batch:
        yield batch


def blocks(batch_sizes: Sequence[int], device: torch.device) -> Iterator[list[int]]:
    """Groups of consecutive steps with about BLOCK rows in total."""
    most = BLOCK if device.type == "cpu" else DEVICE_BLOCK
    block: list[int] = []
    for n in batch_sizes:
        if block and sum(block) + n > most:
            yield block
            block = []
        block.append(n)
    if block:
        yield block


class Movable(Protocol):
    """Several tensors."""

    def each(self, change: Callable[[Tensor], Tensor]) -> Self: ...


M = TypeVar("M", bound=Movable)


def pinned(batch: M, device: torch.device) -> M:
    """For a GPU, the batch in page-locked memory, so that it copies while it computes; for a CPU, unchanged."""
    if device.type != "cuda":
        return batch
    with torch.cuda.device(device):  # a new thread would otherwise use the first GPU
        return batch.each(Tensor.pin_memory)


def on_device(array: np.ndarray, device: torch.device | str | None) -> Tensor:
    """An array as a tensor on a device; pinned first, so that a copy does not wait for the GPU's computations."""
    tensor = torch.from_numpy(array)
    pinned = device is not None and torch.device(device).type == "cuda"
    return (tensor.pin_memory() if pinned else tensor).to(device, non_blocking=True)


def ahead(things: Iterator[T]) -> Iterator[T]:
    """The same items in the same order; a thread makes the next item in advance. An error is raised in its place."""
    with ThreadPoolExecutor(1, "ahead") as thread:
        coming = thread.submit(next, things, END)
        while (thing := coming.result()) is not END:
            coming = thread.submit(next, things, END)
            yield thing  # type: ignore[misc]
