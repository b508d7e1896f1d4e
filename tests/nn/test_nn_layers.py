"""Pooling, feed-forward layers and norms against loops, torch and numerical gradients."""

import pytest
import torch
from torch import nn

from elmo_bench.nn.attention import SelfAttentivePooling, masked_max, masked_mean, masked_min, masked_softmax
from elmo_bench.nn.feedforward import Maxout, MaxoutLayers, ReluLayers
from elmo_bench.nn.numerics import clip, gradient_norm, squared_norm
from tests.fakes import for_each, masks

LENGTHS = [4, 1, 3, 6]


@pytest.fixture
def sequences():
    torch.manual_seed(2)
    mask = masks(*LENGTHS)
    return torch.randn(len(LENGTHS), max(LENGTHS), 5) - 3, mask  # mostly negative: a padded zero would win the maximum


def pools() -> dict:
    torch.manual_seed(3)
    attentive = SelfAttentivePooling(5)
    weight = attentive.score.weight[0]
    return {
        "max": (masked_max, lambda words: words.max(0).values),
        "min": (masked_min, lambda words: words.min(0).values),
        "mean": (masked_mean, lambda words: words.mean(0)),
        "attentive": (attentive, lambda words: torch.softmax(words @ weight, 0) @ words),
    }


@pytest.mark.parametrize("name", pools())
def test_a_pool_sees_the_words_alone(name, sequences):
    x, mask = sequences
    pool, expected = pools()[name]
    for padding in (0.0, 50.0, -50.0):
        pooled = pool(x.masked_fill(~mask.unsqueeze(2), padding), mask)
        assert pooled.shape == (len(LENGTHS), 5)
        for row, length in enumerate(LENGTHS):
            torch.testing.assert_close(pooled[row], expected(x[row, :length]))


@pytest.mark.parametrize("name", pools())
def test_a_sequence_without_words_gives_zeros_and_finite_gradients(name):
    x = torch.randn(2, 3, 5, requires_grad=True)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    pooled = pools()[name][0](x, mask)
    assert (pooled[1] == 0).all()
    pooled.sum().backward()
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
    assert x.grad[0, :2].abs().sum() > 0
    assert (x.grad[~mask] == 0).all()


def test_scores_of_any_size_and_an_empty_row_give_finite_weights_and_gradients():
    scores = torch.tensor([[-3e38, 3e38, 3e38], [1e30, -1e30, 0.0], [1.0, 2.0, 3.0]], requires_grad=True)
    mask = torch.tensor([[True, False, False], [True, True, False], [False, False, False]])
    weights = masked_softmax(scores, mask)
    assert weights.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
    (weights * torch.arange(3.0)).sum().backward()
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()


# Rectified and maxout units.


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


# Norms of many tensors.


@for_each("bound", "1.0 13.0 50.0")
def test_gradients_are_clipped_bit_for_bit_as_torch_does(bound):
    ours, theirs = ([nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(2, 2))] for _ in range(2))
    for parameters in (ours, theirs):
        parameters[0].grad, parameters[1].grad = torch.tensor([3.0, 4.0, 0.0]), torch.full((2, 2), 6.0)  # norm 13
    clip(ours, gradient_norm(ours), bound)
    nn.utils.clip_grad_norm_(theirs, bound)
    torch.testing.assert_close([each.grad for each in ours], [each.grad for each in theirs], rtol=0, atol=0)


def test_a_squared_norm_and_its_gradient():
    weights = torch.randn(3, 4, dtype=torch.float64, requires_grad=True), torch.zeros(2, 2, dtype=torch.float64)
    torch.testing.assert_close(squared_norm(*weights), weights[0].square().sum())
    assert torch.autograd.gradcheck(squared_norm, (weights[0],))
