"""The mini biLM: brought by the project, or trained here; another seed is another model and another run."""

import random
import shutil
from pathlib import Path

import pytest

from elmo_bench.bilm.card import CARD, FILES, read_card, write_card
from elmo_bench.configuration import composing
from elmo_bench.mini import MiniData
from elmo_bench.mini.bilm import MiniBilm
from elmo_bench.records.missing import check_files
from elmo_bench.records.settings import Identity
from elmo_bench.system import places
from elmo_bench.system.storage.hashing import sha256
from tests.damage import flipped
from tests.fakes import refuses


def mini(tmp_path, *changes):
    return composing.run_config(["task=ner", "scale=mini", f"cache_root={tmp_path}", *changes])


@pytest.mark.slow
def test_another_seed_is_another_recipe_in_another_folder(tmp_path):
    page, one, two = (mini(tmp_path, *change) for change in ((), ("bilm.seed=1",), ("bilm.seed=2",)))
    assert Identity(page).run == Identity(one).run != Identity(two).run
    recipes = [Identity(run).settings["bilm"]["recipe"] for run in (one, two)]
    assert recipes[0] | {"seed": 2} == recipes[1]
    assert [Path(run.bilm.weights).parent.name for run in (one, two)] == ["bilm", "bilm-seed2"]
    assert Path(two.bilm.options).parent == Path(two.bilm.weights).parent
    assert two.variant == {"bilm.seed": 2}
    assert Identity(mini(tmp_path, "arm=baseline")).run == Identity(mini(tmp_path, "arm=baseline", "bilm.seed=2")).run


@pytest.mark.parametrize("choice", [("bilm=untrained",), ("scale=open", "data_root=x")])
def test_a_bilm_that_no_run_trains_has_no_seed(tmp_path, choice):
    with refuses(r"^bilm\.seed=2: bilm=\w+ is not trained by a run; bilm=mini is$"):
        check_files(mini(tmp_path, *choice, "bilm.seed=2"))


@pytest.fixture
def trained(monkeypatch) -> list[tuple[int, str, str]]:
    """The seeds and folders of the biLMs that were trained instead of copied."""
    made = []

    def pretrain(recipe, root, work, output, *_):
        made.append((recipe.seed, work.name, output.name))

    monkeypatch.setattr("elmo_bench.bilm.pretraining.run.pretrain", pretrain)
    return made


@pytest.fixture
def brought(tmp_path) -> Path:
    """A folder as `models/mini`, of the recipe in conf and a text of one sentence."""
    (tmp_path / "v5-seed1/lm").mkdir(parents=True)
    (tmp_path / "v5-seed1/lm/train.txt").write_text("Ida sang .\n")
    folder = tmp_path / "models/mini"
    folder.mkdir(parents=True)
    for name in FILES:
        (folder / name).write_text(f"of {name}")
    recipe = read_card(places.ROOT / "models/mini")["recipe"]
    write_card(folder, {"recipe": recipe, "sha256": {"lm/train.txt": sha256(tmp_path / "v5-seed1/lm/train.txt")}})
    return folder


def test_the_bilm_that_comes_with_the_project_is_copied(tmp_path, brought, trained):
    page = mini(tmp_path, f"models_root={tmp_path}/models", f"scale.folder={tmp_path}/v5-seed1")
    made = MiniBilm(page.bilm, page).make()
    assert {path.name: path.read_bytes() for path in made.iterdir()} == {
        path.name: path.read_bytes() for path in brought.iterdir()
    }
    assert not trained


@pytest.mark.parametrize("case", ["text", "no text", "seed", *FILES, CARD, "nothing brought"])
def test_it_is_not_used_for_another_text_or_seed_or_if_damaged(tmp_path, brought, trained, case):
    """Then one is trained, in folders of its seed's own."""
    seed, models = 2 if case == "seed" else 1, "none" if case == "nothing brought" else "models"
    text = tmp_path / "v5-seed1/lm/train.txt"
    if case == "text":
        text.write_text("Ada sang .\n")
    elif case == "no text":
        text.unlink()
    elif case not in ("seed", "nothing brought"):
        (brought / case).write_bytes(flipped((brought / case).read_bytes(), random.Random(1)))
    page = mini(tmp_path, f"models_root={tmp_path}/{models}", f"scale.folder={tmp_path}/v5-seed1", f"bilm.seed={seed}")
    assert not list(MiniBilm(page.bilm, page).make().glob("*"))
    assert trained == [(2, "pretrain-seed2", "bilm-seed2") if seed == 2 else (1, "pretrain", "bilm")]


@pytest.mark.slow
def test_the_projects_own_is_that_of_the_page_and_the_generated_text(tmp_path, trained):
    """The text is the one in this checkout's cache, generated where it is not there yet."""
    run = composing.run_config(["task=coref"])
    (tmp_path / "lm").mkdir()
    shutil.copy(MiniData(run.scale, run).make() / "lm/train.txt", tmp_path / "lm")
    page = mini(tmp_path, f"scale.folder={tmp_path}")
    assert (MiniBilm(page.bilm, page).make() / "weights.hdf5").is_file()
    assert not trained
