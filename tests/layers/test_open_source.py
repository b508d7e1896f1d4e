"""From a `bilm:` block to a source of layers: the class that it names, with the block's own keys as arguments."""

import pytest
import torch

from elmo_bench.bilm import BiLM
from elmo_bench.configuration import schema
from elmo_bench.configuration.keys import fields
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.layers.cache import ActivationCache, open_source
from elmo_bench.system.errors import UserError
from tests import tiny_bilm
from tests.fakes import FakeBiLM

SENTENCES = [["the", "cat"], ["sat"]]


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
    expected = BiLM.from_files(block["options"], block["weights"], "zero").layers(SENTENCES)
    torch.testing.assert_close(source.layers(SENTENCES), expected, rtol=0, atol=0)
    other = open_source({"_target_": "tests.fakes.FakeBiLM", "name": "fake", "seed": 4})
    torch.testing.assert_close(other.layers(SENTENCES), FakeBiLM(seed=4).layers(SENTENCES), rtol=0, atol=0)


def test_a_cache_is_made_where_it_is_asked_for_and_the_source_allows_it(block, tmp_path):
    cache = open_source(block, cache_root=tmp_path, cached=True)
    assert isinstance(cache, ActivationCache)
    assert cache.folder.parent == tmp_path / "activations"
    assert isinstance(open_source(block, cache_root=tmp_path), BilmLayers)
    assert isinstance(open_source({**block, "state": "carry"}, cache_root=tmp_path, cached=True), BilmLayers)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"wieghts": 3}, r"bilm.wieghts: elmo_bench\S+BilmLayers takes no such argument; did you mean weights\?"),
        ({"weights": None}, r"bilm=custom names no files: give bilm.weights=..., or set elmo.where=none"),
        ({"state": "cold"}, "state is 'cold'"),
        ({"weights": "/nowhere"}, "/nowhere: no such file"),
        ({"_target_": "elmo_bench.layers.bilm.Nothing"}, r"bilm._target_=elmo_bench.layers.bilm.Nothing: .*no such"),
        ({"_target_": "elmo_bench.nowhere.BilmLayers"}, r"bilm._target_=\S+: there is no such class"),
        ({"_target_": "elmo_bench.layers.cache.open_source"}, "not a class"),
        ({"_target_": None}, "there is no such class"),
    ],
)
def test_what_cannot_be_meant_ends_in_one_line(block, changes, message):
    with pytest.raises(UserError, match=message) as raised:
        open_source({**block, **changes})
    assert "\n" not in str(raised.value)


def test_a_class_of_ones_own_has_its_arguments_as_keys():
    own = schema.source_schema({"_target_": "tests.fakes.FakeBiLM", "name": "fake"})
    assert fields(own)["seed"].default == 0
    assert "like" not in fields(own)
    block = own.model_validate({"_target_": "tests.fakes.FakeBiLM", "name": "fake", "seed": 4})
    assert open_source(block).layers(SENTENCES).equal(FakeBiLM(seed=4).layers(SENTENCES))
    with pytest.raises(UserError, match="bilm._target_=tests.fakes.Nothing: there is no such class"):
        schema.source_schema({"_target_": "tests.fakes.Nothing"})
