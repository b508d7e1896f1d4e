"""The biGRU's loop over both directions against torch's own GRU, one direction and one sentence at a time."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from elmo_bench.nn import gru
from elmo_bench.nn.directions import Directions
from elmo_bench.nn.gru import BiGRU

LENGTHS = (7, 1, 5, 7)


def plain(layer: BiGRU, x: Tensor, mask: Tensor) -> Tensor:
    """Every sentence on its own, by torch's GRUs."""
    rows = []
    for sentence, length in zip(x, mask.sum(1).tolist(), strict=True):
        words = sentence[None, :length]
        ahead, back = layer.forward_gru(words)[0], layer.backward_gru(words.flip(1))[0].flip(1)
        rows.append(nn.functional.pad(torch.cat([ahead, back], dim=2)[0], (0, 0, 0, mask.shape[1] - length)))
    return torch.stack(rows)


def outcome(way, layer: BiGRU, x: Tensor, mask: Tensor) -> list[Tensor]:
    """The output, and the gradients of the input and the weights."""
    layer.zero_grad()
    x = x.clone().requires_grad_()
    output = way(x, mask)
    (output * torch.linspace(-1, 1, output.numel(), dtype=x.dtype).view_as(output)).sum().backward()
    return [output.detach(), x.grad, *(p.grad.clone() for p in layer.parameters())]  # type: ignore


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 1e-5)])
@pytest.mark.parametrize("compiled", [True, False])
def test_output_and_gradients_are_those_of_torch(monkeypatch, dtype, tolerance, compiled):
    if not compiled:
        monkeypatch.setattr(gru, "loopable", lambda _: None)
    torch.manual_seed(0)
    layer = BiGRU(5, 6).to(dtype)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    x = torch.randn(*mask.shape, 5, dtype=dtype)
    expected = outcome(lambda x, mask: plain(layer, x, mask), layer, x, mask)
    for found, there in zip(outcome(layer, layer, x, mask), expected, strict=True):
        assert (found - there).norm() <= tolerance * there.norm()


def test_the_way_of_other_devices_gives_the_same(monkeypatch):
    torch.manual_seed(1)
    layer, x = BiGRU(3, 4), torch.randn(4, 7, 3)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    ours = layer(x, mask)
    monkeypatch.setattr(gru, "loopable", lambda _: None)
    loop = layer(x, mask)
    monkeypatch.setattr(gru, "looped", lambda _: False)
    torch.testing.assert_close(loop, ours, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(layer(x, mask), ours, rtol=1e-5, atol=1e-6)


def test_the_loop_of_torchs_operations_is_the_same_under_autocast(monkeypatch):
    monkeypatch.setattr(gru, "loopable", lambda _: None)
    layer, x, mask = BiGRU(3, 4), torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.bool)
    with torch.autocast("cpu", torch.bfloat16):
        found = layer(x, mask)
        assert layer(x.bfloat16(), mask).dtype == torch.float32
    assert torch.equal(found, layer(x, mask))


def test_steps_and_sentences_are_inverse_orders():
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]
    x = torch.arange(mask.numel() * 6.0).view(*mask.shape, 6)
    directions = Directions.of(mask)
    steps = directions.by_step(x)  # (T, 2, B, 3)
    assert torch.equal(steps[2, 0, 0], x[0, 2, :3])
    assert torch.equal(steps[0, 1, 2], x[2, 4, 3:])  # the backward direction begins at the last of five words
    assert torch.equal(directions.by_sentence(steps), x)
