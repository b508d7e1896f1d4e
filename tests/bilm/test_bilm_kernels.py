"""The compiled functions compute what torch does, are built again when damaged, and replaced by torch if they fail."""

import copy
import platform
import re
import resource
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch

from elmo_bench.bilm import BiLM, frozen
from elmo_bench.bilm.frozen import CompiledDirections, Directions, FrozenLSTM
from elmo_bench.bilm.lstm import ProjectedLSTM, State
from elmo_bench.commands.use import Embed
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.nn.kernels import library
from elmo_bench.nn.kernels.library import Factors
from elmo_bench.nn.packing import Packing
from elmo_bench.system.storage import files
from elmo_bench.system.storage.integrity import is_as_noted, note
from tests.conftest import PATIENCE, needs_compiler
from tests.fakes import for_each, refuses
from tests.reference_bilm import PLAIN, STRANGE, near, write_random

pytestmark = pytest.mark.slow


def vectors(flag: str) -> bool:
    """Whether this processor has these instructions."""
    try:
        with open("/proc/cpuinfo") as file:
            return flag in file.read()
    except OSError:
        return False


@pytest.fixture
def unoptimized(fresh, monkeypatch):
    """What is compiled is soon ready."""
    monkeypatch.setattr(library, "FLAGS", tuple(flag.replace("-O3", "-O0") for flag in library.FLAGS))


@needs_compiler
def test_the_check_takes_no_number_from_torchs_generator_from_which_another_thread_may_draw(unoptimized):
    found, before = library.Kernels(library.built()), torch.get_rng_state()
    for _ in frozen.differences(found):
        assert torch.equal(torch.get_rng_state(), before)


@needs_compiler
@pytest.mark.parametrize(
    "flags, lanes", [(("-march=x86-64",), 4), (("-mavx2", "-mfma"), 8), (("-mavx512f", "-mfma"), 16)]
)
def test_every_width_of_vectors_gives_the_same_numbers(unoptimized, monkeypatch, capfd, flags, lanes):
    if platform.machine() != "x86_64" or (lanes > 4 and not vectors(flags[0][2:])):
        pytest.skip(f"this processor does not have {flags[0]}")
    kept = (flag for flag in library.FLAGS if flag != "-march=native")
    monkeypatch.setattr(library, "FLAGS", (*kept, *flags))
    found = library.Kernels(library.built())
    assert found.lanes == lanes
    assert max(frozen.differences(found)) < 1e-6
    if lanes == 4:  # without instructions for bfloat16, float32 computes
        assert frozen.granted("bf16") == "fp32"
        *compiling, line = capfd.readouterr().err.splitlines()
        assert line.startswith("precision=bf16: no instructions for bfloat16")
        assert set(compiling) <= {"compiling the C++ functions, once for this machine"}


@pytest.fixture
def short(fresh, tmp_path, monkeypatch):
    """A source that is compiled at once: what is kept of it does not depend on what it computes."""
    (tmp_path / "kernels.cpp").write_text('extern "C" int lanes() { return 1; }')
    monkeypatch.setattr(library, "SOURCE", tmp_path / "kernels.cpp")


@needs_compiler
@for_each("damage", "flip cut note")
def test_a_damaged_library_is_built_again(short, damage):
    path = library.built()
    content, noted = path.read_bytes(), path.with_name(f"{path.name}.sha256")
    if damage == "note":
        noted.write_text("0")
    else:
        path.write_bytes(content[:1000] if damage == "cut" else content[:5000] + b"?" + content[5001:])
    assert library.built() == path
    assert path.read_bytes() == content
    assert is_as_noted(path)


@needs_compiler
@pytest.mark.parametrize("whose", ["folder", "library", "another user's"])
def test_a_library_that_others_could_have_written_is_built_again(short, monkeypatch, whose):
    path = library.built()
    path.write_bytes(b"theirs")
    note(path)
    assert library.built().read_bytes() == b"theirs"  # as long as only this user could have done it
    if whose == "another user's":
        monkeypatch.setattr(files, "others", lambda path: "theirs" if path.is_file() else None)
    else:
        (path.parent if whose == "folder" else path).chmod(0o777)
    assert library.built().read_bytes() != b"theirs"
    assert (path.parent.stat().st_mode | path.stat().st_mode) & 0o022 == 0


def test_without_a_compiler_torch_computes(fresh, monkeypatch):
    monkeypatch.setattr(library, "COMPILERS", ("no-such-compiler",))
    assert frozen.kernels() is None
    directions = frozen.frozen_directions([[layer(8, 8)]] * 2, skip=True)
    assert isinstance(directions, Directions)
    assert all(isinstance(layer, FrozenLSTM) for layers in directions.stacks for layer in layers)


def test_they_can_be_turned_off(fresh, monkeypatch):
    monkeypatch.setenv("ELMO_BENCH_KERNELS", "0")
    assert frozen.kernels() is None
    assert not fresh.exists()


def altered(folder: Path, changes: dict[str, str], before: str = "") -> Path:
    """A copy of the source, with the headers beside it, that has other text in some places."""
    texts = {path.name: path.read_text() for path in (library.SOURCE, *library.SOURCE.parent.glob("*.h"))}
    for right, wrong in changes.items():
        assert any(right in text for text in texts.values())
        texts = {name: text.replace(right, wrong) for name, text in texts.items()}
    texts[library.SOURCE.name] = before + texts[library.SOURCE.name]
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder / library.SOURCE.name


FAULTS = [  # right and wrong
    ("x[i] - 1.0f", "x[i] - 1.001f"),
    ("layer && all.skip", "layer && !all.skip"),
    (
        "(place * (all.layers + 1) + layer + 1) * 2 + direction",
        "(place * (all.layers + 1) + layer + 1) * 2 + 1 - direction",
    ),
    ("all.order + direction * all.words", "all.order"),
    ("store(h + row * all.width + k, output)", "store(h + row * all.width + k, output + output)"),
    ("store(c + r * all.cells + p * LANES, load(cell(p, r)))", "store(cell(p, r), V{})"),
]


@needs_compiler
def test_a_source_that_computes_something_else_is_not_used(unoptimized, tmp_path, monkeypatch):
    """It is compiled once, with all faults; the environment tells which one it has: none, or one of them."""
    changes = {right: f"(fault() == {number} ? {wrong} : {right})" for number, (right, wrong) in enumerate(FAULTS, 1)}
    told = '#include <cstdlib>\nstatic int fault() { return std::atoi(std::getenv("FAULT")); }\n'
    monkeypatch.setattr(library, "SOURCE", altered(tmp_path, changes, told))
    for number in range(len(FAULTS) + 1):
        monkeypatch.setenv("FAULT", str(number))
        frozen.kernels.cache_clear()
        assert (frozen.kernels() is None) == (number > 0), number


@needs_compiler
@pytest.mark.parametrize("source", ["no C++", "int lanes() { return 1; }"])
def test_a_source_that_cannot_be_used_is_not_used(fresh, tmp_path, monkeypatch, source, file):
    file(source, "kernels.cpp")
    monkeypatch.setattr(library, "SOURCE", tmp_path / "kernels.cpp")
    assert frozen.kernels() is None
    assert not list(fresh.rglob("*.partial"))


@needs_compiler
def test_any_number_of_threads_computes_the_same_numbers(monkeypatch, set_threads):
    found = frozen.kernels()
    assert found is not None
    stacks = [[layer(72, 40) for _ in range(2)] for _ in range(2)]
    directions, packing = CompiledDirections(stacks, True, found), Packing([15, 2, 7, 30])
    token, starts = torch.randn(54, 72), State(torch.randn(2, 2, 4, 72), torch.randn(2, 2, 4, 40))
    monkeypatch.setattr(library, "cores", lambda: 8)
    set_threads(1)
    alone, end = directions(token, packing, starts)
    for number in (2, 3, 8):  # of 3 panels of cells and 2 of outputs
        set_threads(number)
        layers, there = directions(token, packing, starts)
        assert torch.equal(layers, alone)
        assert all(map(torch.equal, end, there))


@needs_compiler
def test_torchs_own_operations_take_one_thread(small, monkeypatch, set_threads):
    """Beside busy processes its threads would wait for each other longer than they compute."""
    bilm, computed, seen = BiLM.from_files(*small), BiLM._compute, []

    def compute(*given):
        seen.append((torch.get_num_threads(), library.most_threads()))
        return computed(*given)

    monkeypatch.setattr(BiLM, "_compute", compute)
    monkeypatch.setattr(library, "cores", lambda: 8)
    set_threads(2)
    bilm.encode(PLAIN)
    assert torch.get_num_threads() == library.most_threads() == 2
    monkeypatch.setattr(frozen, "for_weight", lambda weight, half: None)
    BiLM.from_files(*small).encode(PLAIN)
    assert seen == [(1, 2), (2, 2)]


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """A program in which a team takes turns, at most as many as it is told: prints members, turns, wrong turns."""

    folder = tmp_path_factory.mktemp("team")
    (folder / "team.cpp").write_text(TEAM)
    name = next(name for name in library.COMPILERS if name and shutil.which(name))

    def compiled(*options: str) -> subprocess.CompletedProcess[str]:
        command = [name, "-pthread", *options]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE)

    @cache
    def linked(*flags: str) -> Path:
        done = compiled(*flags, "team.o", "-o", f"team{len(flags)}")
        if done.returncode:
            pytest.skip(f"the compiler has no {' '.join(flags)}: {done.stderr[-200:]}")
        return folder / f"team{len(flags)}"

    compiled("-std=c++17", "-O1", f"-I{library.SOURCE.parent}", "-c", "team.cpp").check_returncode()
    return linked


TEAM = r"""
#include <cstdio>
#include <cstdlib>
#include "team.h"
int main(int, char **given) {
  Team team;
  long turns = 0, wrong = 0;
  team.run(std::atol(given[1]), [&](long member) {
    for (long turn = 0; turn < 200 * team.size; turn++) {
      if (turn % team.size == member) wrong += turns++ != turn;
      team.wait();
    }
  });
  std::printf("%ld %ld %ld %d\n", team.size, turns, wrong, OpenMP::here().usable);
}
"""


@needs_compiler
@pytest.mark.parametrize("flags", [(), ("-fopenmp", "-Wl,--no-as-needed")])
def test_a_team_goes_on_when_all_its_threads_have_come(team, flags):
    """With threads of its own, and with OpenMP's."""
    done = subprocess.run([team(*flags), "4"], check=True, capture_output=True, text=True, timeout=PATIENCE)
    assert done.stdout == f"4 800 0 {int('-fopenmp' in flags)}\n"


@needs_compiler
def test_threads_that_cannot_be_had_leave_the_work_to_the_others(team):
    """There is no memory for the stacks of a hundred threads."""
    enough = 64 << 20
    done = subprocess.run(
        [team(), "100"], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (enough, enough)),
        check=True, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    members, turns, wrong, _ = map(int, done.stdout.split())
    assert 1 < members < 100
    assert (turns, wrong) == (200 * members, 0)


# bfloat16


@pytest.fixture
def halved():
    """The functions that multiply in bfloat16."""
    if not vectors("avx512_bf16") or frozen.kernels(half=True) is None:
        pytest.skip("no instructions for bfloat16, or no compiler that knows them")


@pytest.fixture
def by_amx():
    """Functions that multiply in bfloat16 by AMX."""
    if not vectors("amx_bf16"):
        pytest.skip("this processor does not have AMX")
    found = frozen.kernels(half=True)
    if found is None or found.multiplied != Factors.AMX:
        pytest.skip("the compiler does not know AMX, or the system does not permit it")
    return found


def test_in_bfloat16_the_layers_are_close_and_the_same_in_every_batch(halved, tmp_path, capfd):
    files = write_random(tmp_path, seed=3)
    bilm = BiLM.from_files(*files, precision="bf16")
    assert bilm.precision == "bf16"
    assert 1e-5 < bilm.difference(PLAIN + STRANGE) < 0.2
    torch.testing.assert_close([bilm.encode([sentence])[0] for sentence in PLAIN], bilm.encode(PLAIN), rtol=0, atol=0)
    exact = BiLM.from_files(*files)
    assert exact.difference(PLAIN) == 0
    near(copy.deepcopy(exact).encode(PLAIN)[0], exact.encode(PLAIN)[0])
    assert "precision" not in BilmLayers.of(exact).settings
    assert BilmLayers.of(bilm).settings == {**BilmLayers.of(exact).settings, "precision": "bf16"}
    assert capfd.readouterr().err == ""


def test_without_permission_for_amx_vectors_multiply(by_amx, fresh, tmp_path, monkeypatch):
    monkeypatch.setattr(library, "SOURCE", altered(tmp_path, {"REQUEST = 0x1023": "REQUEST = 0x1fff"}))
    found = frozen.kernels(half=True)
    assert found is not None
    assert found.multiplied == Factors.PAIRS
    assert max(frozen.differences(by_amx)) < frozen.NEAR_HALF


def test_an_unknown_precision_is_an_error():
    with refuses("precision is 'fp8'; known: fp32, bf16"):
        BiLM.from_files("options.json", "weights.hdf5", precision="fp8")


def test_embed_states_how_far_bfloat16_is_from_float32(halved, tmp_path, monkeypatch, capfd):
    options, weights = write_random(tmp_path, seed=3)
    source, output = tmp_path / "text.txt", tmp_path / "layers.hdf5"
    source.write_text("\n".join(map(" ".join, PLAIN)) + "\n")
    arguments = f"options={options} weights={weights} input={source} output={output} precision=bf16"
    monkeypatch.setattr(sys, "argv", ["embed", *arguments.split()])
    Embed.parse(sys.argv[1:]).run()
    assert re.search(r"bf16: the first \d+ lines differ from fp32 by at most 0\.0\d+\n$", capfd.readouterr().err)


def layer(width: int, cells: int) -> ProjectedLSTM:
    return ProjectedLSTM(width, cells, width, 3.0, 3.0)


@needs_compiler
def test_numbers_that_are_none_stay_none():
    """A broken weight must not look like a result."""
    found = frozen.kernels()
    assert found is not None
    directions = CompiledDirections([[layer(8, 8)]] * 2, True, found)
    starts = State(torch.zeros(2, 1, 1, 8), torch.zeros(2, 1, 1, 8))
    layers, _ = directions(torch.full((3, 8), float("nan")), Packing([3]), starts)
    assert layers.shape == (1, 2, 16)
    assert layers.isnan().all()
