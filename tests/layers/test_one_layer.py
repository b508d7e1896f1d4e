"""A model that reads one layer of its source has just that layer stored."""

import pytest
import torch

from elmo_bench.configuration.schema import ElmoConfig
from elmo_bench.embedding.representation import Elmo
from elmo_bench.layers import cache as module
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.running.data import stored_layers
from elmo_bench.task import Tokens
from tests.fakes import FakeBiLM

SENTENCES = [["the", "cat", "sat"], ["a"], ["it", "rained"]]
SPLITS = {"train": [{"tokens": sentence} for sentence in SENTENCES]}


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
    mask = torch.tensor([[True] * len(s) + [False] * (3 - len(s)) for s in SENTENCES])
    read = cache.read([[sentence] for sentence in SENTENCES])
    return elmo(Tokens(torch.zeros(3, 3, dtype=torch.long), None, SENTENCES, mask, layers=read))["input"]


@pytest.mark.parametrize("source", [FakeBiLM(), Doubled()], ids=["all layers alike", "layer 0 doubled"])
@pytest.mark.parametrize("layers", ["last", 0, 1])
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
    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "LARGE", 1)
    stored(FakeBiLM(), tmp_path, "all")
    assert "with elmo.layers=last, or one layer's number, only that layer is stored" in capsys.readouterr().err
    stored(FakeBiLM(), tmp_path, "last")
    assert "elmo.layers" not in capsys.readouterr().err
