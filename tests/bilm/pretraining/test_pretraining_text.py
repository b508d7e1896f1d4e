"""The text of a pretraining: shards, compression, vocabularies, what is cached, and what is refused."""

from typing import Any

import pytest

from elmo_bench.bilm.corpus import Corpus, TextSource, sources
from elmo_bench.commands.bilm import Vocabulary
from elmo_bench.commands.use import embed
from tests.fakes import for_each, refuses

pytestmark = pytest.mark.slow

BENCHMARK = "1-billion-word-language-modeling-benchmark-r13output/training-monolingual.tokenized.shuffled"


def test_the_layout_of_the_1b_word_benchmark(tmp_path):
    folder = tmp_path / BENCHMARK
    folder.mkdir(parents=True)
    for i in (2, 1, 10):
        (folder / f"news.en-{i:05d}-of-00100").write_text(f"shard {i} .\n")
    (folder / ".hidden").write_text("no\n")
    expected = [f"news.en-{i:05d}-of-00100" for i in (1, 2, 10)]
    for name in (BENCHMARK, f"{BENCHMARK}/news.en-*", str(folder / "news.en-*")):
        found = sources(tmp_path, [(name, None)])
        assert [source.path.name for source in found] == expected
    corpus = Corpus.read(found)
    assert len(corpus.ends) == 3


def test_a_share_of_many_files_is_refused(tmp_path, file):
    file("a\n", "a.txt")
    file("b\n", "b.txt")
    with refuses("name one file"):
        sources(tmp_path, [("*.txt", 5)])
    assert sources(tmp_path, [("a*.txt", 5)]) == [TextSource(tmp_path / "a.txt", 5)]


def test_a_given_vocabulary_is_put_in_order_of_frequency(tmp_path, file):
    file("b a a\nc a c\n", "a.txt")
    corpus = Corpus.read([TextSource(tmp_path / "a.txt")])
    found = corpus.by_frequency("b <UNK> absent c </S> a <S>".split())
    assert found == "<S> </S> <UNK> a c b absent".split()


def test_the_vocabulary_command(tmp_path, call, file):
    file("b a a <UNK>\n\nc\n", "one.txt")
    file("c a <S>\n", "two.txt")
    output = tmp_path / "words"
    for bounds, words in (([], "a c b"), (["least=2"], "a c"), (["size=4"], "a")):
        status, out, _ = call(Vocabulary, f"text={tmp_path}/*.txt", f"output={output}", *bounds)
        assert status == 0
        assert output.read_text().split() == ["<S>", "</S>", "<UNK>", *words.split()]
        assert "they cover" in out


@for_each("change", "text=absent* text=empty.txt text=latin.txt size=0 output=no/such/f")
def test_what_the_vocabulary_command_refuses(tmp_path, monkeypatch, refused, change, file):
    monkeypatch.chdir(tmp_path)
    file("a b\n", "good.txt")
    file("\n", "empty.txt")
    file("fine\n\xe9t\xe9\n".encode("latin-1"), "latin.txt")
    given = [one for one in ("text=good.txt", "output=words") if one.partition("=")[0] != change.partition("=")[0]]
    before = set(tmp_path.iterdir())
    refused(Vocabulary, *given, change)
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    "text", ['{"text": "the dog ran ."}\n', '[{"text": "a"}]', '[\n {"text": "a"}]', '[ 1 ] "the dog"\n', "{ 2 }\n"]
)
def test_json_is_no_text(tmp_path, text, file):
    path = file(text, "text")
    if '"text"' not in text:
        assert list(TextSource(path).sentences()) == [text.split()]
        return
    bilm: Any = None  # is not asked
    for read in (lambda: list(TextSource(path).sentences()), lambda: embed(bilm, path, tmp_path / "out.hdf5")):
        with refuses("text:1: JSON, but plain text is needed"):
            read()
    assert [each.name for each in tmp_path.iterdir()] == ["text"]


def test_layers_are_not_written_under_the_name_of_another_format(tmp_path, file):
    file("a b\n", "text")
    bilm: Any = None
    with refuses(r"out\.npz: embed writes HDF5"):
        embed(bilm, tmp_path / "text", tmp_path / "out.npz")
