"""The activation cache: the same numbers as the source it stands in for, shared, and never worse than no cache."""

from __future__ import annotations

import json
import multiprocessing

import pytest
import torch

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.layers.cache import ActivationCache
from tests.fakes import FakeBiLM

SENTENCES = [["the", "cat", "sat"], ["a"], ["Zürich", "is", "far", "away", "."], [], ["the", "cat", "sat"]]


def layers_of(folder, state="warm"):
    return BilmLayers(folder / "options.json", folder / "weights.hdf5", state)


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
    return layers_of(tmp_path)


def never(sentences):
    raise AssertionError("computed again")


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float16", 2e-3)])
@pytest.mark.parametrize("kind", ["layer 0 doubled", "all layers alike"])
def test_layers_are_those_of_the_source(bilm, tmp_path, monkeypatch, kind, dtype, tolerance):
    source = bilm if kind == "layer 0 doubled" else FakeBiLM()
    expected = source.layers(SENTENCES)
    ActivationCache(source, tmp_path / "cache", dtype).prepare(SENTENCES)
    cache = ActivationCache(source, tmp_path / "cache", dtype)  # as a later run opens it
    monkeypatch.setattr(source, "batches", lambda sentences: never(sentences) if sentences else iter(()))
    torch.testing.assert_close(cache.layers(SENTENCES), expected, atol=tolerance, rtol=tolerance)
    assert (cache.width, cache.n_layers, cache.sha256) == (source.width, source.n_layers, source.sha256)
    assert cache.layers([]).shape == (0, source.n_layers, 0, source.width)


def test_a_sentence_is_written_once_and_a_new_one_added(bilm, tmp_path):
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.prepare(SENTENCES)
    sizes = {path.name: path.stat().st_size for path in cache.folder.glob("*.bin")}
    assert sum(sizes.values()) == cache.blocks.nbytes(3 + 1 + 5)  # the repeated and the empty one add nothing
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
    assert len(cache.shards.places) == len(alike)


def test_what_was_not_prepared_is_computed(bilm, tmp_path):
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.prepare(SENTENCES[:2])
    torch.testing.assert_close(cache.layers(SENTENCES), bilm.layers(SENTENCES), atol=2e-3, rtol=2e-3)


def test_sources_do_not_share_numbers(bilm, tmp_path):
    folders = {
        ActivationCache(bilm, tmp_path).folder,
        ActivationCache(bilm, tmp_path, "float32").folder,
        ActivationCache(layers_of(tmp_path, "zero"), tmp_path).folder,
        ActivationCache(FakeBiLM(), tmp_path).folder,
        ActivationCache(FakeBiLM(seed=1), tmp_path).folder,
        ActivationCache(FakeBiLM(state="zero"), tmp_path).folder,
    }
    options = json.loads((tmp_path / "options.json").read_text())
    options["lstm"]["cell_clip"] = 1
    (tmp_path / "options.json").write_text(json.dumps(options))
    folders.add(ActivationCache(layers_of(tmp_path), tmp_path).folder)
    assert len(folders) == 7


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


def test_what_a_killed_writer_left_goes(bilm, tmp_path):
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.folder.mkdir(parents=True)
    leftover = cache.folder / ".00000-1.bin.partial"
    leftover.write_bytes(b"half")
    cache.prepare(SENTENCES)
    assert not leftover.exists()
    assert len(cache.shards.places) == 3


def test_much_is_said_before_it_is_written_and_little_is_not(bilm, tmp_path, monkeypatch, capsys):
    ActivationCache(bilm, tmp_path / "cache").prepare(SENTENCES)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("elmo_bench.layers.cache.SMALL", 100)
    ActivationCache(bilm, tmp_path / "cache").prepare([["new"] * 9])
    assert "layers for 1 sentences (9 tokens)" in capsys.readouterr().err


def test_a_full_disk_is_said_and_computed_around(bilm, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.prepare(SENTENCES)
    assert "no room" in capsys.readouterr().err
    assert not list(cache.folder.glob("*.bin"))
    monkeypatch.undo()
    roomy = ActivationCache(bilm, tmp_path / "roomy")
    roomy.prepare(SENTENCES)
    assert torch.equal(cache.layers(SENTENCES), roomy.layers(SENTENCES))  # the same run, with or without room


def test_only_functions_of_the_sentence_are_cached(tmp_path, bilm):
    with pytest.raises(ValueError, match="one sentence"):
        ActivationCache(layers_of(tmp_path, "carry"), tmp_path)
    with pytest.raises(ValueError, match="of files"):
        ActivationCache(BilmLayers.of(BiLM(bilm.module.options)), tmp_path)


def prepare(folder, sentences):
    ActivationCache(layers_of(folder), folder / "cache").prepare(sentences)


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
    assert len(cache.shards.places) == 200
    assert sum(path.stat().st_size for path in cache.folder.glob("*.bin")) == 200 * cache.blocks.nbytes(2)
    torch.testing.assert_close(cache.layers(sentences), bilm.layers(sentences), atol=2e-3, rtol=2e-3)
