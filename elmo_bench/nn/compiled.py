"""Which compiled functions training uses (`kernels.cpp`).

They are used where a compiler can build them and they compute what torch computes; `ELMO_BENCH_KERNELS=0` turns them
off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmo_bench.nn import coupled_steps, highway_steps
from elmo_bench.nn.chain import exponential_steps
from elmo_bench.nn.kernels import SOURCE, Kernels
from elmo_bench.nn.masked_loops import Layer, masked_loops
from elmo_bench.nn.pairs import PairProduct
from elmo_bench.nn.precision import HALVES, half
from elmo_bench.nn.recurrent import COUPLED, GRU, HIGHWAY, LSTM, NAMES, Cell, Loops, Words, loops
from elmo_bench.nn.reductions import largest, weighted
from elmo_bench.system import compiler

NEAR = 1e-5  # largest difference from torch that the check allows


def usable(x: Tensor) -> Kernels | None:
    """The compiled functions if they can compute with such a tensor; else None."""
    return kernels() if x.device.type == "cpu" and x.dtype == torch.float32 else None


def loopable(x: Tensor) -> Kernels | None:
    """The compiled functions if their time loops can compute with such a tensor; else None.

    Under autocast they also take 16 bits, for the products over all words; cells and results are float32.
    """
    mixed = x.device.type == "cpu" and half(x) is not None and x.dtype in HALVES
    return kernels() if mixed else usable(x)


@cache
def kernels() -> Kernels | None:
    """The compiled functions; None without a compiler, where they are turned off, or if they compute other results."""
    plain = torch.autocast("cpu", enabled=False)
    with torch.inference_mode(False), torch.enable_grad(), torch.random.fork_rng([]), plain:
        return compiler.checked(lambda: Kernels(compiler.built(SOURCE)), differences, NEAR)


def differences(kernels: Kernels) -> Iterator[float]:
    """The largest differences of each function from torch's results, on small random input."""
    yield from (_of_random_numbers(kernels, p) for p in (0.3, 0.5))
    yield from _of_relu(kernels)
    for cell, kind in ((LSTM, nn.LSTM), (GRU, nn.GRU)):
        yield from _of_loops(kernels, cell, kind)
    yield from _of_coupled(kernels)
    yield from (difference for side in (0, 1) for difference in _of_highway(kernels, side))
    yield from _of_pairs(kernels)
    yield from _of_reductions(kernels)
    yield from _of_chain(kernels)


def _of_random_numbers(kernels: Kernels, p: float) -> float:
    """In several rounds of the generator, and in what it gives next."""
    like, values = torch.empty(2, 701), []
    for draw in (lambda x: kernels.bernoulli(x, p, 1.0), lambda x: x.bernoulli_(p)):
        torch.manual_seed(0)
        torch.rand(3)
        values.append(torch.cat([*(draw(row.clone()) for row in like), torch.rand(1)]))
    return _apart(*values)


def _of_relu(kernels: Kernels) -> Iterator[float]:
    """In the results and gradients of ReLU and dropout in one."""
    torch.manual_seed(0)
    x, d, state = torch.randn(70, 9), torch.randn(70, 9), torch.get_rng_state()
    mask, y = kernels.bernoulli(x, 0.7, 2.0), x.clone()
    torch.set_rng_state(state)
    kernels.relu_dropout(y, 0.7, 2.0)
    yield _apart(y, x.relu() * mask)
    yield _apart(kernels.relu_dropout_back(y, d, 2.0), torch.where(x > 0, d * mask, 0))
    outer = d[:, :1] * x[:1]
    yield _apart(kernels.relu_dropout_score_back(y, d[:, :1], x[:1], 2.0), torch.where(x > 0, outer * mask, 0))


def _of_loops(kernels: Kernels, cell: Cell, kind: type[nn.LSTM] | type[nn.GRU]) -> Iterator[float]:
    """In the outputs of a layer and in all gradients; its cells do not fill whole vectors."""
    torch.manual_seed(0)
    layer = kind(5, 21, batch_first=True, bidirectional=True)
    weights = [getattr(layer, f"{name}_l0{side}") for side in ("", "_reverse") for name in NAMES]
    lengths = torch.tensor([4, 3, 3, 1])
    x, mask = torch.randn(4, 4, 5, requires_grad=True), torch.arange(4) < lengths[:, None]
    packed, _ = layer(pack_padded_sequence(x, lengths, batch_first=True))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    found = loops(Loops(cell, kernels, Words.of(mask)), x.flatten(0, 1), weights).view_as(expected)
    direction = torch.randn_like(expected)
    yield _apart(found, expected)
    gradients = (torch.autograd.grad(y, [x, *weights], direction, allow_unused=True) for y in (found, expected))
    yield from map(_apart, *gradients)


def _of_coupled(kernels: Kernels) -> Iterator[float]:
    """In the outputs and all gradients of both directions, with a mask."""
    torch.manual_seed(0)
    x, weight, bias, recurrent, initial = _drawn((11, 5), (126, 5), (126,), (2, 21, 63), (2, 2, 21))
    mask, lengths = torch.rand(2, 4, 21), [3, 1, 4, 3]
    layer = Layer(Loops(COUPLED, kernels, Words.unpadded(lengths)), (0, 1))
    found = masked_loops(layer, x, weight, bias, recurrent.mT, initial, mask)
    order = coupled_steps.Order.of(lengths, x.device)
    expected = coupled_steps.Steps.apply(F.linear(x, weight, bias), recurrent, initial[:, :, None], mask, order)
    yield from _of_layer(found, expected, [x, weight, bias, recurrent, initial])


def _of_highway(kernels: Kernels, side: int) -> Iterator[float]:
    """In the outputs and all gradients of a direction, with a mask."""
    torch.manual_seed(0)
    given = _drawn((11, 5), (126, 5), (105,), (105, 21))
    x, weight, bias, recurrent = given
    mask, words = torch.rand(4, 21), Words.unpadded([3, 1, 4, 3])
    layer, rows = Layer(Loops(HIGHWAY, kernels, words), (side,)), words.rows[side]
    found = masked_loops(layer, x, weight, F.pad(bias, (0, 21)), recurrent[None], mask=mask[None])
    expected = highway_steps.Steps.apply(x[rows], weight, bias, recurrent, mask, words.sizes.tolist())
    yield from _of_layer(found[rows], expected, given)


def _drawn(*sizes: tuple[int, ...]) -> list[Tensor]:
    """A layer's input and weights, small enough for gates that are open."""
    return [(torch.randn(size) / 5).requires_grad_() for size in sizes]


def _of_layer(found: Tensor, expected: Any, given: Sequence[Tensor]) -> Iterator[float]:
    direction = torch.randn_like(found)
    yield _apart(found, expected)
    yield from map(_apart, *(torch.autograd.grad(y, given, direction) for y in (found, expected)))


def _of_pairs(kernels: Kernels) -> Iterator[float]:
    """In the products of pairs and in all gradients."""
    torch.manual_seed(0)
    given = [torch.randn(size, requires_grad=True) for size in ((9, 21), (9, 21), (9, 70), (21, 70))]
    found, expected = (PairProduct.apply(*given, 5, 2, 9, way) for way in (kernels, None))
    yield _apart(found, expected) / 10  # sums of 70 products
    direction = torch.randn_like(expected) / 10
    yield from map(_apart, *(torch.autograd.grad(y, given, direction) for y in (found, expected)))


def _of_reductions(kernels: Kernels) -> Iterator[float]:
    """In the largest of parts and the weighted sums of words, and in their gradients; some of the largest are equal."""
    torch.manual_seed(0)
    x, lengths = torch.randn(9, 21).round().requires_grad_(), torch.tensor([3, 1, 5])
    yield from _of_layer(largest(x, lengths, kernels), largest(x, lengths), [x])
    own, words = torch.randn(6, 21, requires_grad=True), torch.tensor([[0, 1, 2], [5, 5, 5], [1, 2, 3]])
    weights = torch.tensor([[0.5, 0.2, 0.3], [1.0, 0.0, 0.0], [0.4, 0.6, 0.0]], requires_grad=True)
    found, expected = (weighted(own, words, weights, way) for way in (kernels, None))
    yield from _of_layer(found, expected, [own, weights])


def _of_chain(kernels: Kernels) -> Iterator[float]:
    """In the sum over all sequences of tags, and in all gradients."""
    torch.manual_seed(0)
    tags, mask = 7, torch.arange(5) < torch.tensor([5, 1, 3])[:, None]
    emissions, start, pairs, end = given = [
        torch.randn(*size, tags, dtype=torch.float64, requires_grad=True) for size in ((3, 5), (), (tags,), ())
    ]
    found, expected = (exponential_steps(emissions, start, pairs, end, mask, way) for way in (kernels, None))
    yield from _of_layer(found, expected, given)


def _apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).detach().abs().max())
