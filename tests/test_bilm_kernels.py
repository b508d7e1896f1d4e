"""The compiled functions compute what torch does, are built again when damaged, and replaced by torch if they fail."""

from __future__ import annotations

import platform
import shutil

import pytest
import torch

from elmo_bench.bilm import BiLM, compiled, frozen, kernels
from elmo_bench.system import places
from tests.reference_bilm import PLAIN, STRANGE, near, write_random

needs_compiler = pytest.mark.skipif(
    not any(shutil.which(name) for name in kernels.COMPILERS if name), reason="no C++ compiler"
)


@pytest.fixture
def fresh(tmp_path, monkeypatch):
    """An empty folder for libraries, and nothing loaded."""
    monkeypatch.setattr(places, "machine_cache", lambda: tmp_path)
    compiled.kernels.cache_clear()
    yield tmp_path / "kernels"
    compiled.kernels.cache_clear()


def vectors(flag: str) -> bool:
    """Whether this processor has these instructions."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return flag in file.read()
    except OSError:
        return False


@needs_compiler
@pytest.mark.parametrize(
    ("flags", "lanes"), [(("-march=x86-64",), 4), (("-mavx2", "-mfma"), 8), (("-mavx512f", "-mfma"), 16)]
)
def test_every_width_of_vectors_gives_the_same_numbers(fresh, monkeypatch, flags, lanes):
    if platform.machine() != "x86_64" or (lanes > 4 and not vectors(flags[0][2:])):
        pytest.skip(f"this processor does not have {flags[0]}")
    monkeypatch.setattr(kernels, "FLAGS", (*(flag for flag in kernels.FLAGS if flag != "-march=native"), *flags))
    found = kernels.Kernels(kernels.built())
    assert found.lanes == lanes
    assert max(compiled.differences(found)) < 1e-6


@needs_compiler
def test_a_biLM_gives_the_same_layers_with_and_without_them(fresh, tmp_path, monkeypatch):
    files = write_random(tmp_path, seed=3)
    assert compiled.kernels() is not None
    fast = BiLM.from_files(*files)
    layers = fast.encode(PLAIN + STRANGE)
    assert isinstance(fast._frozen[2][0][0], compiled.CompiledLSTM)  # type: ignore[index]
    monkeypatch.setattr(frozen, "for_weight", lambda weight: None)
    for one, other in zip(BiLM.from_files(*files).encode(PLAIN + STRANGE), layers, strict=True):
        near(one, other)


@needs_compiler
@pytest.mark.parametrize("damage", ["flip", "cut", "card"])
def test_a_damaged_library_is_built_again(fresh, damage):
    path = kernels.built()
    content, card = path.read_bytes(), path.with_name(kernels.CARD)
    if damage == "card":
        card.write_text("{")
    else:
        path.write_bytes(content[:1000] if damage == "cut" else content[:5000] + b"?" + content[5001:])
    assert kernels.built() == path
    assert max(compiled.differences(kernels.Kernels(path))) < 1e-6


def test_without_a_compiler_torch_computes(fresh, monkeypatch):
    monkeypatch.setattr(kernels, "COMPILERS", ("no-such-compiler",))
    assert compiled.kernels() is None
    assert isinstance(frozen.frozen_lstm(a_layer()), frozen.FrozenLSTM)


def test_they_can_be_turned_off(fresh, monkeypatch):
    monkeypatch.setenv("ELMO_BENCH_KERNELS", "0")
    assert compiled.kernels() is None
    assert not fresh.exists()


@needs_compiler
def test_a_source_that_computes_something_else_is_not_used(fresh, tmp_path, monkeypatch):
    wrong = tmp_path / "kernels.cpp"
    wrong.write_text(kernels.SOURCE.read_text().replace("(e - 1.0f)", "(e - 1.001f)"))
    monkeypatch.setattr(kernels, "SOURCE", wrong)
    assert compiled.kernels() is None


@needs_compiler
@pytest.mark.parametrize("source", ["no C++", "int lanes() { return 1; }"])
def test_a_source_that_cannot_be_used_is_not_used(fresh, tmp_path, monkeypatch, source):
    (tmp_path / "kernels.cpp").write_text(source)
    monkeypatch.setattr(kernels, "SOURCE", tmp_path / "kernels.cpp")
    assert compiled.kernels() is None
    assert not list(fresh.rglob("*.partial"))


def a_layer() -> frozen.ProjectedLSTM:
    return frozen.ProjectedLSTM(8, 8, 8, None, None)


@needs_compiler
def test_numbers_that_are_none_stay_none(fresh):
    """A broken weight must not look like a result."""
    found = compiled.kernels()
    assert found is not None
    layer = compiled.CompiledLSTM(a_layer(), found)
    x = torch.full((2, 8), float("nan"))
    state = frozen.State(torch.zeros(1, 8), torch.zeros(1, 8))
    assert layer(x, [1, 1], state)[0].isnan().all()
