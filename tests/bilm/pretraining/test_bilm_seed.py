"""The mini biLM trained from another seed: another model in another folder, and another run."""

from __future__ import annotations

from pathlib import Path

import pytest

from elmo_bench.configuration import pages, schema
from elmo_bench.identity.arms import placed
from elmo_bench.identity.identity import Identity
from elmo_bench.mini.bilm import ensure_bilm
from elmo_bench.system.errors import UserError


def mini(tmp_path, *changes):
    return schema.typed(pages.compose(["task=ner", "scale=mini", f"cache_root={tmp_path}", *changes]))


@pytest.mark.slow
def test_another_seed_is_another_recipe_in_another_folder(tmp_path):
    page, one, two = (mini(tmp_path, *change) for change in ((), ("bilm.seed=1",), ("bilm.seed=2",)))
    assert Identity(page).run == Identity(one).run != Identity(two).run
    recipes = [Identity(run).settings["bilm"]["recipe"] for run in (one, two)]
    assert recipes[0] | {"seed": 2} == recipes[1]
    assert [Path(run.bilm.weights).parent.name for run in (one, two)] == ["bilm", "bilm-seed2"]
    assert Path(two.bilm.options).parent == Path(two.bilm.weights).parent
    assert placed(two) == ("elmo", {"bilm.seed": 2})
    assert Identity(mini(tmp_path, "arm=baseline")).run == Identity(mini(tmp_path, "arm=baseline", "bilm.seed=2")).run


def test_each_seed_is_trained_in_its_own_folder(tmp_path, monkeypatch):
    made = []
    monkeypatch.setattr("elmo_bench.bilm.pretraining.run.pretrain", lambda *given: made.append(given))
    for seed in (1, 2):
        ensure_bilm(tmp_path, seed)
    assert [recipe.seed for recipe, *_ in made] == [1, 2]
    folders = [(work.name, output.name) for _, _, work, output, *_ in made]
    assert folders == [("pretrain", "bilm"), ("pretrain-seed2", "bilm-seed2")]


@pytest.mark.parametrize("choice", [("bilm=untrained",), ("scale=open", "data_root=x")])
def test_a_bilm_that_no_run_trains_has_no_seed(tmp_path, choice):
    with pytest.raises(UserError, match=r"^bilm\.seed=2: bilm=\w+ is not trained by a run; bilm=mini is$"):
        Identity(mini(tmp_path, *choice, "bilm.seed=2"))
