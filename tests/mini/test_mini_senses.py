"""The figure of senses: nearest neighbours by layer."""

import json
import random
import shutil

import pytest
import torch

from elmo_bench import mini
from elmo_bench.analysis import word_senses as senses
from elmo_bench.bilm.model import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.commands.analysis import senses as command
from elmo_bench.configuration import pages, schema
from elmo_bench.system.errors import UserError
from tests.mini.test_mini import SMALL

OPTIONS = {
    "lstm": {
        "use_skip_connections": True, "projection_dim": 4, "cell_clip": 3, "proj_clip": 3, "dim": 8, "n_layers": 2,
    },
    "char_cnn": {
        "activation": "relu", "filters": [[1, 4], [2, 4]], "n_highway": 1, "embedding": {"dim": 4},
        "n_characters": 262, "max_characters_per_token": 50,
    },
}  # fmt: skip


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)


def test_accuracy_is_that_of_the_nearest_other_occurrence():
    x = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]])
    assert senses.accuracy(x, ["a", "a", "b", "b"]) == 1
    assert senses.accuracy(x, ["a", "b", "a", "b"]) == 0
    assert senses.accuracy(x, ["a", "a", "a", "b"]) == pytest.approx((2 / 3 + 0) / 2)  # mean over the senses


def test_equally_near_occurrences_give_chance():
    labels = ["a"] * 6 + ["b"] * 3
    assert senses.accuracy(torch.ones(9, 5), labels) == pytest.approx((5 / 8 + 2 / 8) / 2)
    assert senses.chance(labels) == pytest.approx((5 / 8 + 2 / 8) / 2)
    draw = random.Random(1)
    x = torch.randn(9, 5)
    picked = []
    for _ in range(3000):
        order = draw.sample(labels, 9)
        picked.append(senses.accuracy(x, order))
    assert sum(picked) / len(picked) == pytest.approx(senses.chance(labels), abs=0.02)


def test_accuracy_does_not_depend_on_length_or_order():
    x, labels = torch.randn(12, 7), ["a", "b", "b"] * 4
    order = torch.randperm(12)
    expected = senses.accuracy(x, labels)
    assert senses.accuracy(x * torch.rand(12, 1).add(0.1), labels) == pytest.approx(expected)
    assert senses.accuracy(x[order], [labels[i] for i in order]) == pytest.approx(expected)


def test_the_plane_keeps_distances_of_flat_data():
    flat = torch.randn(20, 2).double() @ torch.linalg.qr(torch.randn(6, 2).double()).Q.T + 3
    assert torch.allclose(torch.cdist(senses.plane(flat), senses.plane(flat)), torch.cdist(flat, flat), atol=1e-6)
    assert not senses.plane(torch.ones(5, 6)).any()


@pytest.fixture
def configured(tmp_path):
    """Arguments for generated data of several thousand words and a random biLM."""
    sizes = {**SMALL, "lm": [500, 500, 8000]}
    mini.generate(tmp_path / "data", 1, sizes)
    BiLM(Options.parse(OPTIONS)).export(tmp_path / "options.json", tmp_path / "weights.hdf5")
    return [
        "scale=mini", "scale.maker=null", f"scale.folder={tmp_path}/data", "bilm=custom", "bilm.name=toy",
        f"bilm.options={tmp_path}/options.json", f"bilm.weights={tmp_path}/weights.hdf5", f"results_root={tmp_path}",
    ]  # fmt: skip


def test_forms_are_the_words_that_the_file_of_senses_names(configured, tmp_path):
    sentences, forms = senses.read(tmp_path / "data")
    assert forms
    for form in forms:
        assert {sentences[i][token] for i, token in form.places} == {form.form}
        assert len(set(form.senses)) == 2
        assert min(form.senses.count(sense) for sense in set(form.senses)) >= senses.LEAST


def test_the_figure_is_written_and_layer_0_is_at_chance(configured, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["senses", *configured])
    command.main()
    page = json.loads((tmp_path / "figures" / "senses-toy.json").read_text())
    assert (tmp_path / "figures" / page["picture"]).read_bytes().startswith(b"\x89PNG")
    for row in page["measured"]["forms"]:
        assert row["layers"][0] == pytest.approx(row["chance"], abs=0.01)
        assert len(row["layers"]) == 3
    assert page["rows"][0][0] == "all"
    assert "layer 2" in capsys.readouterr().out


def test_what_is_missing_is_named(configured, tmp_path):
    shutil.rmtree(tmp_path / "data" / "lm")
    with pytest.raises(UserError, match="needs a mini data set"):
        senses.run(schema.typed(pages.compose(configured)))
