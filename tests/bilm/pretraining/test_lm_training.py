"""Training a biLM: it learns, it can be stopped anywhere, and what it writes is a biLM."""

import json
import math
import random
from pathlib import Path

import pytest
import torch

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.corpus import Corpus, TextSource
from elmo_bench.bilm.lm import load_lm
from elmo_bench.bilm.pretraining.recipe import Recipe
from elmo_bench.bilm.pretraining.run import pretrain
from elmo_bench.bilm.pretraining.trainer import Trainer
from elmo_bench.system.storage.hashing import fingerprint
from elmo_bench.system.storage.locks import held
from tests.fakes import refuses

OPTIONS = json.loads("""
{"lstm": {"dim": 16, "projection_dim": 8, "n_layers": 2, "cell_clip": 3, "proj_clip": 3, "use_skip_connections": true},
 "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 4], [2, 8], [3, 12]], "n_highway": 1}}
""")
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("one_thread")]


@pytest.fixture
def root(tmp_path) -> Path:
    """A text of a grammar in which the verb agrees with the noun before it, and the object with the verb."""
    draw = random.Random(0)
    nouns = {"dog": "bites", "bird": "pecks", "cook": "stirs"}
    objects = {"bites": "bones", "pecks": "seeds", "stirs": "soup"}
    for name, lines in (("train", 150), ("dev", 40)):
        sentences = []
        for _ in range(lines):
            noun, many = draw.choice(list(nouns)), draw.choice([True, False])
            subject = f"the {noun}s" if many else f"a {noun}"
            verb = nouns[noun][:-1] if many else nouns[noun]
            sentences.append(f"{subject} {verb} {draw.choice(['old', 'cold', 'hot'])} {objects[nouns[noun]]} .")
        (tmp_path / f"{name}.txt").write_text("\n".join(sentences) + "\n")
    return tmp_path


def recipe(**changes) -> Recipe:
    """Small enough for a test."""
    made = Recipe(
        options=OPTIONS, text=[("train.txt", None)], heldout=[("dev.txt", None)],
        vocabulary=30, tokens=40 * 48, rows=8, steps=6, negatives=8, lr=0.02, warmup=5, seed=3,
    )  # fmt: skip
    return made.model_copy(update=changes)


def test_it_learns_the_grammar(root):
    torch.manual_seed(0)
    trainer = Trainer(recipe(tokens=200 * 48), root, root / "work")
    heldout = Corpus.read([TextSource(root / "dev.txt")])
    before = trainer.lm.perplexity(heldout, trainer.words)
    trainer.fit()
    after = trainer.lm.perplexity(heldout, trainer.words)
    choices = 3 * 2 * 3  # subjects, numbers and adjectives; every other word follows from these
    best = math.exp(math.log(choices) / 7)  # seven predictions a sentence
    assert before["tokens"] == after["tokens"] == 40 * 7
    for direction in ("forward", "backward"):
        assert before[direction] > 10
        assert best < after[direction] < 1.6 * best


def test_other_recipes_are_other_runs(root):
    """Each number of the recipe is felt, and so is the seed."""
    weights = {}
    for change in ({}, {"seed": 4}, {"negatives": 4}, {"clip": 0.01}, {"steps": 12}, {"bfloat16": True}):
        made = recipe(**{"tokens": 10 * 48, **change})
        trainer = Trainer(made, root, root / made.key(root))
        trainer.fit()
        weights[made.key(root)] = trainer.lm.state_dict()["bilm.directions.0.0.recurrent"]
        assert torch.isfinite(weights[made.key(root)]).all()
    assert len(weights) == 6
    first, *others = weights.values()
    assert not any(torch.equal(first, other) for other in others)


def test_a_link_leads_to_the_same_lock(root):
    output, work = root / "tiny", root / "work"
    (root / "link").symlink_to(output)
    with (
        held(work / "outputs" / fingerprint(str(output.resolve())), "busy"),
        refuses("another process trains a biLM for"),
    ):
        pretrain(recipe(), root, work, root / "link")


@pytest.mark.parametrize("changes", [{"start": "tiny"}, {"text": [("tiny/text", None)]}, {"words": "tiny/words"}])
def test_what_a_training_reads_is_not_its_output(root, changes):
    (root / "tiny").mkdir()
    for name in "card.json text words weights.hdf5 softmax.safetensors".split():
        (root / "tiny" / name).write_text("some words\n")
    (root / "link").symlink_to(root / "tiny")
    with refuses("link: is an input of the command .*tiny.*; give another output"):
        pretrain(recipe(**changes), root, root / "work", root / "link")
    assert len(list((root / "tiny").iterdir())) == 5


def test_what_pretraining_writes_is_a_biLM(root):
    output = root / "models" / "tiny"
    card = pretrain(recipe(), root, root / "work", output)
    assert {path.name for path in output.iterdir()} == {
        "options.json", "weights.hdf5", "softmax.safetensors", "vocabulary.txt", "card.json",
    }  # fmt: skip
    assert list((root / "models").iterdir()) == [output]
    assert json.loads((output / "card.json").read_text()) == json.loads(json.dumps(card))
    assert (card["updates"], card["tokens_seen"]) == (40, 40 * 48)
    lm, words = load_lm(output)
    found, carded = lm.perplexity(Corpus.read([TextSource(root / "dev.txt")]), words), card["perplexity"]["dev.txt"]
    assert found["pieces"] == [pytest.approx(pieces, abs=1e-5) for pieces in carded["pieces"]]
    assert {**found, "pieces": None} == pytest.approx({**carded, "pieces": None})
    layers = BiLM.from_files(output / "options.json", output / "weights.hdf5").encode([["the", "dogs", "bite"]])[0]
    assert layers.shape == (3, 3, 16)
