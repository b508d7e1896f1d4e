"""Table 4: exact nearest neighbours in a corpus."""

import random

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from elmo_bench.analysis import neighbours
from elmo_bench.analysis.neighbours import Query, search
from elmo_bench.commands.analysis import Neighbours
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.records import studies
from elmo_bench.reporting.study_tables import of_study
from tests.fakes import cases, for_each, refuses
from tests.tiny_bilm import exported, overrides

pytestmark = pytest.mark.slow


@pytest.fixture
def source(tmp_path):
    return exported(tmp_path)


@pytest.fixture
def sentences():
    chance = random.Random(1)
    words = [f"{a}{b}" for a in "bdgklm" for b in "an el orn uff ick".split()]
    return [[chance.choice(words) for _ in range(chance.randint(1, 9))] for _ in range(80)]


@for_each("cached", "false true")
def test_neighbours_are_those_of_brute_force(source, sentences, tmp_path, monkeypatch, cached):
    monkeypatch.setattr(neighbours, "GROUP", 7)
    queries = [Query(sentences[at], token) for at, token in ((3, 0), (40, len(sentences[40]) - 1))]
    read = ActivationCache(source, tmp_path / "cache") if cached else source
    all_found = search(read, sentences, queries, 5)
    encoded = source.module.encode(sentences)
    words = [word for sentence in sentences for word in sentence]
    places = [(i, j) for i, sentence in enumerate(sentences) for j in range(len(sentence))]
    for query, found in zip(queries, all_found, strict=True):
        own = {i for i, sentence in enumerate(sentences) if sentence == query.sentence}
        vectors = encoded[min(own)][:, query.token]
        for layer in range(3):
            x = F.normalize(torch.cat([layers[layer] for layers in encoded]).double(), dim=-1)
            cosine = (x @ F.normalize(vectors[layer].double(), dim=0)).numpy()
            allowed = [i for i, (s, _) in enumerate(places) if s not in own]
            if layer == 0:  # one row for each word
                allowed = [words.index(word) for word in dict.fromkeys(words) if word != query.word]
            best = sorted((cosine[i] for i in allowed), reverse=True)[:5]
            assert [one.cosine for one in found[layer]] == pytest.approx(best, abs=2e-3)
            for one in found[layer]:
                row = places.index((one.sentence, one.token))
                assert one.cosine == pytest.approx(cosine[row], abs=2e-3)
                assert row in allowed


def test_fewer_words_than_neighbours_are_all_given(source):
    (found,) = search(source, [["a", "b"], ["c"]], [Query(["a", "b"], 0)], 10)
    assert [[(one.sentence, one.token) for one in sorted(layer, key=lambda o: o.sentence)] for layer in found] == [
        [(0, 1), (1, 0)], [(1, 0)], [(1, 0)],
    ]  # fmt: skip
    assert np.isfinite([one.cosine for layer in found for one in layer]).all()


@pytest.fixture
def arguments(source, sentences, tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"{' '.join(each)}\n" for each in sentences))
    return [*overrides(tmp_path), f"text={tmp_path}/text.txt", "format=text", "number=3"]


def test_one_word_is_looked_up_and_not_recorded(arguments, tmp_path, call):
    _, out, _ = call(Neighbours, *arguments, "word=ban", "sentence=the ban [x] .")
    assert "the [ban] [x] ." in out
    assert not (tmp_path / "analysis").exists()


def test_the_table_has_a_row_for_each_query_and_layer(arguments, tmp_path, call):
    call(Neighbours, *arguments)
    (study,) = studies.read_all(tmp_path)
    assert len(of_study(study).rows) == 3 * len(study.settings["queries"])
    assert {cell.n for cell in study.cells if cell.quantity == "same word"} == {3}


@cases("""
    given                            | match
    ["word=dam", "sentence=the ban"] | word=dam: not in the sentence; its words are the ban
    ["word=dam"]                     | belong together
    ["queries=[{word: a}]"]          | queries: each is {word: WORD
    ["queries=[]"]                   | no queries
    ["text=nowhere.txt"]             | nowhere.txt: no such file
""")
def test_wrong_queries_are_one_line(arguments, given, match, refused):
    assert match in refused(Neighbours, *arguments, *given)


def test_a_corpus_of_columns_ends_at_its_bound(file):
    from elmo_bench.analysis.settings import NeighboursConfig

    path = file("a\tX\nb\tX\n\nc\tX\n\nd\tX\n", "a.tsv")
    settings = NeighboursConfig(text=str(path), format="columns", tokens=3)
    assert neighbours.corpus(settings) == [["a", "b"], ["c"]]
    path.write_text("\n")
    with refuses(r"a\.tsv"):
        neighbours.corpus(settings)
