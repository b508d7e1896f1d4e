"""Table 4: the index of a corpus, and exact nearest neighbours."""

import json
import random

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from elmo_bench.analysis import neighbour_index, neighbours
from elmo_bench.analysis.neighbour_index import Index
from elmo_bench.bilm.model import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.commands.analysis import neighbours as neighbours_command
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.system.errors import UserError
from tests.mini.test_mini_senses import OPTIONS


@pytest.fixture
def source(tmp_path):
    torch.manual_seed(1)
    model = BiLM(Options.parse(OPTIONS))
    model.export(tmp_path / "options.json", tmp_path / "weights.hdf5")
    return BilmLayers(tmp_path / "options.json", tmp_path / "weights.hdf5")


@pytest.fixture
def sentences():
    chance = random.Random(1)
    words = [f"{a}{b}" for a in "bdgklm" for b in ("an", "el", "orn", "uff", "ick")]
    return [[chance.choice(words) for _ in range(chance.randint(1, 9))] for _ in range(80)]


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(neighbour_index, "SHARD", 64)


class Counting:
    """A source that counts the sentences it computes."""

    def __init__(self, source):
        self.source, self.computed = source, 0

    def __getattr__(self, name):
        return getattr(self.source, name)

    def batches(self, sentences):
        self.computed += len(sentences)
        return self.source.batches(sentences)


def test_neighbours_are_those_of_brute_force(source, sentences, tmp_path):
    index = Index(source, sentences, tmp_path / "index")
    assert len(index.groups) > 4
    encoded = source.module.encode(sentences)
    words = [word for sentence in sentences for word in sentence]
    places = [(i, j) for i, sentence in enumerate(sentences) for j in range(len(sentence))]
    for at, token in ((3, 0), (40, len(sentences[40]) - 1)):
        own = {i for i, sentence in enumerate(sentences) if sentence == sentences[at]}
        vectors = encoded[at][:, token]
        found = index.search(vectors, sentences[at], token, 5)
        for layer in range(3):
            x = F.normalize(torch.cat([layers[layer] for layers in encoded]).double(), dim=-1)
            cosine = (x @ F.normalize(vectors[layer].double(), dim=0)).numpy()
            allowed = [i for i, (s, _) in enumerate(places) if s not in own]
            if layer == 0:  # one row for each word
                allowed = [words.index(word) for word in dict.fromkeys(words) if word != sentences[at][token]]
            best = sorted((cosine[i] for i in allowed), reverse=True)[:5]
            assert [one.cosine for one in found[layer]] == pytest.approx(best, abs=2e-3)
            for one in found[layer]:
                row = places.index((one.sentence, one.token))
                assert one.cosine == pytest.approx(cosine[row], abs=2e-3)
                assert row in allowed


def test_an_interrupted_indexing_goes_on_and_damage_is_computed_again(source, sentences, tmp_path):
    counting = Counting(source)
    index = Index(counting, sentences, tmp_path / "index")
    assert counting.computed == len(sentences)
    shards = sorted(index.folder.glob("*.f16"))
    whole = [path.read_bytes() for path in shards]
    shards[1].write_bytes(whole[1][:-3] + b"abc")
    shards[2].unlink()
    shards[3].with_name(f"{shards[3].name}.sha256").unlink()  # killed between the two files
    counting.computed = 0
    Index(counting, sentences, tmp_path / "index")
    assert counting.computed == sum(end - start for start, end in index.groups[1:4])
    assert [path.read_bytes() for path in shards] == whole
    counting.computed = 0
    Index(counting, sentences, tmp_path / "index")
    assert counting.computed == 0


def test_another_text_or_bilm_has_another_index(source, sentences, tmp_path):
    one = Index(source, sentences, tmp_path / "index").folder
    assert Index(source, sentences[:-1], tmp_path / "index").folder != one
    torch.manual_seed(2)
    BiLM(Options.parse(OPTIONS)).export(tmp_path / "o.json", tmp_path / "w.hdf5")
    assert Index(BilmLayers(tmp_path / "o.json", tmp_path / "w.hdf5"), sentences, tmp_path / "index").folder != one


def test_fewer_words_than_neighbours_are_all_given(source, tmp_path):
    index = Index(source, [["a", "b"], [], ["c"]], tmp_path / "index")
    found = index.search(torch.ones(3, source.width), ["a", "b"], 0, 10)
    assert [[(one.sentence, one.token) for one in sorted(layer, key=lambda o: o.sentence)] for layer in found] == [
        [(0, 1), (1, 0)], [(1, 0)], [(1, 0)],
    ]  # fmt: skip
    assert np.isfinite([one.cosine for layer in found for one in layer]).all()


@pytest.fixture
def arguments(source, sentences, tmp_path):
    (tmp_path / "text.txt").write_text("".join(f"{' '.join(each)}\n" for each in sentences), encoding="utf-8")
    return [
        "scale=open", f"data_root={tmp_path}", f"text={tmp_path}/text.txt", "format=text", "number=3",
        "bilm=custom", "bilm.name=toy", f"bilm.options={tmp_path}/options.json",
        f"bilm.weights={tmp_path}/weights.hdf5", f"results_root={tmp_path}", f"cache_root={tmp_path}/cache",
    ]  # fmt: skip


def test_one_word_is_looked_up_and_not_recorded(arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["neighbours", *arguments, "word=ban", "sentence=the ban [x] ."])
    neighbours_command.main()
    said = capsys.readouterr().out
    assert "the [ban] [x] ." in said
    assert "searched in" in said
    assert not (tmp_path / "analysis").exists()


def test_the_table_has_a_row_for_each_query_and_layer(arguments, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["neighbours", *arguments])
    neighbours_command.main()
    (path,) = (tmp_path / "analysis" / "open" / "neighbours").glob("*.json")
    record = json.loads(path.read_text())
    assert len(record["rows"]) == 3 * len(record["settings"]["queries"])
    assert {len(each["neighbours"]) for each in record["measured"]} == {3}


@pytest.mark.parametrize(
    ("given", "match"),
    [
        (["word=dam", "sentence=the ban"], "word=dam: not in the sentence; its words are the ban"),
        (["word=dam"], "belong together"),
        (["queries=[{word: a}]"], "queries: each is {word: WORD"),
        (["queries=[]"], "no queries"),
        (["text=nowhere.txt"], "nowhere.txt: no such file"),
    ],
)
def test_wrong_queries_are_one_line(arguments, given, match, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["neighbours", *arguments, *given])
    with pytest.raises(SystemExit) as stopped:
        neighbours_command.COMMAND.run(neighbours_command.main)
    assert stopped.value.code == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert match in said[0]


def test_a_corpus_of_columns_ends_at_its_bound(tmp_path):
    from elmo_bench.analysis.settings import NeighboursConfig

    path = tmp_path / "a.tsv"
    path.write_text("a\tX\nb\tX\n\nc\tX\n\nd\tX\n", encoding="utf-8")
    settings = NeighboursConfig(text=str(path), format="columns", tokens=3)
    assert neighbours.corpus(settings) == [["a", "b"], ["c"]]
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"a\.tsv"):
        neighbours.corpus(settings)
