"""The control: a biLM before its training."""

import dataclasses
import json

import pytest

from elmo_bench.bilm import untrained
from elmo_bench.bilm.model import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.configuration import pages
from elmo_bench.mini.bilm import ensure_bilm
from elmo_bench.system.errors import UserError
from tests.test_mini_senses import OPTIONS


@pytest.fixture
def config(tmp_path):
    """Of a scale whose biLM has the options of the test."""
    Options.parse(OPTIONS).write(tmp_path / "options.json")
    return {"bilm": {"options": str(tmp_path / "options.json"), "weights": str(tmp_path / "new/mini.safetensors")}}


def test_random_weights_of_the_options_are_written_once(config):
    path = untrained.ensure(config)
    stamp, digest = path.stat().st_mtime_ns, BiLM.from_files(config["bilm"]["options"], path).sha256
    assert untrained.ensure(config) == path
    assert path.stat().st_mtime_ns == stamp
    path.unlink()
    untrained.ensure(config)
    assert BiLM.from_files(config["bilm"]["options"], path).sha256 == digest  # the same on every call


def test_weights_that_do_not_fit_are_replaced(config):
    path = untrained.ensure(config)
    path.write_bytes(path.read_bytes()[:100])
    untrained.ensure(config)
    wider = {**OPTIONS, "lstm": {**OPTIONS["lstm"], "dim": 16}}
    Options.parse(wider).write(config["bilm"]["options"])
    untrained.ensure(config)
    assert BiLM.from_files(config["bilm"]["options"], path).options.dim == 16


def test_missing_options_are_named(config, tmp_path):
    (tmp_path / "options.json").unlink()
    with pytest.raises(UserError, match="options.json"):
        untrained.ensure(config)


@pytest.mark.parametrize("scale", ["mini", "open", "paper"])
def test_every_scale_has_the_control(scale):
    cfg = pages.compose(["task=ner", f"scale={scale}", "bilm=untrained"])
    own = pages.compose(["task=ner", f"scale={scale}"])
    assert cfg.bilm.name == "untrained"
    assert cfg.bilm.options == own.bilm.options
    assert cfg.bilm.weights != own.bilm.weights
    assert "prepare" not in list(own.bilm)  # what is recorded without it stays so


def test_a_bilm_of_another_recipe_is_not_taken(tmp_path, monkeypatch):
    recipe = pages.compose(["pretrain=mini", f"root={tmp_path}"], "pretrain").recipe
    made = []

    def pretrain(recipe, root, work, output, *rest):
        made.append(recipe)
        output.mkdir(exist_ok=True)
        (output / "card.json").write_text(json.dumps({"recipe": dataclasses.asdict(recipe)}))

    monkeypatch.setattr("elmo_bench.bilm.pretraining.run.pretrain", pretrain)
    for _ in range(2):
        ensure_bilm(tmp_path)
    assert [one.tokens for one in made] == [recipe.tokens]  # once
    card = {"recipe": {**dataclasses.asdict(made[0]), "tokens": 1}}
    (tmp_path / "bilm" / "card.json").write_text(json.dumps(card))
    ensure_bilm(tmp_path)
    assert len(made) == 2
