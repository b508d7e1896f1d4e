"""The commands `perplexity` and `compare`, beside the biLM in plain NumPy."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.corpus import Corpus, TextSource
from elmo_bench.bilm.lm import BidirectionalLM, load_lm
from elmo_bench.bilm.pretraining.run import export
from elmo_bench.commands.bilm import Perplexity
from elmo_bench.commands.use import Compare, embed
from tests.fakes import cases, refuses
from tests.reference_bilm import Files, ReferenceBiLM, write_random

WORDS = ["<S>", "</S>", "<UNK>", "the", "boat", "came", "in"]
TEXT = "the boat came in\nno pilot came\nin the boat the old pilot slept\n"


@pytest.fixture
def bilm(tmp_path) -> Files:
    """A biLM with its softmax, in float32."""
    files = write_random(tmp_path / "random")
    torch.manual_seed(0)
    lm = BidirectionalLM(BiLM.from_files(*files), len(WORDS))
    torch.nn.init.normal_(lm.softmax_bias.weight)
    (tmp_path / "bilm").mkdir()
    export(lm, WORDS, tmp_path / "bilm", torch.float32)
    return Files(tmp_path / "bilm" / "options.json", tmp_path / "bilm" / "weights.hdf5")


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    return tmp_path / "text.txt"


def arguments(bilm: Files, **given) -> list[str]:
    """Of a command with the files of a biLM, unless others are given."""
    return [f"{key}={value}" for key, value in ({"options": bilm.options, "weights": bilm.weights} | given).items()]


def test_the_command_gives_the_perplexity_of_the_biLM_from_zeros(bilm, text, call):
    """That of `lm.perplexity`, which tests/bilm/pretraining/test_lm.py compares with plain NumPy."""
    code, out, _ = call(Perplexity, *arguments(bilm, text=text))
    assert code == 0
    measured = json.loads(out)
    lm, words = load_lm(bilm.weights.parent)
    expected = lm.perplexity(Corpus.read([TextSource(text)]), words)
    for key in ("forward", "backward", "mean"):
        assert measured[key] == pytest.approx(expected[key], rel=1e-5)
    assert (measured["predictions"], measured["sentences"], measured["words"]) == (17, 3, 14)
    assert (measured["vocabulary"], measured["unknown_words"], measured["distinct_unknown_words"]) == (7, 5, 4)


def test_layers_that_are_not_finite_are_not_written(tmp_path, file):
    file("a b\nc\n", "in.txt")
    layers = [torch.ones(3, 2, 2), torch.full((3, 1, 2), math.inf)]
    bilm = SimpleNamespace(encode=lambda sentences: layers)
    with refuses(r"in\.txt:2: the layers of this line are not finite: c"):
        embed(bilm, tmp_path / "in.txt", tmp_path / "out.hdf5")  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["in.txt"]


def test_what_has_no_perplexity_is_one_line(bilm, text, tmp_path, refused, file):
    def said(**changes) -> str:
        return refused(Perplexity, *arguments(bilm, **{"text": text, **changes}))

    file("\n", "empty.txt")
    assert "no sentence" in said(text=tmp_path / "empty.txt")
    assert "no such text" in said(text=tmp_path / "gone" / "*")
    assert "no softmax.safetensors" in said(weights=tmp_path / "random" / "weights.hdf5")
    path = bilm.weights.parent / "softmax.safetensors"
    whole = load_file(path)
    save_file(whole | {"bias": np.full_like(whole["bias"], np.nan)}, path)
    assert "softmax has values that are not finite" in said()
    save_file(whole, path)
    (bilm.weights.parent / "vocabulary.txt").write_text("the\nboat\n")
    assert "<UNK>" in said()


FIRST, SECOND = "the boat came in", "no boat was seen and the boat sank"


def test_a_word_in_two_sentences(bilm, call):
    code, out, _ = call(Compare, *arguments(bilm, word="boat", first=FIRST, second=SECOND, second_at=2))
    assert code == 0
    reference = ReferenceBiLM(bilm)
    first, second = (
        reference.sentence(sentence.split(), reference.warm())[0][:, place]
        for sentence, place in ((FIRST, 1), (SECOND, 6))
    )  # (L+1, 2P)
    header, *rows = out.splitlines()
    assert header.split() == "layer cosine apart forward backward".split()
    half = first.shape[1] // 2
    for layer, row in enumerate(rows):
        number, both, apart, forward, backward = map(float, row.split())
        assert number == layer
        assert both == pytest.approx(cosine(first[layer], second[layer]), abs=6e-4)
        assert apart == pytest.approx(1 - both, abs=1e-3)
        assert forward == pytest.approx(cosine(first[layer][:half], second[layer][:half]), abs=6e-4)
        assert backward == pytest.approx(cosine(first[layer][half:], second[layer][half:]), abs=6e-4)
    assert len(rows) == 3
    assert rows[0].split()[1:3] == ["1.000", "0.000"]
    assert float(rows[2].split()[2]) > 0.001


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@cases("""
    changes                  | message
    {"word": "pilot"}        | word=pilot does not occur in first=
    {"second_at": 3}         | second_at=3: boat occurs 2 times
    {"first": " "}           | word=boat does not occur in first=''
    {"weights": "gone.hdf5"} | gone.hdf5
    {"state": "carry"}       | state=carry
""")
def test_what_cannot_be_compared_is_one_line(bilm, refused, changes, message):
    given = {"word": "boat", "first": FIRST, "second": SECOND, **changes}
    assert message in refused(Compare, *arguments(bilm, **given))
