"""SST-5 rows from trees, from the hub, and from raw text."""

from collections import Counter

import pytest
from datasets import Dataset, DatasetDict

from tasks.sst5.reader import Sst5Reader, tokenize
from tasks.sst5.trees import Node, Tree, TreeError, read_trees
from tests.fakes import cases, for_each, refuses

TRAIN = """
(3 (2 (2 A) (3 (4 warm) (2 film))) (1 (2 about) (1 (0 dire) (2 days))))
(1 (2 (2 -LRB-) (1 Bleak)) (2 -RRB-))
(4 (4 (2 A) (4 joy)) (2 .))
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.txt").write_text(TRAIN.lstrip())
    (tmp_path / "dev.txt").write_text("(2 (2 Some) (2 days))\n")
    (tmp_path / "test.txt").write_text("(0 (0 dire) (2 (2 ,) (0 dire)))\n")
    return tmp_path


def reader(folder, sentences: int | None = None, **options) -> Sst5Reader:
    data = {"folder": str(folder), "train": "train.txt", "dev": "dev.txt", "test": "test.txt"}
    return Sst5Reader({**data, "train_sentences": sentences}, **options)


def phrases(rows) -> Counter:
    return Counter((" ".join(row["tokens"]), row["label"]) for row in rows)


def test_training_is_on_long_phrases_on_all_or_on_sentences(folder):
    sentences = {("A warm film about dire days", 3): 1, ("( Bleak )", 1): 1, ("A joy .", 4): 1}
    assert phrases(reader(folder, phrases="sentences").load()["train"]) == sentences
    assert phrases(reader(folder).load()["train"]) == {("A warm film about dire days", 3): 1}
    three = phrases(reader(folder, long=3).load()["train"])
    assert three == {**sentences, ("A warm film", 2): 1, ("about dire days", 1): 1}
    every = phrases(reader(folder, phrases="all").load()["train"])
    assert sum(every.values()) == 21
    assert every[("A", 2)] == 2
    assert every[("dire", 0)] == 1
    assert every[("A joy", 4)] == 1


@for_each("choice", "long all sentences")
def test_dev_and_test_are_sentences_and_words_are_counted_in_training_sentences(folder, choice):
    loaded = reader(folder, phrases=choice, min_count=2)
    splits = loaded.load()
    assert phrases(splits["dev"]) == {("Some days", 2): 1}
    assert phrases(splits["test"]) == {("dire , dire", 0): 1}
    assert loaded.vocabularies["words"].items[2:] == ["A"]  # twice in sentences, however often in phrases


def test_training_may_stop_after_some_sentences(folder):
    limited = reader(folder, sentences=1, phrases="sentences")
    splits = limited.load()
    assert splits["train"]["tokens"][:] == ["A warm film about dire days".split()]
    assert len(splits["test"]) == 1
    assert "film" in limited.vocabularies["words"]
    assert "joy" not in limited.vocabularies["words"]
    with refuses("train_sentences=0"):
        reader(folder, sentences=0)


def test_escapes_may_stay(folder):
    kept = reader(folder, phrases="sentences", unescape=False).load()["train"]
    assert kept[1]["tokens"] == ["-LRB-", "Bleak", "-RRB-"]


@pytest.mark.parametrize("label", ["5", "-1", "x"])
def test_an_unknown_label_is_named_with_its_line(folder, label):
    (folder / "dev.txt").write_text(f"(2 (2 fine) (3 day))\n(2 (2 fine) ({label} day))\n")
    with refuses(rf"dev\.txt:2: label '{label}'"):
        reader(folder).load()


def test_what_cannot_be_meant_is_refused(folder):
    with refuses(r"phrases=4: should be 'long', 'all' or 'sentences'"):
        reader(folder, phrases="4")
    with refuses("no training phrase has 9 words"):
        reader(folder, long=9).load()


def test_the_hub_has_trees(folder, on_hub):
    """The same rows as from files."""
    names = {"train": "train", "validation": "dev", "test": "test"}
    columns = {theirs: (folder / f"{ours}.txt").read_text().split("\n") for theirs, ours in names.items()}
    trees = {split: [{"ptb_tree": line} for line in lines if line.strip()] for split, lines in columns.items()}

    def put():
        return on_hub(DatasetDict({split: Dataset.from_list(rows) for split, rows in trees.items()}))

    asked = put()
    data = {"folder": None, "hub": "stanfordnlp/sst", "configuration": "ptb", "revision": "r", "train": None}
    ours, theirs = (loaded.load().values() for loaded in (Sst5Reader(data, long=2), reader(folder, long=2)))
    assert [rows.to_list() for rows in ours] == [rows.to_list() for rows in theirs]
    assert asked == [(("stanfordnlp/sst", "ptb"), {"revision": "r"})]
    trees["test"][0] = {"ptb_tree": "(7 odd)"}
    put()
    with refuses("stanfordnlp/sst of the hub, test row 0: label '7'; labels are 0 to 4"):
        Sst5Reader(data).load()
    trees["validation"][0] = {"ptb_tree": "(3 (2 a)"}
    put()
    with refuses("stanfordnlp/sst of the hub, dev row 0: ptb_tree is no tree"):
        Sst5Reader(data).load()
    trees["train"] = [{"text": "a fine film", "label": 3}]
    put()
    with refuses("has no column ptb_tree; give task.data"):
        Sst5Reader(data).load()


def test_raw_text_is_cut_as_the_treebank_cuts_it(folder):
    loaded = reader(folder)
    assert loaded.from_text(text="It's well-made -LRB-really-RRB- .")["tokens"][:3] == ["It", "'s", "well-made"]
    escaped = ["-LRB-", "-rrb-", "``", "''", "`", "and\\/or", "\\*", "n't", "'"]
    assert loaded.from_text(tokens=escaped)["tokens"] == ["(", ")", '"', '"', "'", "and/or", "*", "n't", "'"]
    cut = {
        "Don't miss it--a one-of-a-kind day!": "Do n't miss it -- a one-of-a-kind day !",
        "The actor/director's 1/2 - hour": "The actor/director 's 1/2 - hour",
        "-odd ends-": "- odd ends -",
        "already cut , is n't it ?": "already cut , is n't it ?",
    }
    for text, words in cut.items():
        assert " ".join(tokenize(text)) == words


@pytest.mark.slow
def test_the_treebank_has_its_known_sizes(data_root):
    data = {split: str(data_root / "sst" / f"{split}.txt") for split in ("train", "dev", "test")}
    loaded = Sst5Reader(data, phrases="sentences")
    splits = loaded.load()
    assert {split: len(rows) for split, rows in splits.items()} == {"train": 8544, "dev": 1101, "test": 2210}
    assert Counter(splits["test"]["label"]) == {0: 279, 1: 633, 2: 389, 3: 510, 4: 399}


# Trees of a file.


def test_a_tree_gives_its_words_and_phrases_the_sentence_last():
    words, nodes = Tree.parse("(3 (2 a) (4 (3 rather) (4 fine)))\n")
    assert words == ["a", "rather", "fine"]
    assert nodes == [Node("2", 0, 1), Node("3", 1, 2), Node("4", 2, 3), Node("4", 1, 3), Node("3", 0, 3)]
    assert Tree.parse("(2 word)") == (["word"], [Node("2", 0, 1)])
    assert Tree.parse("(1(0 not)(3 good))").words == ["not", "good"]
    assert Tree.parse("(S (1 a) (B b) (0 c))").nodes[-1] == Node("S", 0, 3)
    assert Tree.parse("(2 1\u00a01\\/2)").words == ["1\u00a01\\/2"]  # a no-break space is part of a word


def test_a_deep_tree_needs_no_stack():
    assert len(Tree.parse("(1 " * 5000 + "w" + ")" * 5000).nodes) == 5000


@cases("""
    text               | what
    (3 (2 a) (4 gem)   | 1 bracket
    (3 (2 a) (4 gem))) | after the end
    (3 (2 a)) (4 gem)  | after the end
    ) (2 a)            | not open
    (3 (2 a) gem)      | beside
    (3 gem (2 a))      | beside
    (3 fine gem)       | beside
    ((2 a) (4 gem))    | without a label
    (2)                | without a word
    (2 a) (            | after the end
    (3 (               | without a label
    a fine gem         | not a tree
    "   "              | not a tree
""")
def test_a_line_that_is_no_tree_is_refused(text, what):
    with pytest.raises(TreeError, match=what):
        Tree.parse(text)


def test_a_file_names_the_line_at_fault(file):
    path = file("(2 a)\n\n(3 (2 a) (4 gem))\n(3 (2 a) (4 gem)\n")
    with refuses("1 bracket") as caught:
        list(read_trees(path))
    assert str(caught.value).startswith(f"{path}:4: ")
    path.write_text("(2 a)\n\n(3 (2 a) (4 gem))\n")
    assert [line for line, _ in read_trees(path)] == [1, 3]
    path.write_text("\n")
    with refuses("contains no tree"):
        list(read_trees(path))
