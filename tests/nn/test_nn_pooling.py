"""Pooling against a loop over the words that are there, and a softmax over them."""

import pytest
import torch

from elmo_bench.nn.attention import SelfAttentivePooling, masked_max, masked_mean, masked_min, masked_softmax

LENGTHS = [4, 1, 3, 6]


@pytest.fixture
def sequences():
    torch.manual_seed(2)
    mask = torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS).unsqueeze(1)
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
