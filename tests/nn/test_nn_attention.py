"""Attention against loops over the words that are there."""

from __future__ import annotations

import math

import pytest
import torch

from elmo_bench.nn.attention import TriLinear, masked_softmax, soft_align

LENGTHS, OTHERS, D = [4, 1, 3], [2, 5, 3], 6


def mask_of(lengths: list[int]) -> torch.Tensor:
    return torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)


@pytest.fixture
def pair():
    torch.manual_seed(1)
    x, y = (torch.randn(3, max(lengths), D, dtype=torch.float64) for lengths in (LENGTHS, OTHERS))
    return x, y, mask_of(LENGTHS), mask_of(OTHERS)


def softmax(values: list[float]) -> list[float]:
    powers = [math.exp(value) for value in values]
    return [power / sum(powers) for power in powers]


def test_scores_of_any_size_and_an_empty_row_give_finite_weights_and_gradients():
    scores = torch.tensor([[-3e38, 3e38, 3e38], [1e30, -1e30, 0.0], [1.0, 2.0, 3.0]], requires_grad=True)
    mask = torch.tensor([[True, False, False], [True, True, False], [False, False, False]])
    weights = masked_softmax(scores, mask)
    assert weights.tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 0]]
    (weights * torch.arange(3.0)).sum().backward()
    assert scores.grad is not None
    assert torch.isfinite(scores.grad).all()


def test_soft_alignment_is_a_weighted_mean_over_the_other_sequence(pair):
    x, y, x_mask, y_mask = pair
    of_y, of_x = soft_align(x @ y.mT, x, y, x_mask, y_mask)
    for b, (n, m) in enumerate(zip(LENGTHS, OTHERS, strict=True)):
        for s in range(n):
            weights = softmax([float(x[b, s] @ y[b, t]) for t in range(m)])
            expected = sum(weight * y[b, t] for t, weight in enumerate(weights))
            torch.testing.assert_close(of_y[b, s], expected)
        for t in range(m):
            weights = softmax([float(x[b, s] @ y[b, t]) for s in range(n)])
            expected = sum(weight * x[b, s] for s, weight in enumerate(weights))
            torch.testing.assert_close(of_x[b, t], expected)


def test_tri_linear_scores_are_a_linear_map_of_both_words_and_their_product(pair):
    x, y, *_ = pair
    similarity = TriLinear(D).double()
    torch.nn.init.constant_(similarity.b, 0.3)
    scores = similarity(x, y)
    weight = torch.cat([similarity.u, similarity.v, similarity.w])
    for b in range(3):
        for s in range(x.shape[1]):
            for t in range(y.shape[1]):
                expected = weight @ torch.cat([x[b, s], y[b, t], x[b, s] * y[b, t]]) + 0.3
                torch.testing.assert_close(scores[b, s, t], expected)
    scores.sum().backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in similarity.parameters())
