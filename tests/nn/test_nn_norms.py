"""Norms of many tensors: gradients are bounded as torch does it, and a penalty has the gradient of its formula."""

import pytest
import torch
from torch import nn

from elmo_bench.nn.numerics import clip, gradient_norm, squared_norm


@pytest.mark.parametrize("bound", [1.0, 13.0, 50.0])
def test_gradients_are_clipped_bit_for_bit_as_torch_does(bound):
    ours, theirs = ([nn.Parameter(torch.zeros(3)), nn.Parameter(torch.zeros(2, 2))] for _ in range(2))
    for parameters in (ours, theirs):
        parameters[0].grad, parameters[1].grad = torch.tensor([3.0, 4.0, 0.0]), torch.full((2, 2), 6.0)  # norm 13
    clip(ours, gradient_norm(ours), bound)
    nn.utils.clip_grad_norm_(theirs, bound)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=0, atol=0)


def test_a_squared_norm_and_its_gradient():
    weights = torch.randn(3, 4, dtype=torch.float64, requires_grad=True), torch.zeros(2, 2, dtype=torch.float64)
    torch.testing.assert_close(squared_norm(*weights), weights[0].square().sum())
    assert torch.autograd.gradcheck(squared_norm, (weights[0],))
