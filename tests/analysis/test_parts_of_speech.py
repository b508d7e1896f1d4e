"""Table 6: tagged text in columns, and the linear classifier."""

import json

import pytest
import torch

from elmo_bench.analysis import probe, tagged
from elmo_bench.analysis.settings import PosConfig
from elmo_bench.commands.analysis import pos as pos_command
from elmo_bench.system.errors import UserError
from tests import tiny_bert
from tests.tiny_bilm import exported, overrides

CONLLU = """# text = She cannot go
1\tShe\tshe\tPRON\tPRP
2-3\tcannot\t_\t_\t_
2\tcan\tcan\tAUX\tMD
3\tnot\tnot\tPART\tRB
3.1\tgo\tgo\tVERB\tVB
4\tgo\tgo\tVERB\tVB

1\tGo\tgo\tVERB\tVB
2\t#\t#\tSYM\tNFP

"""
CONLLU_KEYS = {"word": 1, "tags": {"UPOS": 3, "XPOS": 4}, "numbers": 0, "comment": "#"}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU, encoding="utf-8")
    return path


def test_ranges_and_empty_nodes_are_no_words(path):
    read = tagged.read(path, PosConfig(**CONLLU_KEYS))
    assert read.sentences == [["She", "can", "not", "go"], ["Go", "#"]]
    assert read.tags == {"UPOS": [["PRON", "AUX", "PART", "VERB"], ["VERB", "SYM"]],
                         "XPOS": [["PRP", "MD", "RB", "VB"], ["VB", "NFP"]]}  # fmt: skip
    assert tagged.read(path, PosConfig(**CONLLU_KEYS, sentences=1)).lengths == [4]


@pytest.mark.parametrize(
    ("old", "new", "keys", "match"),
    [
        ("4\tgo\tgo\tVERB\tVB", "4\tgo\tgo\tVERB", {}, r"a\.conllu:7: 4 columns, but the lines before have 5"),
        ("", "", {"tags": {"XPOS": 9}}, r"a\.conllu:2: column 9 is missing"),
        ("", "", {"tags": "XPOS"}, "tags=XPOS: expected columns"),
    ],
)
def test_ragged_columns_and_wrong_columns_are_one_line(path, old, new, keys, match):
    path.write_text(CONLLU.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=match) as caught:
        tagged.read(path, PosConfig(**{**CONLLU_KEYS, **keys}))
    assert "\n" not in str(caught.value)


def separable(number, generator):
    """Points of three tags that a line separates in the plane, far from the origin and of small spread."""
    y = torch.randint(3, (number,), generator=generator)
    centres = torch.tensor([[50.0, 0.0], [50.01, 0.0], [50.0, 0.01]])
    return probe.Split((centres[y] + 0.001 * torch.randn(number, 2, generator=generator)).float(), y)


def test_the_classifier_finds_what_is_linear():
    generator = torch.Generator().manual_seed(1)
    train, dev, test = (separable(n, generator) for n in (600, 100, 200))
    settings = PosConfig(tags={}, epochs=20, batch=32, lr=0.05)
    classify = probe.train(train, dev, 3, settings, seed=1)
    assert (classify(test.x) == test.y).float().mean() > 0.99
    again = probe.train(train, dev, 3, settings, seed=1)
    assert torch.equal(classify(test.x), again(test.x))


def test_the_best_epoch_on_dev_is_kept():
    """With dev labels turned round, the least trained classifier is the best."""
    generator = torch.Generator().manual_seed(1)
    train, dev = separable(600, generator), separable(300, generator)
    turned = probe.Split(dev.x, (dev.y + 1) % 3)

    def accuracy(epochs):
        classify = probe.train(train, turned, 3, PosConfig(tags={}, epochs=epochs, batch=32, lr=0.05), seed=1)
        return (classify(dev.x) == turned.y).float().mean()

    assert accuracy(20) >= accuracy(1)


def test_a_tag_that_train_lacks_is_never_right():
    (train, test), number = probe.numbered([[["A", "B"]], [["B", "C"]]])
    assert (train.tolist(), test.tolist(), number) == ([0, 1], [1, -1], 2)


@pytest.fixture
def bilm(tmp_path):
    return exported(tmp_path)


def test_a_layer_has_the_vectors_of_all_words_in_order(bilm):
    sentences = [["A", "b"], ["c"], ["d", "e", "f"]] * 30
    found = probe.layer(bilm, sentences, 2)
    expected = torch.cat([layers[2] for layers in bilm.module.encode(sentences)]).half()
    assert torch.equal(found, expected)


@pytest.mark.slow
def test_the_table_has_every_layer_and_both_tag_sets(path, bilm, tmp_path, monkeypatch, capsys):
    data = [f"{split}={path}" for split in ("train", "dev", "test")]
    arguments = [*overrides(tmp_path), *data, "controls=[]", "draws=100", "epochs=2", "seeds=2"]
    (tmp_path / "glove.6B.50d.txt").write_text("she" + " 0.5" * 50 + "\ngo" + " 0.25" * 50 + "\n", encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["pos", *arguments])
    pos_command.main()
    (place,) = (tmp_path / "analysis" / "open" / "pos").glob("*.json")
    record = json.loads(place.read_text())
    assert record["header"] == ["vectors", "UPOS", "XPOS", "the paper (PTB)"]
    assert [row[0] for row in record["rows"]] == ["glove.6B.50d", *(f"toy, layer {i}" for i in range(3))]
    assert [row[-1] for row in record["rows"]] == ["", "", "97.3", "96.8"]
    for scores in record["measured"].values():
        assert {tags: len(values) for tags, values in scores.items()} == {"UPOS": 2, "XPOS": 2}
        assert all(0 <= value <= 100 for values in scores.values() for value in values)
    assert record["note"].count("parts of speech (") == 2
    assert "±" in capsys.readouterr().out


@pytest.mark.slow
def test_another_source_than_a_bilm_is_not_held_against_the_paper(path, tmp_path, monkeypatch):
    pytest.importorskip("transformers")
    source = ["bilm=transformers", f"bilm.path={tiny_bert.write(tmp_path / 'bert')}", "bilm.name=mine"]
    data = [f"{split}={path}" for split in ("train", "dev", "test")]
    how = ["controls=[]", "vectors=null", "draws=100", "epochs=1", "seeds=1"]
    arguments = [*overrides(tmp_path)[:5], *source, *data, *how]
    monkeypatch.setattr("sys.argv", ["pos", *arguments])
    pos_command.main()
    (place,) = (tmp_path / "analysis" / "open" / "pos").glob("*.json")
    record = json.loads(place.read_text())
    assert [row[0] for row in record["rows"]] == [f"mine, layer {i}" for i in range(3)]
    assert {row[-1] for row in record["rows"]} == {""}
    assert record["note"].count("scores highest at parts of speech") == 2
