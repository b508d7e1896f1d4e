"""The activation cache: the same numbers as the biLM, shared, and never worse than no cache."""

from __future__ import annotations

import json
import multiprocessing

import pytest
import torch

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.layers.cache import ActivationCache

SENTENCES = [["the", "cat", "sat"], ["a"], ["Zürich", "is", "far", "away", "."], [], ["the", "cat", "sat"]]


@pytest.fixture
def bilm(tmp_path):
    options = Options.parse(
        {
            "lstm": {"dim": 12, "projection_dim": 6, "n_layers": 2, "cell_clip": 3, "proj_clip": 3},
            "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 4], [3, 8]], "n_highway": 1},
        }
    )
    torch.manual_seed(0)
    BiLM(options).export(tmp_path / "options.json", tmp_path / "weights.hdf5")
    return BiLM.from_files(tmp_path / "options.json", tmp_path / "weights.hdf5")


def never(sentences):
    raise AssertionError("computed again")


def test_layers_are_the_bilms(bilm, tmp_path):
    expected = bilm.layers(SENTENCES)
    for dtype, tolerance in (("float32", 1e-6), ("float16", 2e-3)):
        cache = ActivationCache(bilm, tmp_path / "cache", dtype)
        cache.prepare(SENTENCES)
        found = ActivationCache(bilm, tmp_path / "cache", dtype)  # as a later run opens it
        found.bilm.encode, encode = never, found.bilm.encode
        torch.testing.assert_close(found.layers(SENTENCES), expected, atol=tolerance, rtol=tolerance)
        found.bilm.encode = encode
    assert (found.width, found.n_layers, found.sha256) == (bilm.width, bilm.n_layers, bilm.sha256)


def test_a_sentence_is_written_once_and_a_new_one_added(bilm, tmp_path):
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.prepare(SENTENCES)
    sizes = {path.name: path.stat().st_size for path in cache.folder.glob("*.bin")}
    assert sum(sizes.values()) == 2 * cache._elements(3 + 1 + 5)  # the repeated and the empty one add nothing
    cache.prepare(SENTENCES)
    assert {path.name: path.stat().st_size for path in cache.folder.glob("*.bin")} == sizes
    cache.prepare([*SENTENCES, ["new"]])
    assert len(list(cache.folder.glob("*.bin"))) == 2


def test_no_two_sentences_share_a_key(bilm, tmp_path):
    alike = [
        ["ab", "c"],
        ["a", "bc"],
        ["abc"],
        ["a\x1fb", "c"],
        ["a", "b\x1fc"],
        ["a", "b", "c"],
        ["\ud800"],
        ["\ud801"],
        [""],
    ]
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.prepare(alike)
    torch.testing.assert_close(cache.layers(alike), bilm.layers(alike), atol=2e-3, rtol=2e-3)
    assert len(cache.places) == len(alike)


def test_what_was_not_prepared_is_computed(bilm, tmp_path):
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.prepare(SENTENCES[:2])
    torch.testing.assert_close(cache.layers(SENTENCES), bilm.layers(SENTENCES), atol=2e-3, rtol=2e-3)


def test_biLMs_do_not_share_numbers(bilm, tmp_path):
    zero = BiLM.from_files(tmp_path / "options.json", tmp_path / "weights.hdf5", state="zero")
    folders = {
        ActivationCache(bilm, tmp_path).folder,
        ActivationCache(bilm, tmp_path, "float32").folder,
        ActivationCache(zero, tmp_path).folder,
    }
    options = json.loads((tmp_path / "options.json").read_text())
    options["lstm"]["cell_clip"] = 1
    (tmp_path / "options.json").write_text(json.dumps(options))
    folders.add(ActivationCache(BiLM.from_files(tmp_path / "options.json", tmp_path / "weights.hdf5"), tmp_path).folder)
    assert len(folders) == 4


@pytest.mark.parametrize("damage", ["truncated data", "no data", "truncated index", "garbage index", "flipped bits"])
def test_damage_is_found_and_mended(bilm, tmp_path, damage):
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.prepare(SENTENCES)
    data, index = next(cache.folder.glob("*.bin")), next(cache.folder.glob("*.npz"))
    del cache
    if damage == "truncated data":
        data.write_bytes(data.read_bytes()[:-10])
    elif damage == "no data":
        data.unlink()
    elif damage == "truncated index":
        index.write_bytes(index.read_bytes()[:40])
    elif damage == "garbage index":
        index.write_bytes(b"not an archive")
    else:
        data.write_bytes(bytes(255 - byte for byte in data.read_bytes()))
    cache = ActivationCache(bilm, tmp_path / "cache")
    torch.testing.assert_close(cache.layers(SENTENCES), bilm.layers(SENTENCES), atol=2e-3, rtol=2e-3)
    cache.prepare(SENTENCES)
    again = ActivationCache(bilm, tmp_path / "cache")
    torch.testing.assert_close(again.layers(SENTENCES), bilm.layers(SENTENCES), atol=2e-3, rtol=2e-3)


def test_a_full_disk_is_said_and_computed_around(bilm, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.prepare(SENTENCES)
    assert "no room" in capsys.readouterr().err
    assert not list(cache.folder.glob("*.bin"))
    torch.testing.assert_close(cache.layers(SENTENCES), bilm.layers(SENTENCES))


def test_only_functions_of_the_sentence_are_cached(tmp_path, bilm):
    carry = BiLM.from_files(tmp_path / "options.json", tmp_path / "weights.hdf5", state="carry")
    with pytest.raises(ValueError, match="zero or warm"):
        ActivationCache(carry, tmp_path)


def prepare(folder, sentences):
    bilm = BiLM.from_files(folder / "options.json", folder / "weights.hdf5")
    ActivationCache(bilm, folder / "cache").prepare(sentences)


def test_two_processes_write_each_sentence_once(bilm, tmp_path):
    sentences = [[f"w{i}", "x"] for i in range(200)]
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=prepare, args=(tmp_path, sentences)) for _ in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    cache = ActivationCache(bilm, tmp_path / "cache")
    assert len(cache.places) == 200
    assert sum(path.stat().st_size for path in cache.folder.glob("*.bin")) == 2 * 200 * cache._elements(2)
    torch.testing.assert_close(cache.layers(sentences), bilm.layers(sentences), atol=2e-3, rtol=2e-3)
