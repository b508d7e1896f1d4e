"""Table 6: tagged text in columns, and the linear classifier."""

import pytest
import torch
from hydra.errors import HydraException

from elmo_bench.analysis import pos, settings
from elmo_bench.analysis.settings import PosConfig
from elmo_bench.commands.analysis import Pos
from elmo_bench.records import studies
from elmo_bench.system import console
from elmo_bench.system.errors import UserError
from tests import tiny_bilm
from tests.fakes import cases, refuses
from tests.tiny_bilm import exported, overrides

CONLLU = """# newdoc id = a
# text = She cannot go
1\tShe\tshe\tPRON\tPRP
2-3\tcannot\t_\t_\t_
2\tcan\tcan\tAUX\tMD
3\tnot\tnot\tPART\tRB
3.1\tgo\tgo\tVERB\tVB
4\tgo\tgo\tVERB\tVB

# newdoc id = b
1\tGo\tgo\tVERB\tVB
2\t#\t#\tSYM\tNFP

"""
CONLLU_KEYS = {"word": 1, "tags": {"UPOS": 3, "XPOS": 4}, "numbers": 0, "comment": "#"}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a.conllu"
    path.write_text(CONLLU)
    return path


def test_ranges_and_empty_nodes_are_no_words(path):
    read = pos.read(path, PosConfig(**CONLLU_KEYS))
    assert read.sentences == ["She can not go".split(), ["Go", "#"]]
    assert read.tags == {"UPOS": ["PRON AUX PART VERB".split(), ["VERB", "SYM"]],
                         "XPOS": ["PRP MD RB VB".split(), ["VB", "NFP"]]}  # fmt: skip
    assert pos.read(path, PosConfig(**CONLLU_KEYS, sentences=1)).lengths == [4]
    assert read.documents == ["a", "b"]


@cases(r"""
    text | keys | documents
    "#begin document (x/y); part 000\nA DT\n\nB DT\n\n#end document\n#begin document (z)\nC DT\n" | \
        {"comment": "#", "apart": true} | ["(x/y)", "(x/y)", "(z)"]
    "# newdoc\nA DT\n\n# newdoc\nB DT\n" | {"comment": "#"} | ["document 1", "document 2"]
    "A DT\n\nB DT\n" | {} | [null, null]
""")
def test_a_sentence_knows_its_document(tmp_path, text, keys, documents, file):
    file(text, "a.txt")
    assert pos.read(tmp_path / "a.txt", PosConfig(tags={"XPOS": 1}, **keys)).documents == documents


@cases(r"""
    old                   | new               | keys | match
    "4\tgo\tgo\tVERB\tVB" | "4\tgo\tgo\tVERB" | {} | a\.conllu:8: 4 columns, but the lines before have 5
    "" | "" | {"tags": {"XPOS": 9}} | a\.conllu:3: column 9 is missing
    "" | "" | {"tags": "XPOS"} | tags=XPOS: expected columns
""")
def test_ragged_columns_and_wrong_columns_are_one_line(path, old, new, keys, match):
    path.write_text(CONLLU.replace(old, new))
    with refuses(match):
        pos.read(path, PosConfig(**{**CONLLU_KEYS, **keys}))


def separable(number, generator):
    """Points of three tags that a line separates in the plane, far from the origin and of small spread."""
    y = torch.randint(3, (number,), generator=generator)
    centres = torch.tensor([[50.0, 0.0], [50.01, 0.0], [50.0, 0.01]])
    return pos.Split((centres[y] + 0.001 * torch.randn(number, 2, generator=generator)).float(), y)


def test_the_classifier_finds_what_is_linear():
    generator = torch.Generator().manual_seed(1)
    train, dev, test = (separable(n, generator) for n in (600, 100, 200))
    settings = PosConfig(tags={}, epochs=20, batch=32, lr=0.05)
    classify = pos.classifier(train, dev, 3, settings, seed=1)
    assert (classify(test.x) == test.y).float().mean() > 0.99
    again = pos.classifier(train, dev, 3, settings, seed=1)
    assert torch.equal(classify(test.x), again(test.x))


def test_the_best_epoch_on_dev_is_kept():
    """With dev labels turned round, the least trained classifier is the best."""
    generator = torch.Generator().manual_seed(1)
    train, dev = separable(600, generator), separable(300, generator)
    turned = pos.Split(dev.x, (dev.y + 1) % 3)

    def accuracy(epochs):
        classify = pos.classifier(train, turned, 3, PosConfig(tags={}, epochs=epochs, batch=32, lr=0.002), seed=1)
        return (classify(dev.x) == turned.y).float().mean()

    assert accuracy(20) >= accuracy(1) > 0.05


def test_a_tag_that_train_lacks_is_never_right():
    (train, test), number = pos.numbered([[["A", "B"]], [["B", "C"]]])
    assert (train.tolist(), test.tolist(), number) == ([0, 1], [1, -1], 2)


@pytest.fixture
def bilm(tmp_path):
    return exported(tmp_path)


def test_a_layer_has_the_vectors_of_all_words_in_order(bilm):
    sentences = [["A", "b"], ["c"], ["d", "e", "f"]] * 30
    found = pos.layer(bilm, sentences, 2)
    expected = torch.cat([layers[2] for layers in bilm.module.encode(sentences)]).half()
    assert torch.equal(found, expected)


@pytest.mark.slow
def test_the_table_has_every_layer_and_both_tag_sets(path, bilm, tmp_path, call, file):
    data = [f"{split}={path}" for split in ("train", "dev", "test")]
    arguments = [*overrides(tmp_path), *data, "controls=[]", "epochs=2", "seeds=2"]
    file("she" + " 0.5" * 50 + "\ngo" + " 0.25" * 50 + "\n", "glove.6B.50d.txt")
    _, out, _ = call(Pos, *arguments)
    (study,) = studies.read_all(tmp_path)
    assert [cell.source for cell in study.cells] == ["glove.6B.50d"] * 2 + ["toy"] * 8
    assert [(cell.layer, cell.minus, cell.paper) for cell in study.cells if cell.quantity == "XPOS"][1:] == [
        (0, None, None), (1, None, 97.3), (2, None, 96.8), (2, 1, pytest.approx(-0.5)),
    ]  # fmt: skip
    assert {cell.paper for cell in study.cells if cell.quantity == "UPOS"} == {None}
    assert {(cell.n, cell.clusters) for cell in study.cells} == {(6, 2)}
    assert all(0 <= cell.value <= 100 for cell in study.cells if cell.minus is None)
    assert "toy, XPOS: " in out


@pytest.mark.slow
def test_another_source_than_a_bilm_is_not_held_against_the_paper(path, tmp_path, call):
    pytest.importorskip("transformers")
    source = ["bilm=transformers", f"bilm.path={tiny_bilm.write_bert(tmp_path / 'bert')}", "bilm.name=mine"]
    data = [f"{split}={path}" for split in ("train", "dev", "test")]
    how = "controls=[] vectors=null epochs=1 seeds=1".split()
    call(Pos, *overrides(tmp_path)[:5], *source, *data, *how)
    (study,) = studies.read_all(tmp_path)
    assert [(cell.source, cell.layer, cell.minus) for cell in study.cells] == [("mine", i, None) for i in range(3)] * 2
    assert {cell.paper for cell in study.cells} == {None}


@cases("""
    typed       | said
    sentence=5  | sentence: there is no such key; did you mean sentences?
    sentences=x | sentences=x: should be a valid integer
    lr=0        | lr=0: should be greater than 0
    scale=nope  | scale=nope: there is no such scale
""")
def test_a_wrong_setting_of_a_study_is_one_line_about_it(typed, said):
    with pytest.raises((UserError, HydraException)) as caught:
        settings.read("pos", PosConfig, [typed])
    assert (console.explain(caught.value) or "").startswith(said)
