"""The compiled functions, where a compiler can build them and they compute what torch computes.

`ELMO_BENCH_KERNELS=0` turns them off.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain

import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.bilm.kernels.encoder import CompiledEncoder, PlainEncoder, TokenWeights
from elmo_bench.bilm.kernels.library import Kernels, Linear, built
from elmo_bench.bilm.kernels.lstm import CompiledDirections, Directions, FrozenLSTM, LayerWeights, State
from elmo_bench.nn.packing import Packing

NEAR, NEAR_HALF = 1e-5, 0.02  # largest difference from torch that the check allows, in float32 and in bfloat16


@cache
def kernels(half: bool = False) -> Kernels | None:
    """The compiled functions; None without a compiler, where they are turned off, or if they compute other results.

    Args:
        half: those that multiply in bfloat16; None too where the processor or the compiler has no instructions for it.
    """
    if os.environ.get("ELMO_BENCH_KERNELS") == "0":
        return None
    try:
        found = Kernels(built(), half)
    except (OSError, AttributeError, subprocess.SubprocessError):
        return None
    near = NEAR_HALF if half else NEAR
    return found if all(difference < near for difference in differences(found)) else None


def differences(kernels: Kernels) -> Iterator[float]:
    """The largest difference of each function from torch's results, on small random input.

    Numbers of filters, cells and outputs do not fill whole vectors.
    """
    with torch.random.fork_rng([]), torch.no_grad():
        torch.manual_seed(0)
        for activation in (F.relu, torch.tanh):
            weights = _token_weights(activation)
            ids, used = torch.randint(1, 262, (4, 50)), torch.tensor([3, 6, 13, 50])
            ids[torch.arange(50) >= used[:, None]] = 261
            encoders = CompiledEncoder(weights, kernels), PlainEncoder(weights)
            yield _apart(*(way(ids.numpy(), used.numpy()) for way in encoders))
        stacks = [[_layer_weights() for _ in range(2)] for _ in range(2)]
        token, packing = torch.randn(23, 24), Packing([4, 2, 2, 4, 3, 2, 2, 2, 2])
        starts = [[State(torch.randn(9, 24), torch.randn(9, 40)) for _ in layers] for layers in stacks]
        plain = Directions([map(FrozenLSTM, layers) for layers in stacks], True)
        ways = CompiledDirections(stacks, True, kernels), plain
        (layers, ends), (there, there_ends) = (way(token, packing, starts) for way in ways)
        yield _apart(layers, there)
        for states, others in zip(chain(*ends), chain(*there_ends), strict=True):
            yield from map(_apart, states, others)


def _token_weights(activation: Callable[[Tensor], Tensor]) -> TokenWeights:
    filters = [(torch.randn(number, 8, width) / 20, torch.randn(number) / 20) for width, number in SHAPES]
    features = sum(number for _, number in SHAPES)
    highway = _linear(features, features), _linear(features, features)
    return TokenWeights(torch.rand(262, 8) * 2 - 1, filters, activation, [highway], _linear(24, features))


SHAPES = ((1, 8), (2, 70), (7, 20))  # width and number of filters


def _linear(outputs: int, inputs: int) -> Linear:
    return torch.randn(outputs, inputs) / inputs**0.5, torch.randn(outputs) / 10


def _layer_weights() -> LayerWeights:
    (inputs, bias), (recurrent, _), (projection, _) = _linear(160, 24), _linear(160, 24), _linear(24, 40)
    return LayerWeights(inputs, recurrent, 10 * bias, projection, (0.5, 0.2))


def _apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())
