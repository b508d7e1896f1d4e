"""The control: a biLM before its training."""

import random
from typing import Any

import pytest
from omegaconf import OmegaConf

from elmo_bench.bilm.model import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.bilm.untrained import UntrainedBilm
from elmo_bench.configuration import composing
from elmo_bench.configuration.schema import BilmConfig
from tests.damage import flipped
from tests.fakes import for_each, refuses
from tests.tiny_bilm import OPTIONS

pytestmark = pytest.mark.slow


@pytest.fixture
def block(tmp_path):
    """Of a scale whose own biLM has the options of the test."""
    Options.parse(OPTIONS).write(tmp_path / "own.json")
    return BilmConfig(
        _target_="elmo_bench.layers.bilm.BilmLayers",
        name="untrained",
        options=str(tmp_path / "new/mini.json"),
        weights=str(tmp_path / "new/mini.safetensors"),
        like=str(tmp_path / "own.json"),
    )


def test_random_weights_of_the_options_are_written_once(block):
    path = UntrainedBilm(block).make()
    assert str(path) == block.weights
    assert Options.read(block.options) == Options.parse(OPTIONS)
    stamp, digest = path.stat().st_mtime_ns, BiLM.from_files(block.options, path).sha256
    assert UntrainedBilm(block).make() == path
    assert path.stat().st_mtime_ns == stamp
    path.unlink()
    UntrainedBilm(block).make()
    assert BiLM.from_files(block.options, path).sha256 == digest  # the same on every call


def test_weights_that_are_damaged_or_do_not_fit_are_replaced(block):
    path, recipe = UntrainedBilm(block).make(), UntrainedBilm(block).recipe()
    content, note = path.read_bytes(), path.with_name(f"{path.name}.sha256")
    assert note.read_text().endswith(f"  {path.name}\n")  # as sha256sum writes it
    for damaged in (flipped(content, random.Random(4)), content[:100]):
        path.write_bytes(damaged)
        assert UntrainedBilm(block).make().read_bytes() == content
    note.unlink()
    assert UntrainedBilm(block).make().read_bytes() == content
    assert note.is_file()
    wider = {**OPTIONS, "lstm": {**OPTIONS["lstm"], "dim": 16}}
    Options.parse(wider).write(block.like)
    UntrainedBilm(block).make()
    assert BiLM.from_files(block.options, path).options.lstm.dim == 16
    assert UntrainedBilm(block).recipe() != recipe


def test_a_missing_file_of_sizes_is_named(block, tmp_path):
    (tmp_path / "own.json").unlink()
    with refuses("own.json"):
        UntrainedBilm(block).make()
    assert not (tmp_path / "new").exists()


@for_each("scale", "mini open")
def test_every_scale_has_the_control(scale):
    cfg = composing.compose(["task=ner", f"scale={scale}", "bilm=untrained"])
    own = composing.compose(["task=ner", f"scale={scale}"])
    assert cfg.bilm.name == "untrained"
    assert cfg.bilm.maker == "elmo_bench.bilm.untrained.UntrainedBilm"
    assert cfg.bilm.weights != own.bilm.weights
    if scale == "mini":  # its own biLM is not there before it is trained: its recipe has the sizes
        options: Any = OmegaConf.to_container(composing.compose(["pretrain=mini"], "pretrain").recipe.options)
        assert UntrainedBilm(cfg.bilm).recipe()["options"] == options
    else:
        assert cfg.bilm.like == own.bilm.options
