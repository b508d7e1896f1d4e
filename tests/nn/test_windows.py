"""The largest windows of words by the compiled functions, against torch's convolutions and maxima."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from elmo_bench.nn import char_cnn
from elmo_bench.nn.char_cnn import largest
from elmo_bench.nn.kernels import library
from tests.conftest import needs_compiler
from tests.fakes import for_each, with_gradients

WIDTHS = [(1, 3), (2, 70), (5, 20)]  # with numbers of filters


def outcome(convolutions: nn.ModuleList, x: Tensor, count: Tensor) -> list[Tensor]:
    """Largest values of windows from the second on, and all gradients."""
    leaf = x.clone().requires_grad_()
    found = largest(leaf, convolutions, [(1, count)] * len(convolutions))
    return with_gradients(found, [leaf, *convolutions.parameters()])


def plain(convolutions: Any, x: Tensor, count: Tensor) -> list[Tensor]:
    """The same, word after word."""
    leaf = x.clone().requires_grad_()
    rows = []
    for word, number in zip(leaf, count.tolist(), strict=True):
        parts = [each(word[None, 1 : number + each.kernel_size[0]].mT)[0].amax(1) for each in convolutions]
        rows.append(torch.cat(parts))
    return with_gradients(torch.stack(rows), [leaf, *convolutions.parameters()])


def given(size: int) -> tuple[nn.ModuleList, Tensor, Tensor]:
    torch.manual_seed(size)
    convolutions = nn.ModuleList(nn.Conv1d(size, number, width) for width, number in WIDTHS)
    return convolutions, torch.randn(7, 14, size), torch.tensor([1, 9, 2, 3, 7, 1, 8])


@pytest.mark.parametrize("compiled", [pytest.param(True, marks=needs_compiler), False])
@for_each("size", "1 4 16 25")
def test_values_and_gradients_are_those_of_each_word_alone(size, compiled, monkeypatch):
    assert not compiled or char_cnn.kernels() is not None
    if not compiled:
        monkeypatch.setattr(char_cnn, "kernels", lambda half: None)
    torch.testing.assert_close(outcome(*given(size)), plain(*given(size)))


@needs_compiler
def test_in_bfloat16_the_values_are_close():
    if char_cnn.kernels(half=True) is None:
        pytest.skip("no instructions for bfloat16, or no compiler that knows them")
    exact, *_ = outcome(*given(16))
    with torch.autocast("cpu"):
        close, *_ = outcome(*given(16))
    assert close.dtype == torch.bfloat16
    assert 1e-5 < (exact - close).norm() / exact.norm() < 0.01


@needs_compiler
def test_any_number_of_threads_computes_the_same_numbers(monkeypatch, set_threads):
    monkeypatch.setattr(library, "cores", lambda: 8)
    found = []
    for number in (1, 2, 3, 8):
        set_threads(number)
        found.append(outcome(*given(16)))
    torch.testing.assert_close(found, 4 * found[:1], rtol=0, atol=0)


@needs_compiler
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_is_not_finite_is_not_hidden_by_larger_ones(value):
    convolutions, x, count = given(4)
    x[3, 2, 1] = value
    assert outcome(convolutions, x, count)[0].isnan().any()


@needs_compiler
def test_the_check_draws_no_random_numbers_of_a_training():
    state = torch.get_rng_state()
    char_cnn.kernels.cache_clear()
    assert char_cnn.kernels() is not None
    assert torch.equal(torch.get_rng_state(), state)


@needs_compiler
def test_functions_that_compute_something_else_are_not_used(monkeypatch):
    found = library.load()
    assert found is not None
    call = found.call
    monkeypatch.setattr(found, "call", lambda name, threads, x, w, *more: call(name, threads, x, w * 1.01, *more))
    monkeypatch.setattr(library, "load", lambda half: found)
    char_cnn.kernels.cache_clear()
    assert char_cnn.kernels() is None
    char_cnn.kernels.cache_clear()
