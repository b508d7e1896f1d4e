"""Vocabularies that are given: how they are read, how much of a text they have; the keys of recipes."""

from pathlib import Path

import pytest

from elmo_bench.bilm.corpus import Corpus, TextSource
from elmo_bench.bilm.lm import read_vocabulary
from elmo_bench.bilm.pretraining.run import make_recipe
from elmo_bench.bilm.pretraining.trainer import Trainer
from elmo_bench.commands.bilm import chosen_recipe
from elmo_bench.configuration import composing
from tests.fakes import for_each, refuses

WORDS = "<S>\n</S>\n<UNK>\nthe\ndog\n"


@pytest.fixture
def text(tmp_path) -> Path:
    (tmp_path / "text.txt").write_text("the dog saw a cat\n" * 50)
    return tmp_path


@pytest.mark.parametrize("words", [WORDS, WORDS.replace("\n", "\r\n"), WORDS.replace("\n", " \n"), f"{WORDS}\n\n"])
def test_ends_of_lines_and_spaces_are_no_part_of_a_word(text, words):
    (text / "words.txt").write_bytes(words.encode())
    read = read_vocabulary(text / "words.txt", 5)
    assert read == WORDS.split()
    assert Corpus.read([TextSource(text / "text.txt", None)]).unknown(read)[0] == 150  # saw, a, cat


@pytest.mark.parametrize(
    "words, said", [(WORDS, "5 words, but recipe.vocabulary=9; set recipe.vocabulary=5"),
                        (f"{WORDS}dog\n", "the word 'dog' occurs twice")],
)  # fmt: skip
def test_a_vocabulary_of_another_size_says_what_to_type(text, words, said):
    (text / "words.txt").write_text(words)
    with refuses(said):
        read_vocabulary(text / "words.txt", 9)


@pytest.mark.parametrize("change", [("the", "the 800"), ("the", "le")])
def test_a_vocabulary_of_hardly_any_word_of_the_text_is_refused(text, change):
    words = WORDS.replace("dog", "dog 50").replace(*change)
    (text / "words.txt").write_text(words)
    typed = "pretrain=mini recipe.vocabulary=5 recipe.negatives=2 +recipe.words=words.txt".split()
    cfg = composing.compose(typed, "pretrain").recipe
    cfg.text, cfg.heldout = [["text.txt", None]], [["text.txt", None]]
    with refuses(r"words\.txt: has 0 of the 250 running words of the text \(0\.0%\)"):
        Trainer(make_recipe(cfg, text), text, text / "work")


def test_files_are_looked_up_below_the_root_and_then_in_the_current_folder(text, tmp_path, monkeypatch):
    here = tmp_path / "here"
    here.mkdir()
    for name in ("text.txt", "mine.txt", "more-1.txt"):
        (here / name).write_text("a dog\n")
    monkeypatch.chdir(here)
    cfg = composing.compose(["pretrain=mini"], "pretrain").recipe
    cfg.text, cfg.heldout = ["text.txt", ["mine.txt", 5], "more-*"], "nosuch.txt"
    recipe = make_recipe(cfg, text)
    assert recipe.text == [("text.txt", None), (f"{here}/mine.txt", 5), (f"{here}/more-*", None)]
    assert recipe.heldout == [("nosuch.txt", None)]


@for_each("scale", "mini open original")
@pytest.mark.parametrize("plus", ["", "+", "++"])
def test_every_key_of_a_recipe_can_be_typed_on_every_page(scale, plus):
    typed = "start=a frozen=true parent=[a,b] words=w.txt bfloat16=true rows=8".split()
    chosen, shown = chosen_recipe([f"scale={scale}", *(f"{plus}recipe.{each}" for each in typed), "--cfg", "job"])
    cfg = composing.compose(chosen, "pretrain")
    assert shown
    assert (cfg.recipe.start, cfg.recipe.frozen, cfg.recipe.words, cfg.recipe.bfloat16) == ("a", True, "w.txt", True)
    assert list(cfg.recipe.parent) == ["a", "b"]
