"""Layers of rectified and of maxout units against loops."""

import pytest
import torch

from elmo_bench.nn.feedforward import Maxout, MaxoutLayers, ReluLayers


def test_a_maxout_unit_is_the_greatest_of_its_linear_maps():
    torch.manual_seed(1)
    unit, x = Maxout(6, 3, pool=4), torch.randn(5, 6)
    weight, bias = unit.maps.weight.detach(), unit.maps.bias.detach()
    for b in range(5):
        for i in range(3):
            expected = max(float(weight[i * 4 + j] @ x[b] + bias[i * 4 + j]) for j in range(4))
            assert unit(x)[b, i].item() == pytest.approx(expected, abs=1e-6)
    assert unit(torch.randn(2, 7, 6)).shape == (2, 7, 3)


@pytest.mark.parametrize("kind", [ReluLayers, MaxoutLayers])
def test_layers_have_the_sizes_asked_for_and_drop_in_training_alone(kind):
    torch.manual_seed(3)
    layers, x = kind(8, 5, [7, 6], [0.5, 0.5]), torch.randn(3, 8)
    assert layers(x).shape == (3, 5)
    assert not torch.equal(layers(x), layers(x))
    layers.eval()
    assert torch.equal(layers(x), layers(x))
    layers(x).square().sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in layers.parameters())
    pool = 1 if kind is ReluLayers else 4
    shapes = [tuple(p.shape) for p in layers.parameters() if p.dim() == 2]
    last = 5 if kind is ReluLayers else 20
    assert shapes == [(7 * pool, 8), (6 * pool, 7), (last, 6)]
    with pytest.raises(ValueError, match="zip"):
        kind(8, 5, [7, 6], [0.5])
