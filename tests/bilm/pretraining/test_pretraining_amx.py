"""The AMX functions of pretraining against torch; they are skipped where the processor has none."""

from __future__ import annotations

import pytest
import torch

from elmo_bench.bilm.lstm import ProjectedLSTM, State
from elmo_bench.bilm.pretraining import amx, compiled, recurrence
from elmo_bench.bilm.pretraining.pointwise import EAGER, Pointwise
from tests.conftest import altered

HALF = torch.bfloat16
CPU = torch.device("cpu")


@pytest.fixture
def functions() -> amx.Amx:
    found = compiled.amx()
    if found is None:
        pytest.skip("no compiler or no AMX")
    return found


def layer(pointwise: Pointwise, dtype: torch.dtype) -> list[torch.Tensor]:
    """Outputs, last states and gradients of a layer, in float32; the cells reach their clip, the outputs do not."""
    torch.manual_seed(0)
    layers = [ProjectedLSTM(32, 96, 64, 1.0, 50.0) for _ in range(2)]
    x = torch.randn(2, 3 * 64, 32).to(dtype).requires_grad_()
    states = [State(torch.randn(64, 64) / 10, torch.randn(64, 96) / 2) for _ in range(2)]
    output, after = recurrence.run(layers, x, states, pointwise)
    direction = torch.randn(output.shape).to(dtype)
    gradients = torch.autograd.grad(output, [x, *(p for each in layers for p in each.parameters())], direction)
    return [each.float() for each in (output, *after[0], *after[1], *gradients)]


def test_a_layer_is_as_near_to_float32_as_torch_is_in_bfloat16(functions):
    exact = layer(EAGER, torch.float32)
    ours, torchs = layer(Pointwise(amx=functions), HALF), layer(EAGER, HALF)
    for found, other, expected in zip(ours, torchs, exact, strict=True):
        assert (found - expected).norm() <= 1.2 * (other - expected).norm() + 1e-6


def test_a_product_of_columns_sums_in_float32(functions):
    torch.manual_seed(0)
    x, y, out = torch.randn(608, 96).to(HALF), torch.randn(608, 64).to(HALF), torch.empty(96, 64)
    functions.columns_product(x, y, out)
    torch.testing.assert_close(out, x.float().t() @ y.float(), rtol=1e-4, atol=1e-4)


def test_threads_do_not_change_the_result(functions):
    threads, found = torch.get_num_threads(), []
    try:
        for number in (1, 2):
            torch.set_num_threads(number)
            found.append(layer(Pointwise(amx=functions), HALF)[:5])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(*pair) for pair in zip(*found, strict=True))


def test_a_row_that_is_not_a_number_stays_one(functions):
    h, weight = torch.randn(32, 32).to(HALF), torch.randn(32, 32).to(HALF)
    h[3, 5] = float("nan")
    none = torch.empty(0, dtype=torch.int64)
    normaliser, d_h, *_ = functions.softmax(h, weight, torch.zeros(32), torch.zeros(32), (none, none))
    assert normaliser.isnan().nonzero().flatten().tolist() == [3]
    assert d_h[3].isnan().all()
    assert d_h[4].isfinite().all()


def test_float32_and_turned_off_functions_use_torch(monkeypatch):
    assert compiled.compiled(torch.float32, CPU).amx is None
    monkeypatch.setenv("ELMO_BENCH_KERNELS", "0")
    assert compiled.amx.__wrapped__() is None


def test_functions_that_compute_something_else_are_not_used(functions, tmp_path, monkeypatch):
    right, wrong = "carried.data + at, d_c * s.f", "carried.data + at, d_c * s.o"
    monkeypatch.setattr(compiled, "SOURCE", altered(amx.SOURCE, right, wrong, tmp_path))
    assert compiled.amx.__wrapped__() is None
