"""The SNLI reader: TSV, JSON lines, the hub, one tokenizer, and faults by file and line."""

import gzip

import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Value

from tasks.snli.pairs import LABELS, labels, read_pairs
from tasks.snli.reader import SnliReader, tokenize
from tests.fakes import at, cases, jsonl, refuses, splits_in

PAIRS = [
    ("entailment", "A stoker's cat isn't in the well-lit room.", "An animal is elsewhere."),
    ("-", "A stoker's cat isn't in the well-lit room.", "It sleeps."),
    ("contradiction", "A stoker's cat isn't in the well-lit room.", "A cat is in the room."),
    ("neutral", "Two bakers, one \"tall\", argue.", "They can't agree."),
]  # fmt: skip


def tsv(pairs=PAIRS) -> str:
    return "".join("\t".join(row) + "\n" for row in [("gold_label", "sentence1", "sentence2"), *pairs])


def release(pairs=PAIRS) -> str:
    names = ("gold_label", "sentence1", "sentence2")
    return jsonl({"pairID": "1", **dict(zip(names, row, strict=True))} for row in pairs)


@pytest.fixture
def data(tmp_path):
    def write(train: str = "", dev: str = "", test: str = "", suffix: str = ".tsv") -> dict:
        return splits_in(tmp_path, [text or tsv() for text in (train, dev, test)], suffix)

    return write


# Sources.


def test_tsv_json_lines_and_the_hub_give_the_same_rows(data, on_hub, capsys):
    rows = SnliReader(data()).load()["train"].to_list()
    assert [row["label"] for row in rows] == ["entailment", "contradiction", "neutral"]
    assert rows[0]["premise"] == "A stoker 's cat is n't in the well-lit room .".split()
    assert capsys.readouterr().err.count("left out 1 pairs without a gold label") == 3
    assert SnliReader(data(release() + "\n", release(), release(), ".jsonl")).load()["train"].to_list() == rows
    assert SnliReader(data(tsv() + "\n")).load()["train"].to_list() == rows  # an empty line is skipped

    features = Features(premise=Value("string"), hypothesis=Value("string"), label=ClassLabel(names=list(LABELS)))
    columns = {
        "premise": [pair[1] for pair in PAIRS],
        "hypothesis": [pair[2] for pair in PAIRS],
        "label": [LABELS.index(pair[0]) if pair[0] in LABELS else -1 for pair in PAIRS],
    }
    on_hub(DatasetDict({name: Dataset.from_dict(columns, features) for name in ("train", "validation", "test")}))
    assert SnliReader({"hub": "owner/name", "folder": None}).load()["train"].to_list() == rows


def test_other_columns_in_any_order_crlf_and_compression(data, file):
    place = data()
    text = "pairID\tsentence2\tsentence1\tgold_label\tlabel1\r\n7\tIt rains.\tWet.\tneutral\tneutral\r\n"
    file(gzip.compress(text.encode()), "train.tsv.gz")
    rows = SnliReader({**place, "train": "train.tsv.gz"}).load()["train"].to_list()
    assert rows == [{"premise": ["Wet", "."], "hypothesis": ["It", "rains", "."], "label": "neutral"}]


def test_an_empty_sentence_is_left_out_of_training_and_refused_elsewhere(data, capsys):
    pairs = [*PAIRS, ("neutral", " ", "Nothing.")]
    assert len(SnliReader(data(tsv(pairs))).load()["train"]) == 3
    assert "left out 1 pairs without a gold label, 1 with an empty sentence" in capsys.readouterr().err
    with refuses("is empty", "dev.tsv:6: "):
        SnliReader(data(dev=tsv(pairs))).load()


# Words.


@cases(r"""
    text                                     | words
    A stoker's cat isn't here.               | A stoker 's cat is n't here .
    Two bakers, (both "tall") can't argue!   | Two bakers , ( both " tall " ) ca n't argue !
    ``No,'' she's said: they'll go           | " No , " she 's said : they 'll go
    A well-lit, half-empty tug-of-war pit-   | A well-lit , half-empty tug-of-war pit -
    Dr. Ell of the U.S. ran - 1,000 steps... | Dr. Ell of the U.S. ran - 1,000 steps ...
    at 10:30 or a.m.; 2-3 times              | at 10:30 or a.m. ; 2-3 times
    "\u201cHm\u201d, it\u2019s 20% &  more" | " Hm " , it 's 20 % & more
    the women's-only hall                    | the women 's - only hall
    "  "                                     | ""
""")
def test_tokenize_and_again(text, words):
    assert tokenize(text) == words.split()
    assert tokenize(words) == words.split()


def test_raw_and_tokenized_text_of_real_pairs_are_cut_alike(data_root):
    """dev and test come tokenized as in the Penn Treebank: nearly nothing changes."""
    lines = (data_root / "snli" / "dev.tsv").read_text().splitlines()[1:]
    texts = [text for line in lines for text in line.split("\t")[1:]]
    quotes = {"``": '"', "''": '"'}
    changed = sum(tokenize(text) != [quotes.get(word, word) for word in text.split()] for text in texts)
    assert len(texts) == 2 * 9842
    assert changed / len(texts) < 0.002


def test_every_real_pair_is_read(data_root):
    paths = {split: data_root / "snli" / f"{split}.tsv" for split in ("train", "dev", "test")}
    pairs = {split: list(read_pairs(path, labels({}))) for split, path in paths.items()}
    assert {split: len(part) for split, part in pairs.items()} == {"train": 19995, "dev": 9842, "test": 9824}
    assert all({pair.label for pair in part} == set(LABELS) for part in pairs.values())
    assert all(pair.premise and pair.hypothesis for part in pairs.values() for pair in part)


# Faults.


@cases(r"""
    train                                             | line | words
    "gold_label\tsentence1\nneutral\ta\n"             | 1 | lacks the column sentence2
    "neutral\ta\tb\n"                                 | 1 | lacks the column gold_label, sentence1, sentence2
    "HEADER\nneutral\ta\tb\nneutral\ta\n"             | 3 | the column sentence2 is missing
    "HEADER\n\nneutral\n"                             | 3 | sentence1, sentence2 is missing
    "HEADER\nneutral\ta\tb\tc\n"                      | 2 | 4 columns, but the header has 3
    "HEADER\nneutral\ta\tb\nmaybe\ta\tb\n"            | 3 | unknown label 'maybe'
    "HEADER\n\ta\tb\n"                                | 2 | no label
    "HEADER\n\n"                                      | null | the file has no rows
    "\n"                                              | null | the file has no rows
    "HEADER\n-\ta\tb\n"                               | null | no labelled pair for train
""")
def test_malformed_tsv_is_named_with_its_line(data, train, line, words):
    with refuses(words, at("/train.tsv", line)):
        SnliReader(data(train.replace("HEADER", "gold_label\tsentence1\tsentence2"))).load()


@cases(r"""
    line                                                                   | words
    "{\"gold_label\": \"neutral\", "                                       | not JSON
    "[1]"                                                                  | not a JSON object
    "{\"gold_label\": \"neutral\", \"sentence1\": \"a\"}"                  | sentence2 is missing
    "{\"gold_label\": 1, \"sentence1\": \"a\", \"sentence2\": \"b\"}"      | gold_label is not text
    "{\"gold_label\": \"no\", \"sentence1\": \"a\", \"sentence2\": \"b\"}" | unknown label 'no'
""")
def test_broken_json_lines_are_named_with_their_line(data, line, words):
    with refuses(words, "/train.jsonl:5: "):
        SnliReader(data(release() + line + "\n", release(), release(), ".jsonl")).load()


@cases("""
    columns                                               | words
    {"premise": ["a"], "hypothesis": ["b"]}               | of the hub, split train, lacks label;
    {"premise": ["a"], "hypothesis": ["b"], "label": [7]} | unknown label 7
    null                                                  | no split validation, test
""")
def test_pairs_of_the_hub_that_do_not_fit_are_one_line(on_hub, columns, words):
    good = Dataset.from_dict(columns or {"premise": ["a"], "hypothesis": ["b"], "label": [0]})
    names = ("train", "validation", "test") if columns else ("train",)
    on_hub(DatasetDict(dict.fromkeys(names, good)))
    with refuses(words):
        SnliReader({"hub": "owner/name"}).load()
