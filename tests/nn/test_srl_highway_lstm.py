"""The highway LSTM against a plain one, step by step: values, gradients, dropout, order, initial weights."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from elmo_bench.nn import recurrent
from elmo_bench.nn.encoders import GATES, AlternatingHighwayLSTM, HighwayLSTM
from tests.fakes import for_each, masks

LENGTHS = [[3, 7, 1, 7, 4], [1], [5, 5], [1, 1, 1], [2, 9]]


def batch(lengths: list[int], size: int, dtype=torch.float64, extra: int = 0) -> tuple[Tensor, Tensor]:
    mask = masks(*lengths, extra=extra)
    return torch.randn(*mask.shape, size, dtype=dtype), mask


def gradients(output: Tensor, weight: Tensor, inputs: Sequence[Tensor]) -> list[Tensor]:
    return list(torch.autograd.grad((output * weight).sum(), list(inputs)))


def reference(
    model: AlternatingHighwayLSTM, x: Tensor, mask: Tensor, kept: list[Tensor | None] | None = None
) -> Tensor:
    """`model(x, mask)` by padded batches, separate steps and autograd: (B, T, D) -> (B, T, H).

    `kept` gives a dropout mask (B, H) for each layer.
    """
    for number, layer in enumerate(model.layers):
        assert isinstance(layer, HighwayLSTM)
        x = _layer(layer, x, mask, None if kept is None else kept[number], backward=number % 2 == 1)
    return x


def _layer(layer: HighwayLSTM, x: Tensor, mask: Tensor, kept: Tensor | None, backward: bool) -> Tensor:
    hidden = layer.recurrent.shape[1]
    h = c = x.new_zeros(len(x), hidden)  # (B, H)
    outputs = [h] * x.shape[1]
    for t in reversed(range(x.shape[1])) if backward else range(x.shape[1]):
        reached = mask[:, t : t + 1]  # (B, 1)
        read, highway = F.linear(x[:, t], layer.weight).split([GATES * hidden, hidden], dim=1)
        i, f, o, r, j = (read + layer.bias + F.linear(h, layer.recurrent)).chunk(GATES, dim=1)
        cell = torch.sigmoid(i) * torch.tanh(j) + torch.sigmoid(f) * c
        r = torch.sigmoid(r)
        out = r * torch.sigmoid(o) * torch.tanh(cell) + (1 - r) * highway
        out = out if kept is None else out * kept
        h, c = torch.where(reached, out, h), torch.where(reached, cell, c)
        outputs[t] = torch.where(reached, out, 0.0)
    return torch.stack(outputs, dim=1)


@pytest.mark.parametrize("lengths", LENGTHS)
@for_each("n_layers", "1 2 5")
def test_values_and_gradients_are_those_of_the_reference(lengths, n_layers):
    torch.manual_seed(n_layers)
    model = AlternatingHighwayLSTM(6, 5, n_layers, dropout=0.0).double()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    x, mask = batch(lengths, 6, extra=2)
    x.requires_grad_()
    ours, expected = model(x, mask), reference(model, x, mask)
    assert ours.shape == (*mask.shape, 5)
    assert not ours[~mask].any()
    torch.testing.assert_close(ours, expected)
    torch.testing.assert_close(model(torch.where(mask.unsqueeze(2), x, torch.nan), mask), ours)
    weight, inputs = torch.randn_like(ours), [x, *model.parameters()]
    torch.testing.assert_close(gradients(ours, weight, inputs), gradients(expected, weight, inputs))


class Products(TorchDispatchMode):
    """Keeps the types and the number of rows of the operands of matrix products."""

    def __init__(self) -> None:
        super().__init__()
        self.operands: list[tuple[torch.dtype, int]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket in (torch.ops.aten.mm, torch.ops.aten.addmm, torch.ops.aten.addmm_):
            self.operands += [(each.dtype, len(each)) for each in args[-2:]]
        return func(*args, **(kwargs or {}))


def test_under_autocast_the_products_over_all_words_have_16_bits_and_the_cells_32():
    torch.manual_seed(4)
    model = AlternatingHighwayLSTM(40, 30, 3, dropout=0.0)
    x, mask = batch([12, 30, 7, 21], 40, torch.float32)
    expected, parameters = model(x, mask), list(model.parameters())
    with Products() as products:
        with torch.autocast("cpu"):
            ours = model(x, mask)
        found = gradients(ours, expected.detach(), parameters)
    halves = [rows for dtype, rows in products.operands if dtype == torch.bfloat16]
    assert len(halves) == 2 * (3 * 3 - 1)  # of each layer W x, and gradients of W and, but for the first, of x
    assert not any(rows == 70 for dtype, rows in products.operands if dtype != torch.bfloat16)  # of all words
    assert ours.dtype == torch.float32
    assert not torch.equal(ours, expected)
    for one, two in zip(found, gradients(expected, expected.detach(), parameters), strict=True):
        assert one.dtype == torch.float32
        assert (one - two).norm() < 0.02 * two.norm()


def test_one_dropout_mask_for_all_steps_of_a_layer_and_none_at_test(monkeypatch):
    torch.manual_seed(5)
    model = AlternatingHighwayLSTM(6, 5, 3, dropout=0.4).double()
    x, mask = batch([4, 6, 2], 6)
    drawn = []
    draw = model._kept

    def keep(x: Tensor, n_sentences: int) -> Tensor:
        kept = draw(x, n_sentences)
        assert kept is not None
        drawn.append(kept)
        return kept

    monkeypatch.setattr(model, "_kept", keep)
    ours = model.train()(x, mask)
    assert all(((kept == 0) | torch.isclose(kept, torch.tensor(1 / 0.6).double())).all() for kept in drawn)
    unsorted = mask.sum(1).argsort(descending=True, stable=True).argsort()
    expected = reference(model, x, mask, [kept[unsorted] for kept in drawn])
    torch.testing.assert_close(ours, expected)
    assert not torch.equal(model(x, mask), ours)
    monkeypatch.undo()
    torch.testing.assert_close(model.eval()(x, mask), reference(model, x, mask))


def test_a_compiled_step_is_the_step(monkeypatch):
    """The one function that a GPU takes compiled, whatever the number of sentences.

    By Dynamo alone: torch's own backend takes long, and on a GPU the step of SRL is compared with the CPU's.
    """
    torch.manual_seed(6)
    model = AlternatingHighwayLSTM(40, 30, 2, dropout=0.1)
    x, mask = batch([4, 9, 2, 7], 40, torch.float32)
    found = []
    monkeypatch.setattr(recurrent, "kernels", lambda half: None)
    for change in (lambda step: step, lambda step: torch.compile(step, dynamic=True, backend="eager")):
        monkeypatch.setattr(recurrent, "compiled", lambda function, device, change=change: change(function))
        torch.manual_seed(7)
        out = model(x, mask)
        found.append((out, *torch.autograd.grad(out.sum(), list(model.parameters()))))
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-5)


def test_lengths_and_places_say_what_the_mask_says():
    torch.manual_seed(8)
    model = AlternatingHighwayLSTM(6, 5, 3, dropout=0.0)
    x, mask = batch([4, 1, 6], 6, torch.float32)
    known = model(x, mask, [4, 1, 6], mask.flatten().nonzero().squeeze(1))
    assert torch.equal(known, model(x, mask))


def test_initial_weights():
    layer = HighwayLSTM(20, 7)
    for matrix in (*layer.recurrent.detach().chunk(GATES), *layer.weight.detach().chunk(GATES + 1)):
        torch.testing.assert_close(matrix @ matrix.t(), torch.eye(7), atol=1e-5, rtol=0)
    assert layer.bias.tolist() == [0.0] * 7 + [1.0] * 7 + [0.0] * 21
    shapes = [tuple(inner.get_parameter("weight").shape) for inner in AlternatingHighwayLSTM(20, 7, 3).layers]
    assert shapes == [(42, 20), (42, 7), (42, 7)]
