"""Coreference data: rows of documents, windows, batches, raw text, and the faults of files."""

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from elmo_bench.configuration import composing
from elmo_bench.running.build import build
from elmo_bench.running.data import Data
from tasks.coref.metric import CorefMetric
from tasks.coref.reader import CorefReader
from tests.fakes import FakeBiLM, cases, refuses, splits_in

SENTENCES = [  # speaker, words, clusters
    ("ann", "the old cook of Pell", "(0 - - - (1)|0)"),
    ("bob", "you saw him", "(2) - (0)"),
    ("-", "Ida of Pell sang", "(3) - (1) -"),
]


def column_file(sentences=SENTENCES, name="bc/x/00/x_0001", part=0) -> str:
    lines = [f"#begin document ({name}); part {part:03}"]
    for speaker, words, clusters in sentences:
        for i, (word, cell) in enumerate(zip(words.split(), clusters.split(), strict=True)):
            lines.append("\t".join([name, str(part), str(i), word, "XX", "-", "-", "-", "-", speaker, "*", cell]))
        lines.append("")
    return "\n".join([*lines, "#end document", ""])


@pytest.fixture
def reader(tmp_path):
    """A reader of three written splits, the same text unless given."""

    def make(train=None, dev=None, **changes):
        data = splits_in(tmp_path, [text or column_file() for text in (train, dev, None)], ".conll")
        options: dict[str, Any] = {"min_count": 1, "char_min_count": 1} | changes
        return CorefReader(data, **options)

    return make


def test_a_row_is_a_part_of_a_document_without_singletons_unless_they_are_kept(reader):
    splits = reader(train=column_file() + column_file(part=1)).load()
    assert [row["part"] for row in splits["train"]] == ["000", "001"]
    row = splits["dev"][0]
    assert row["genre"] == "bc"
    assert row["sentences"][2] == "Ida of Pell sang".split()
    assert row["speakers"] == ["ann"] * 5 + ["bob"] * 3 + ["-"] * 4
    assert sorted(row["clusters"]) == [[[0, 4], [7, 7]], [[4, 4], [10, 10]]]
    kept = reader(keep_singletons=True).load()["dev"][0]["clusters"]
    assert sorted(kept) == [[[0, 4], [7, 7]], [[4, 4], [10, 10]], [[5, 5]], [[8, 8]]]


def test_vocabularies_come_from_training(reader, capsys):
    made = reader(dev=column_file([("-", "unheard words", "- -")], "zz/x") + column_file(), min_count=2)
    made.load()
    told = "task.data.train has 1 of the 2 genres of the documents of dev (50.0%)\n"
    assert capsys.readouterr().err == told
    assert set(made.vocabularies["words"].items[2:]) == {"of", "Pell"}
    assert made.vocabularies["genres"].items[2:] == ["bc"]
    assert made.vocabularies["genres"]["zz"] == 1
    lower = reader(lower=True)
    lower.load()
    assert "pell" in lower.vocabularies["words"]
    assert "P" in lower.vocabularies["chars"]


def test_batches_hold_one_row_a_sentence_and_the_mentions_of_each_document(reader):
    made = reader()
    splits = made.load()
    row = splits["dev"][0]
    other = made.from_text(sentences=[["Ida"]], speakers=["bob"]) | {"clusters": [[[0, 0]]]}
    batch = made.collate([row, other])
    assert batch.texts["sentences"].mask.sum(1).tolist() == [5, 3, 4, 1]
    assert batch.labels["speakers"].tolist() == [0] * 5 + [1] * 3 + [2] * 4 + [1]
    assert batch.labels["genres"].tolist() == [2, 1]
    mentions = [[0, 0, 4, 0], [0, 4, 0, 1], [0, 7, 0, 0], [0, 10, 0, 1], [1, 0, 0, 0]]
    assert sorted(batch.labels["mentions"].tolist()) == mentions
    assert made.collate([other | {"clusters": []}]).labels["mentions"].shape == (0, 4)


def test_a_long_document_is_trained_a_window_at_a_time(reader):
    made = reader(max_sentences=2)
    row = made.load()["train"][0]
    seen = {}
    for seed in range(20):
        window = made.sample(row, np.random.default_rng(seed))
        seen[len(window["speakers"])] = window
    assert set(seen) == {8, 7}  # the first two sentences, or the last two
    assert seen[8]["clusters"] == [[[0, 4], [7, 7]], [[4, 4]]] or seen[8]["clusters"] == [[[4, 4]], [[0, 4], [7, 7]]]
    assert sorted(seen[7]["clusters"]) == [[[2, 2]], [[5, 5]]]
    assert seen[7]["speakers"] == ["bob"] * 3 + ["-"] * 4
    assert seen[7]["sentences"] == row["sentences"][1:]
    assert reader(max_sentences=3).sample(row, np.random.default_rng(1)) is row


def test_windows_are_a_function_of_seed_and_epoch(reader):
    made = reader(train="".join(column_file(name=f"d{i}") for i in range(8)), max_sentences=1)
    splits = made.load()
    cfg = composing.compose(["task=coref", "scale=mini", "scale.folder=none"])
    data = Data(composing.validated(cfg).task.batch, 3, made, splits)

    def epoch(number: int) -> list[list[list[str]]]:
        place = SimpleNamespace(root_device=torch.device("cpu"))
        trainer = SimpleNamespace(current_epoch=number, world_size=1, global_rank=0, strategy=place)
        data.trainer = trainer  # type: ignore[assignment]
        return [batch.texts["sentences"].sentences for batch in data.train_dataloader()]

    assert epoch(2) == epoch(2)
    assert epoch(2) != epoch(3)
    assert all(len(sentences) == 1 for sentences in epoch(0))
    assert all(len(batch.texts["sentences"].sentences) == 3 for batch in data.val_dataloader())


def test_heads_are_made_of_words_and_characters_without_elmo(reader):
    made = reader()
    made.load()
    run = composing.run_config("task=coref scale=mini scale.folder=none elmo.where=input".split())
    module = build(run, made, FakeBiLM())
    head: Any = module.head
    own = run.task.words["size"] + sum(run.task.chars["filters"].values())
    assert head.own_size == own
    assert module.representation.input_size == own + FakeBiLM().width
    assert head.spans.ffnn.parts[-1] == own


@cases(r"""
    raw                                       | message
    {}                                        | expected
    {"text": 3}                               | expected
    {"text": " \n"}                           | no sentences
    {"sentences": ["Ida", "sang"]}            | lists of words
    {"sentences": [["Ida"], []]}              | lists of words
    {"sentences": [["Ida", ""]]}              | lists of words
    {"text": "Ida", "speakers": ["a", "b"]}   | per sentence
    {"text": "Ida sang", "speakers": [["a"]]} | one name per word
    {"text": "Ida", "speakers": [7]}          | must be one name
    {"text": "Ida", "genre": 7}               | must be a string
""")
def test_raw_text_that_is_none_is_refused(raw, message):
    with refuses(message):
        CorefReader({}).from_text(**raw)


def test_raw_text_becomes_a_row():
    reader, speakers = CorefReader({}), ["ann", ["ann", "bob", "-"]]
    text = "Ida sang.  She left.\n"
    row = reader.from_text(text=text, speakers=speakers, genre="bc", genres="kept")
    assert row == row | reader.from_text(text="Ida sang .\n\nShe left .\n", speakers=speakers) | {
        "genre": "bc", "text": text, "places": [[0, 3], [4, 8], [8, 9], [11, 14], [15, 19], [19, 20]],
    }  # fmt: skip
    assert row["sentences"] == [["Ida", "sang", "."], ["She", "left", "."]]
    assert row["speakers"] == ["ann"] * 4 + ["bob", "-"]
    assert row["genre"] == "bc"
    assert reader.from_text(sentences=[["Ida"]]) == {"genre": "-", "sentences": [["Ida"]], "speakers": ["-"]}
    json.dumps(row)


def test_a_place_to_be_filled_in_is_named():
    with refuses(r"set task\.data\.folder"):
        CorefReader({"folder": None, "train": "x", "dev": "x", "test": "x"}).load()


def test_genres_that_are_names_of_documents_are_refused(reader):
    with refuses(r"has 0 of the 1 genres of the documents of dev.*first folder"):
        reader(train=column_file(name="1023/0"), dev=column_file(name="2600/0")).load()
    reader(train=column_file(name="litbank"), dev=column_file(name="bc/x")).load()  # of one genre: none is told apart


def test_training_data_need_clusters(reader):
    with refuses("no cluster"):
        reader(train=column_file([("-", "nothing here", "- -")])).load()
    with refuses("the dev data contain no cluster, so nothing can be scored"):
        reader(dev=column_file([("-", "nothing here", "- -")])).load()


@pytest.mark.slow
def test_litbank_counts(data_root, tmp_path):
    folder, small = data_root / "coref_litbank", tmp_path / "small.conll"
    small.write_text(column_file())
    data = {"train": str(small), "dev": f"{folder}/dev.conll", "test": str(small)}
    for keep, mentions, clusters in ((True, 2842, 875), (False, 2206, 239)):
        rows = CorefReader(data, keep_singletons=keep).load()["dev"].to_list()
        assert len(rows) == 10
        assert sum(len(row["clusters"]) for row in rows) == clusters
        assert sum(len(cluster) for row in rows for cluster in row["clusters"]) == mentions
        metric = CorefMetric()
        metric.update([{"clusters": row["clusters"]} for row in rows], rows)
        assert metric.compute()["conll_f1"] == pytest.approx(100)
