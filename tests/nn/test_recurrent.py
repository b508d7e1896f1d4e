"""Recurrent layers by the compiled functions against torch's operations, and those against numerical gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor

from elmo_bench.nn import recurrent
from elmo_bench.nn.kernels import library
from elmo_bench.nn.recurrent import COUPLED, GRU, HIGHWAY, PROJECTED, CellKind, recurrence
from tests.conftest import needs_compiler
from tests.fakes import for_each, with_gradients

CELLS = [GRU, HIGHWAY, COUPLED, PROJECTED]
SIZES = [5, 5, 3, 1]  # sentences of each step
each_cell = pytest.mark.parametrize("cell", CELLS, ids="gru highway coupled projected".split())


def given(cell: CellKind, size: int, dtype: torch.dtype) -> tuple[list[Tensor], dict[str, Any]]:
    """Two directions; the projected cell has fewer outputs than cells, and both bounds bite."""
    torch.manual_seed(cell.number)
    width = size - 2 if cell is PROJECTED else size
    shapes = (sum(SIZES), cell.gates * size), (cell.gates * size, width), (SIZES[0], width), (SIZES[0], size)
    leaves = [torch.randn(2, *shape, dtype=dtype).div(2).requires_grad_() for shape in shapes]
    more = {}
    if cell.others:
        more["extra"] = torch.randn(2, sum(SIZES), cell.others * size, dtype=dtype, requires_grad=True)
    if cell in (HIGHWAY, COUPLED):
        more["mask"] = torch.randint(0, 2, (2, SIZES[0], size)).to(dtype) * 2
    if cell is PROJECTED:
        more["projection"] = torch.randn(2, width, size, dtype=dtype, requires_grad=True)
        more["clips"] = 0.5, 0.4
    return leaves, more


def outcome(cell: CellKind, leaves: list[Tensor], more: dict[str, Any]) -> list[Tensor]:
    """Outputs, cells of the projected one, and the gradients of everything."""
    base, weight, h, c = leaves
    out, cells = recurrence(cell, base, weight, SIZES, h, c, **more)
    used = [*leaves, *(x for x in more.values() if isinstance(x, Tensor) and x.requires_grad)]
    out, *found = with_gradients(out, used, allow_unused=True)
    return [out, *([cells] if cell is PROJECTED else []), *(x for x in found if x is not None and x.any())]


@needs_compiler
@each_cell
@for_each("size", "5 16 37")
def test_the_compiled_functions_compute_what_torch_computes(cell, size, monkeypatch):
    leaves, more = given(cell, size, torch.float32)
    assert recurrent.kernels() is not None
    compiled = outcome(cell, leaves, more)
    monkeypatch.setattr(recurrent, "kernels", lambda half: None)
    plain = outcome(cell, leaves, more)
    for one, other in zip(compiled, plain, strict=True):
        assert (one - other).norm() <= 1e-5 * other.norm()


@each_cell
def test_gradients_by_torch_are_numerically_right(cell):
    leaves, more = given(cell, 4, torch.float64)
    more.pop("clips", None)
    tensors = {name: x for name, x in more.items() if isinstance(x, Tensor) and x.requires_grad}

    def run(base: Tensor, weight: Tensor, h: Tensor, c: Tensor, *others: Tensor) -> Tensor:
        return recurrence(cell, base, weight, SIZES, h, c, **{**more, **dict(zip(tensors, others, strict=True))})[0]

    assert torch.autograd.gradcheck(run, (*leaves, *tensors.values()))


@needs_compiler
@each_cell
def test_any_number_of_threads_computes_the_same_numbers(cell, monkeypatch, set_threads):
    leaves, more = given(cell, 37, torch.float32)
    monkeypatch.setattr(library, "cores", lambda: 8)
    found = []
    for number in (1, 2, 3, 8):
        set_threads(number)
        found.append(outcome(cell, leaves, more)[0])
    assert all(torch.equal(one, found[0]) for one in found)


@needs_compiler
def test_functions_that_compute_something_else_are_not_used(monkeypatch):
    found = library.load()
    assert found is not None
    call = found.call
    monkeypatch.setattr(found, "call", lambda name, threads, *given: call(name, threads, *given[:18], 0.9, *given[19:]))
    assert recurrent.differences(found) > recurrent.NEAR
    recurrent.kernels.cache_clear()
    monkeypatch.setattr(library, "load", lambda half: found)
    assert recurrent.kernels() is None
    recurrent.kernels.cache_clear()
