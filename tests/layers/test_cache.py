"""The activation cache: the same numbers as the source it stands in for, shared, and never worse than no cache."""

import errno
import json
import multiprocessing
import os
import random
import shutil
from pathlib import Path

import pytest
import torch

from elmo_bench.bilm import BiLM
from elmo_bench.configuration import schema
from elmo_bench.configuration.keys import fields
from elmo_bench.configuration.schema import ElmoConfig
from elmo_bench.embedding.representation import Elmo
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.layers.cache import ActivationCache, open_source
from elmo_bench.layers.source import frozen_layers
from elmo_bench.running.data import stored_layers
from elmo_bench.task import Tokens
from tests import tiny_bilm
from tests.conftest import PATIENCE
from tests.damage import flipped
from tests.fakes import FakeBiLM, cases, for_each, refuses

SENTENCES = [["the", "cat", "sat"], ["a"], "Zürich is far away .".split(), [], ["the", "cat", "sat"]]


def layers_of(folder, state="warm"):
    return BilmLayers(folder / "options.json", folder / "weights.hdf5", state)


@pytest.fixture
def bilm(tmp_path):
    return tiny_bilm.exported(tmp_path)


def never(sentences):
    raise AssertionError("computed again")


def computes_nothing(source, monkeypatch) -> None:
    """From now on."""
    monkeypatch.setattr(source, "batches", lambda sentences: never(sentences) if sentences else iter(()))


def close(cache, expected) -> None:
    torch.testing.assert_close(cache.layers(SENTENCES), expected, atol=2e-3, rtol=2e-3)


@pytest.mark.parametrize("kind", ["layer 0 doubled", "all layers alike"])
def test_layers_are_those_of_the_source(bilm, tmp_path, monkeypatch, kind):
    source = bilm if kind == "layer 0 doubled" else FakeBiLM()
    expected = source.layers(SENTENCES)
    ActivationCache(source, tmp_path / "cache").prepare(SENTENCES)
    cache = ActivationCache(source, tmp_path / "cache")  # as a later run opens it
    computes_nothing(source, monkeypatch)
    close(cache, expected)
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
    joined = "ab|c", "a|bc", "abc", "a\x1fb|c", "a|b\x1fc", "a|b|c", "\ud800", "\ud801", ""
    alike = [text.split("|") for text in joined]
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.prepare(alike)
    torch.testing.assert_close(cache.layers(alike), bilm.layers(alike), atol=2e-3, rtol=2e-3)
    assert len(cache.shards.places) == len(alike)


def test_sources_do_not_share_numbers(bilm, tmp_path, file):
    folders = {
        ActivationCache(bilm, tmp_path).folder,
        ActivationCache(layers_of(tmp_path, "zero"), tmp_path).folder,
        ActivationCache(FakeBiLM(), tmp_path).folder,
        ActivationCache(FakeBiLM(seed=1), tmp_path).folder,
        ActivationCache(FakeBiLM(state="zero"), tmp_path).folder,
    }
    options = json.loads((tmp_path / "options.json").read_text())
    options["lstm"]["cell_clip"] = 1
    file(json.dumps(options), "options.json")
    folders.add(ActivationCache(layers_of(tmp_path), tmp_path).folder)
    assert len(folders) == 6


DAMAGES = {
    "truncated data": ("bin", lambda content: content[:-10]),
    "empty data": ("bin", lambda content: b""),
    "flipped bits": ("bin", lambda content: bytes(255 - byte for byte in content)),
    "truncated index": ("npz", lambda content: content[:40]),
    "empty index": ("npz", lambda content: b""),
    "garbage index": ("npz", lambda content: b"not an archive"),
}


@pytest.mark.parametrize("damage", [*DAMAGES, "no data"])
def test_damage_is_found_and_mended(bilm, tmp_path, damage, capsys, monkeypatch):
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.prepare(SENTENCES)
    expected = frozen_layers(bilm, SENTENCES)
    suffix, change = DAMAGES.get(damage, ("bin", None))
    (file,) = cache.folder.glob(f"*.{suffix}")
    file.write_bytes(change(file.read_bytes())) if change else file.unlink()
    cache = ActivationCache(bilm, tmp_path / "cache")
    assert torch.equal(cache.layers(SENTENCES), expected)
    assert len(capsys.readouterr().err.splitlines()) == 1
    ActivationCache(bilm, tmp_path / "cache").prepare(SENTENCES)
    again = ActivationCache(bilm, tmp_path / "cache")
    computes_nothing(bilm, monkeypatch)
    assert torch.equal(again.layers(SENTENCES), expected)
    assert capsys.readouterr().err == ""


def test_no_flipped_bit_anywhere_changes_a_layer(tmp_path):
    source, draw = FakeBiLM(), random.Random(0)
    cache = ActivationCache(source, tmp_path / "cache")
    for some in (SENTENCES[:1], SENTENCES):
        cache.prepare(some)
    whole, expected = tmp_path / "whole", frozen_layers(source, SENTENCES)
    shutil.copytree(cache.folder, whole)
    for _ in range(60):
        shutil.rmtree(cache.folder)
        shutil.copytree(whole, cache.folder)
        file = draw.choice(sorted(path for path in cache.folder.iterdir() if path.stat().st_size))
        file.write_bytes(flipped(file.read_bytes(), draw))
        opened = ActivationCache(source, tmp_path / "cache")
        assert torch.equal(opened.layers(SENTENCES), expected)
        opened.prepare(SENTENCES)
        assert torch.equal(ActivationCache(source, tmp_path / "cache").layers(SENTENCES), expected)


def test_damage_where_nothing_can_be_written_is_computed_around(tmp_path, monkeypatch, capsys):
    source = FakeBiLM()
    ActivationCache(source, tmp_path / "cache").prepare(SENTENCES)
    (index,) = (tmp_path / "cache").glob("*/*.npz")
    index.write_bytes(b"")

    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    for name in ("unlink", "mkdir"):
        monkeypatch.setattr(Path, name, refuse)
    cache = ActivationCache(source, tmp_path / "cache")
    cache.prepare(SENTENCES)
    assert torch.equal(cache.layers(SENTENCES), frozen_layers(source, SENTENCES))
    first, second = capsys.readouterr().err.splitlines()
    assert "damaged layers" in first
    assert "cannot be written" in second


@pytest.fixture
def theirs(bilm, tmp_path) -> Path:
    """Layers of another source in the folder of the biLM's, with checksums that match."""
    ActivationCache(FakeBiLM(), tmp_path / "cache").prepare(SENTENCES)
    (made,) = (tmp_path / "cache").iterdir()
    return made.rename(ActivationCache(bilm, tmp_path / "cache").folder)


def test_layers_that_others_could_have_written_are_not_read(bilm, theirs, tmp_path, capsys):
    expected = bilm.layers(SENTENCES)
    for number in (0o777, 0o757):
        theirs.chmod(number)
        cache = ActivationCache(bilm, tmp_path / "cache")
        cache.prepare(SENTENCES)
        close(cache, expected)
        said = capsys.readouterr().err
        assert f"no layers are kept in {theirs}: other users may write to it (chmod go-w)" in said


@for_each("suffix", ".bin .npz")
def test_a_shard_that_others_could_have_written_is_computed_again(bilm, theirs, tmp_path, capsys, suffix):
    """The folder is this user's alone by now; the file was written when it was not."""
    expected = bilm.layers(SENTENCES)
    (file,) = theirs.glob(f"*{suffix}")
    file.chmod(0o666)
    cache = ActivationCache(bilm, tmp_path / "cache")
    assert f"damaged layers, or layers that others could have written, in {theirs}" in capsys.readouterr().err
    close(cache, expected)
    cache.prepare(SENTENCES)
    ActivationCache(bilm, tmp_path / "cache").read([])
    assert capsys.readouterr().err == ""


def test_a_cache_made_under_any_umask_is_read_and_by_a_group_too(bilm, tmp_path, monkeypatch):
    before = os.umask(0)
    try:
        ActivationCache(bilm, tmp_path / "cache").prepare(SENTENCES)
    finally:
        os.umask(before)
    for path in ActivationCache(bilm, tmp_path / "cache").folder.iterdir():
        assert path.name == "lock" or not path.stat().st_mode & 0o022
        path.chmod(path.stat().st_mode & 0o750)  # as a team has it
    cache = ActivationCache(bilm, tmp_path / "cache")
    computes_nothing(bilm, monkeypatch)
    cache.layers(SENTENCES)


def test_what_a_killed_writer_left_goes(bilm, tmp_path):
    cache = ActivationCache(bilm, tmp_path / "cache")
    cache.folder.mkdir(parents=True)
    leftovers = [cache.folder / ".00000-1.bin.partial", cache.folder / "00000-1.bin"]  # the second lacks its index
    for leftover in leftovers:
        leftover.write_bytes(b"half")
    cache.prepare(SENTENCES)
    assert not any(leftover.exists() for leftover in leftovers)
    assert len(cache.shards.places) == 3


def test_much_is_said_before_it_is_written_and_little_is_not(bilm, tmp_path, monkeypatch, capsys):
    ActivationCache(bilm, tmp_path / "cache").prepare(SENTENCES)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("elmo_bench.layers.cache.SMALL", 100)
    ActivationCache(bilm, tmp_path / "cache").prepare([["new"] * 9])
    assert "layers for 1 sentences (9 tokens)" in capsys.readouterr().err


def test_two_machines_never_choose_one_name(tmp_path):
    names = []
    for machine in ("one", "two"):  # where the processes have the same number
        cache = ActivationCache(FakeBiLM(), tmp_path / machine)
        cache.prepare(SENTENCES)
        names += [path.name for path in cache.folder.glob("*.bin")]
    assert len(set(names)) == 2


def test_a_sentence_has_the_same_bits_in_every_batch(bilm):
    draw = random.Random(0)
    sentences = [["".join(draw.choices("abcd", k=draw.randint(1, 9))) for _ in range(n % 13)] for n in range(40)]
    together = bilm.module.encode(sentences)
    for size in (1, 3, 7):
        for start in range(0, len(sentences), size):
            bilm.module.forget_words()
            for i, layers in enumerate(bilm.module.encode(sentences[start : start + size]), start):
                assert torch.equal(layers, together[i])


def test_layers_are_computed_without_tf32_whatever_the_run_allows(bilm, tmp_path, monkeypatch):
    """Runs with `trainer.tf32` and without read the same cache."""
    seen, batches = [], bilm.batches
    monkeypatch.setattr(bilm, "batches", lambda each: seen.append(torch.backends.cudnn.allow_tf32) or batches(each))
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    ActivationCache(bilm, tmp_path / "cache").prepare([["a", "cat"]])
    assert seen == [False]
    assert torch.backends.cudnn.allow_tf32


def test_only_functions_of_the_sentence_are_cached(tmp_path, bilm):
    with pytest.raises(ValueError, match="one sentence"):
        ActivationCache(layers_of(tmp_path, "carry"), tmp_path)
    with pytest.raises(ValueError, match="of files"):
        ActivationCache(BilmLayers.of(BiLM(bilm.module.options)), tmp_path)


def prepare_and_read(folder, sentences, expected):
    cache = ActivationCache(layers_of(folder), folder / "cache")
    cache.prepare(sentences)
    assert torch.equal(cache.layers(sentences), expected)


def test_eight_processes_write_each_sentence_once_and_read_the_same_layers(bilm, tmp_path):
    sentences = [[f"w{i}", "x"] for i in range(200)]
    context = multiprocessing.get_context("fork")  # this process runs on one thread
    processes = []
    for number in range(8):
        some = sentences[number * 20 :]  # they overlap
        arguments = tmp_path, some, frozen_layers(bilm, some)
        processes.append(context.Process(target=prepare_and_read, args=arguments))
        processes[-1].start()
    for process in processes:
        process.join(PATIENCE)
        assert process.exitcode == 0
    cache = ActivationCache(bilm, tmp_path / "cache")
    assert len(cache.shards.places) == 200
    assert sum(path.stat().st_size for path in cache.folder.glob("*.bin")) == 200 * cache.blocks.nbytes(2)
    assert torch.equal(cache.layers(sentences), frozen_layers(bilm, sentences))


# From a `bilm:` block to a source or its cache.


PAIR = [["the", "cat"], ["sat"]]


@pytest.fixture
def block(tmp_path):
    """As a file in conf/bilm, its own keys last."""
    tiny_bilm.exported(tmp_path)
    common = {"_target_": "elmo_bench.layers.bilm.BilmLayers", "name": "custom", "tuned": False, "cache": True}
    own = {"options": str(tmp_path / "options.json"), "weights": str(tmp_path / "weights.hdf5"), "state": "zero"}
    return {**common, "download": None, "maker": None, "like": None, **own}


def test_the_page_names_the_source_and_gives_its_arguments(block):
    source = open_source(block)
    assert isinstance(source, BilmLayers)
    assert (source.module.state, source.settings["state"]) == ("zero", "zero")
    expected = BiLM.from_files(block["options"], block["weights"], "zero").layers(PAIR)
    torch.testing.assert_close(source.layers(PAIR), expected, rtol=0, atol=0)
    other = open_source({"_target_": "tests.fakes.FakeBiLM", "name": "fake", "seed": 4})
    torch.testing.assert_close(other.layers(PAIR), FakeBiLM(seed=4).layers(PAIR), rtol=0, atol=0)


def test_a_cache_is_made_where_it_is_asked_for_and_the_source_allows_it(block, tmp_path):
    cache = open_source(block, cache_root=tmp_path, cached=True)
    assert isinstance(cache, ActivationCache)
    assert cache.folder.parent == tmp_path / "activations"
    assert isinstance(open_source(block, cache_root=tmp_path), BilmLayers)
    assert isinstance(open_source({**block, "state": "carry"}, cache_root=tmp_path, cached=True), BilmLayers)


@cases(r"""
    changes        | message
    {"wieghts": 3} | bilm.wieghts: elmo_bench\S+BilmLayers takes no such argument; did you mean weights\?
    {"weights": null} | bilm=custom names no files: give bilm.weights=..., or set elmo.where=none
    {"state": "cold"} | state is 'cold'
    {"weights": "/nowhere"} | /nowhere: no such file
    {"_target_": "elmo_bench.layers.bilm.Nothing"} | bilm._target_=elmo_bench.layers.bilm.Nothing: .*no such
    {"_target_": "elmo_bench.nowhere.BilmLayers"} | bilm._target_=\S+: there is no such class
    {"_target_": "elmo_bench.layers.cache.open_source"} | not a class
    {"_target_": null} | there is no such class
""")
def test_what_cannot_be_meant_ends_in_one_line(block, changes, message):
    with refuses(message):
        open_source({**block, **changes})


def test_a_class_of_ones_own_has_its_arguments_as_keys():
    own = schema.source_schema({"_target_": "tests.fakes.FakeBiLM", "name": "fake"})
    assert fields(own)["seed"].default == 0
    assert "like" not in fields(own)
    block = own.model_validate({"_target_": "tests.fakes.FakeBiLM", "name": "fake", "seed": 4})
    assert open_source(block).layers(PAIR).equal(FakeBiLM(seed=4).layers(PAIR))
    with refuses("bilm._target_=tests.fakes.Nothing: there is no such class"):
        schema.source_schema({"_target_": "tests.fakes.Nothing"})


# A model that reads one layer has just that one stored.


SHORT = [["the", "cat", "sat"], ["a"], ["it", "rained"]]
SPLITS = {"train": [{"tokens": sentence} for sentence in SHORT]}


class Doubled(FakeBiLM):
    """A source whose layer 0 repeats a vector, as a biLM's does."""

    doubled_first_layer = True

    def _row(self, sentence):
        row = super()._row(sentence)
        half = self.width // 2
        row[0, :, half:] = row[0, :, :half]
        return row


def stored(source, folder, layers):
    found = stored_layers(ActivationCache(source, folder), SPLITS, ("tokens",), "", layers)  # type: ignore[arg-type]
    return found["train"]


def elmo_of(source, cache, layers):
    """ELMo_k at the input, with the layers read from the cache ahead of the batch."""
    elmo = Elmo(source, ElmoConfig(layers=layers, dropout=0.0, layer_norm="token"))
    mask = torch.tensor([[True] * len(s) + [False] * (3 - len(s)) for s in SHORT])
    read = cache.read([[sentence] for sentence in SHORT])
    return elmo(Tokens(torch.zeros(3, 3, dtype=torch.long), None, SHORT, mask, layers=read))["input"]


@pytest.mark.parametrize("source", [FakeBiLM(), Doubled()], ids=["all layers alike", "layer 0 doubled"])
@for_each("layers", "last 0 1")
def test_the_vectors_are_those_that_all_stored_layers_give(source, layers, tmp_path):
    one, whole = stored(source, tmp_path / "one", layers), stored(source, tmp_path / "all", "all")
    assert torch.equal(elmo_of(source, one, layers), elmo_of(source, whole, layers))
    halved = source.doubled_first_layer and layers == 0
    assert one.blocks.nbytes(1) == source.width * 2 // (2 if halved else 1) < whole.blocks.nbytes(1)
    assert (one.n_layers, one.width) == (whole.n_layers, whole.width)  # what the model and the record speak of


def test_each_layer_has_a_folder_and_what_is_stored_whole_is_read(tmp_path):
    source = FakeBiLM()
    folders = {stored(source, tmp_path, layers).folder for layers in ("last", 0, 1)}
    assert len(folders) == 3
    whole = stored(source, tmp_path, "all")
    assert stored(source, tmp_path, "last").folder == whole.folder
    assert stored(source, tmp_path / "elsewhere", [0.5, 0.5, 0.0]).layer is None  # a mix of two needs them


def test_before_much_is_written_the_way_to_write_less_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("elmo_bench.layers.cache.SMALL", 0)
    monkeypatch.setattr("elmo_bench.layers.cache.LARGE", 1)
    stored(FakeBiLM(), tmp_path, "all")
    assert "with elmo.layers=last, or one layer's number, only that layer is stored" in capsys.readouterr().err
    stored(FakeBiLM(), tmp_path, "last")
    assert "elmo.layers" not in capsys.readouterr().err
