"""Files of a biLM: written and read again bit for bit; whatever is wrong with one ends in one error that names it."""

import hashlib
import json
import shutil
import time
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from elmo_bench.bilm import BiLM
from elmo_bench.system.errors import UserError
from tests.damage import refusals
from tests.fakes import for_each, refuses
from tests.reference_bilm import PLAIN, SIZES, Files, ReferenceBiLM, write_random


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Files:
    return write_random(tmp_path_factory.mktemp("bilm"), n_highway=1)


@pytest.fixture
def files(made, tmp_path) -> Files:
    """A copy to be damaged."""
    return Files(*(Path(shutil.copy(file, tmp_path)) for file in made))


def error_of(files: Files, culprit: Path) -> str:
    """Loading fails in one line that names the culprit."""
    with refuses(f"^{culprit}:") as caught:
        BiLM.from_files(*files)
    assert len(caught.value.message) < 500
    return str(caught.value)


# Round trips


@pytest.mark.slow
@for_each("ending", "hdf5 h5 safetensors")
@pytest.mark.parametrize("size", SIZES)
def test_exported_weights_load_again_bit_for_bit(size, ending, tmp_path):
    bilm = BiLM.from_files(*write_random(tmp_path / "random", **SIZES[size]))
    exported = Files(tmp_path / "options.json", tmp_path / f"weights.{ending}")
    bilm.export(*exported)
    again = BiLM.from_files(*exported)
    assert again.options == bilm.options
    torch.testing.assert_close(again.state_dict(), bilm.state_dict(), rtol=0, atol=0)
    torch.testing.assert_close(again.encode(PLAIN), bilm.encode(PLAIN), rtol=0, atol=0)
    assert again.sha256 == hashlib.sha256(exported.weights.read_bytes()).hexdigest()
    assert sorted(tmp_path.iterdir()) == sorted([*exported, tmp_path / "random"])  # nothing is left beside them


@for_each("ending", "hdf5 safetensors")
def test_half_the_size_is_exact_the_second_time(made, tmp_path, ending):
    bilm = BiLM.from_files(*made)
    exported = [Files(tmp_path / "options.json", tmp_path / f"{n}.{ending}") for n in range(2)]
    for files in exported:
        bilm.export(*files, torch.float16)
        bilm = BiLM.from_files(*files)
        for parameter, original in zip(bilm.parameters(), BiLM.from_files(*made).parameters(), strict=True):
            assert parameter.dtype == torch.float32
            torch.testing.assert_close(parameter, original, rtol=1e-3, atol=1e-6)
    first, second = (BiLM.from_files(*files).state_dict() for files in exported)
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_an_export_is_in_the_official_layout(made, tmp_path):
    """As h5py sees it: names, shapes and numbers of the file that it came from."""
    exported = Files(tmp_path / "options.json", tmp_path / "weights.hdf5")
    BiLM.from_files(*made).export(*exported)
    ours, theirs = ReferenceBiLM(exported), ReferenceBiLM(made)
    assert ours.weights.keys() == theirs.weights.keys()
    for name, weight in theirs.weights.items():
        assert np.array_equal(ours.weights[name], weight), name
    assert ours.lstm == theirs.lstm
    assert ours.cnn == theirs.cnn


def test_an_export_that_fails_leaves_what_was_there(made, tmp_path, file):
    bilm = BiLM.from_files(*made)
    weights = file(b"before", "weights.hdf5")
    with torch.no_grad():
        bilm.encoder.characters.weight[3, 1] = 1e6  # beyond float16
    with refuses("not finite"):
        bilm.export(tmp_path / "options.json", weights, torch.float16)
    assert weights.read_bytes() == b"before"
    for path in (tmp_path / "absent" / "weights.hdf5", tmp_path / "absent" / "weights.safetensors"):
        with refuses("cannot be written"):
            bilm.export(tmp_path / "options.json", path)
    with refuses("must end in"):
        bilm.export(tmp_path / "options.json", tmp_path / "weights.pt")
    assert {path.name for path in tmp_path.iterdir()} == {"options.json", "weights.hdf5"}


# Damaged weights


@for_each("share", "0.0 0.0005 0.01 0.3 0.7 0.99")
@for_each("ending", "hdf5 safetensors")
def test_truncated_weights(files, ending, share):
    weights = files.weights.with_suffix(f".{ending}")
    BiLM.from_files(*files).export(files.options, weights)
    content = weights.read_bytes()
    weights.write_bytes(content[: int(share * len(content))])
    error_of(Files(files.options, weights), weights)


@pytest.mark.parametrize(
    "content", [b"", b"\x89HDF\r\n\x1a\n", b"\x80\x04\x95cposix\nsystem\n", b"PK\x03\x04", b"{}" * 99]
)
def test_what_are_no_weights(files, content):
    files.weights.write_bytes(content)
    error_of(files, files.weights)


def test_absent_weights_and_folders(files, tmp_path):
    for name in ("absent.hdf5", "folder"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        error_of(Files(files.options, tmp_path / name), tmp_path / name)
        error_of(Files(tmp_path / name, files.weights), tmp_path / name)


CELL = "RNN_1/RNN/MultiRNNCell/Cell0/LSTMCell"


@pytest.mark.parametrize(
    "name", ["char_embed", "CNN/W_cnn_1", "CNN_high_0/b_carry", "CNN_proj/W_proj", f"{CELL}/W_P_0"]
)
def test_every_dataset_is_checked(files, name):
    def changed(values: np.ndarray | None) -> str:
        with h5py.File(files.weights, "r+") as file:
            if name in file:
                del file[name]
            if values is not None:
                file[name] = values
        return error_of(files, files.weights)

    with h5py.File(files.weights) as file:
        right = np.asarray(file[name])
    assert name in changed(None)
    assert "shape" in changed(right[:-1])
    assert "shape" in changed(right[..., None])
    assert "shape" in changed(np.float32(1))  # type: ignore[arg-type]
    assert "floating-point" in changed(right.astype(np.int32))
    assert "floating-point" in changed(right.astype(bool))
    assert "floating-point" in changed(right.astype("S4"))
    assert "finite" in changed(np.where(np.arange(right.size).reshape(right.shape) == 1, np.nan, right))
    assert "finite" in changed(right.astype(np.float64) + 1e300)
    assert name in changed(np.empty(0))


def test_double_precision_is_read(files, made):
    with h5py.File(files.weights, "r+") as file:
        values = np.asarray(file["char_embed"], dtype=np.float64)
        del file["char_embed"]
        file["char_embed"] = values
    a, b = (BiLM.from_files(*paths).encode(PLAIN[:1])[0] for paths in (files, made))
    assert torch.equal(a, b)


def test_unknown_datasets_are_named(files):
    with h5py.File(files.weights, "r+") as file:
        file["CNN/W_cnn_3"] = np.zeros(3, dtype=np.float32)
    assert "CNN/W_cnn_3" in error_of(files, files.weights)


@pytest.mark.parametrize("shape", [{"chunks": (8, 4)}, {}])
def test_numbers_that_were_never_written_are_not_read_as_zeros(files, shape):
    with h5py.File(files.weights, "r+") as file:
        size, first = file["char_embed"].shape, np.asarray(file["char_embed"])[:8]  # type: ignore[union-attr]
        del file["char_embed"]
        numbers = file.create_dataset("char_embed", size, "f4", **shape)
        if shape:
            numbers[:8] = first
    assert "dataset 'char_embed' was not written to its end" in error_of(files, files.weights)


def test_a_matrix_of_zeros_is_refused(files):
    with h5py.File(files.weights, "r+") as file:
        file["CNN_proj/W_proj"][...] = 0  # type: ignore[index]
    assert "'encoder.projection.weight' is zero everywhere" in error_of(files, files.weights)


@for_each("link", "false true")
def test_groups_in_groups_without_an_end_are_refused_at_once(files, link):
    with h5py.File(files.weights, "r+") as file:
        group = file
        for number in range(50 if link else 3000):
            group = file.create_group(f"g{number}") if link else group.create_group("g")
            if link:
                group["again"] = file["/"]
    started = time.process_time()
    assert "more groups than a biLM has" in error_of(files, files.weights)
    assert time.process_time() - started < 5


@pytest.mark.parametrize("kind", ["soft", "external", "missing target", "group", "virtual", "raw file", "loop"])
def test_nothing_but_the_file_itself_is_read(files, tmp_path, kind):
    """Links, virtual datasets and external storage could name any file of the reader's."""
    name, other = "char_embed", shutil.copy(files.weights, tmp_path / "other.hdf5")
    with h5py.File(files.weights, "r+") as file:
        values = np.asarray(file[name])
        del file[name]
        if kind == "soft":
            file["elsewhere"] = values
            file[name] = h5py.SoftLink("/elsewhere")
        elif kind == "external":
            file[name] = h5py.ExternalLink(other, name)
        elif kind == "missing target":
            file[name] = h5py.ExternalLink(str(tmp_path / "absent.hdf5"), name)
        elif kind == "group":
            file.create_group(name)
        elif kind == "virtual":
            layout = h5py.VirtualLayout(values.shape, values.dtype)
            layout[...] = h5py.VirtualSource(other, name, values.shape)
            file.create_virtual_dataset(name, layout)
        elif kind == "raw file":
            (tmp_path / "raw").write_bytes(values.tobytes())
            file.create_dataset(name, values.shape, values.dtype, external=str(tmp_path / "raw"))
        else:
            file["CNN/again"] = file["CNN"]
    error_of(files, files.weights)


def test_options_of_another_biLM(files, tmp_path):
    changes = json.loads("""
        {"dim": [13], "n_layers": [1, 3], "n_highway": [0, 2], "char_dim": [5], "projection_dim": [5, 15],
         "filters": [[[1, 4], [2, 5]], [[1, 4], [2, 5], [4, 6]]]}
    """)
    for change in ({key: value} for key, values in changes.items() for value in values):
        other = write_random(tmp_path / "other", **change)
        error_of(Files(other.options, files.weights), files.weights)


def test_safetensors_are_checked_too(files, tmp_path):
    weights = tmp_path / "weights.safetensors"
    BiLM.from_files(*files).export(files.options, weights)
    right, name = load_file(weights), "directions.1.0.recurrent"
    for change, message in (
        ({name: right[name].t().contiguous()}, "shape"),
        ({name: right[name].to(torch.int32)}, "floating-point"),
        ({name: torch.full_like(right[name], float("nan"))}, "finite"),
        ({"more": torch.zeros(2)}, "more"),
    ):
        save_file({**right, **change}, weights)
        assert message in error_of(Files(files.options, weights), weights)
    save_file({key: value for key, value in right.items() if key != name}, weights)
    assert name in error_of(Files(files.options, weights), weights)


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.binary(min_size=1, max_size=8)), min_size=1, max_size=4)
)
def test_garbled_weights_load_or_are_refused(made, tmp_path, edits):
    """A flipped bit in a number cannot be seen, one in the structure is; nothing else may happen."""
    content = bytearray(made.weights.read_bytes())
    for place, garbage in edits:
        start = int(place * place * len(content))  # more often near the beginning, where the structure is
        content[start : start + len(garbage)] = garbage
    garbled = Files(made.options, tmp_path / "garbled.hdf5")
    garbled.weights.write_bytes(content)
    try:
        assert BiLM.from_files(*garbled).options.lstm.dim == 12
    except UserError as error:
        assert error.path == garbled.weights  # noqa: PT017


def test_sizes_that_no_machine_holds_are_not_allocated(files):
    """Terabytes by the options; the weights are seen not to fit before anything is made."""
    options = json.loads(files.options.read_text())
    options["lstm"] |= {"dim": 65_536, "projection_dim": 65_536, "n_layers": 50}
    files.options.write_text(json.dumps(options))
    assert "shape" in error_of(files, files.weights) or "dataset" in error_of(files, files.weights)


def test_no_flipped_bit_of_safetensors_changes_the_weights(files, tmp_path):
    weights = tmp_path / "weights.safetensors"
    BiLM.from_files(*files).export(files.options, weights)

    def read():
        state = BiLM.from_files(files.options, weights).state_dict()
        return {name: tensor.numpy().tobytes() for name, tensor in state.items()}

    assert len(refusals(weights, read, 60)) > 40
