"""The recurrent stack of SRL compared with a reference implementation and with `torch.nn.LSTM` of the same size."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from elmo_bench.nn.highway_lstm import AlternatingHighwayLSTM
from elmo_bench.speed import reference_highway

CLOSE = 1e-3  # largest difference between two orders of summation, relative to the largest gradient


class Size(NamedTuple):
    """The paper's sizes; the input is 1024 of ELMo and 100 of the predicate's flag."""

    input: int = 1124
    hidden: int = 300
    layers: int = 8


def speed(lengths: Sequence[Sequence[int]], rounds: int, size: Size | None = None) -> dict[str, Any]:
    """Speed of forward and backward pass over batches of sentences of these lengths; medians over the rounds.

    `nn.LSTM` has four gates per layer, no highway and one direction, so it needs 8/11 of the operations per token, but
    it computes padding. "reference" is the unoptimised implementation, which also computes padding, step by step.
    """
    size = size or Size()
    torch.manual_seed(0)
    ours = AlternatingHighwayLSTM(size.input, size.hidden, size.layers, dropout=0.0)
    library = nn.LSTM(size.input, size.hidden, size.layers, batch_first=True)
    ways: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
        "reference": lambda x, mask: reference_highway.forward(ours, x, mask),
        "nn.LSTM": lambda x, mask: library(x)[0],
        "ours": ours,
    }
    masks = [torch.arange(max(batch)) < torch.tensor(batch).unsqueeze(1) for batch in lengths]
    inputs = [torch.randn(*mask.shape, size.input, requires_grad=True) for mask in masks]
    difference = _difference(ways["reference"], ours, inputs[0], masks[0])
    took: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            started = time.perf_counter()
            for x, mask in zip(inputs, masks, strict=True):
                way(x, mask).sum().backward()
            if number:  # the first round is a warm-up
                took[name].append(time.perf_counter() - started)
    seconds = {name: median(times) for name, times in took.items()}
    sentences = sum(map(len, lengths))
    return {
        "size": size._asdict(),
        "sentences_a_second": {name: sentences / total for name, total in seconds.items()},
        "times_reference": seconds["reference"] / seconds["ours"],
        "times_library": seconds["nn.LSTM"] / seconds["ours"],
        "largest_difference": difference,
    }


def _difference(reference: Callable, ours: Callable, x: Tensor, mask: Tensor) -> float:
    """The largest difference of the input's gradients, relative to the largest; raises if it exceeds CLOSE."""
    one, two = (torch.autograd.grad(way(x, mask).square().sum(), x)[0] for way in (reference, ours))
    largest = float((one - two).abs().max() / one.abs().max())
    if not largest < CLOSE:
        raise RuntimeError(f"two ways to the same gradients differ by {largest}")
    return largest
