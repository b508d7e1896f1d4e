"""Data sets as tables: parquet, JSON lines and CSV, read by `datasets`, with columns by any names."""

import gzip
import json
import tempfile
from typing import Any

import datasets
import pytest
from datasets import Dataset, Features, List, Value
from datasets.arrow_writer import ArrowWriter

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.text import source
from tasks.coref.reader import CorefReader
from tasks.ner.reader import NerReader
from tasks.snli.reader import SnliReader
from tasks.squad.reader import SquadReader
from tasks.srl.reader import SrlReader
from tasks.sst5.reader import Sst5Reader
from tests.fakes import all_splits, cases, for_each, refuses

ROWS = [{"tokens": "Ida sang in Oslo".split(), "ner_tags": "B-PER O O B-LOC".split()},
        {"tokens": ["Rain"], "ner_tags": ["O"]}]  # fmt: skip


def test_columns_may_have_other_names(lines):
    data = lines(*({"words": row["tokens"], "entities": row["ner_tags"]} for row in ROWS))
    with refuses("all.jsonl: the table lacks tokens and tags", "words (", "+task.data.columns.OURS=THEIRS"):
        NerReader(data).load()
    columns = {"tokens": "words", "ner_tags": "entities"}
    assert NerReader({**data, "columns": columns}).load()["train"][0]["tokens"] == ROWS[0]["tokens"]
    with refuses("lacks nosuch"):
        NerReader({**data, "columns": {"tokens": "nosuch"}}).load()


def test_a_file_that_is_no_table_is_one_line_that_names_it(lines, tmp_path, file):
    file(b"PAR1 and nothing else", "all.parquet")
    with refuses("all.parquet: cannot be read as parquet"):
        NerReader(all_splits(tmp_path / "all.parquet")).load()
    data = lines(*ROWS) | {"dev": str(tmp_path / "dev.iob2")}
    with refuses("all splits must be tables"):
        NerReader(data).load()
    file(json.dumps({"tokens": ["a", "b"], "tags": ["O"]}) + "\n", "uneven.jsonl")
    with refuses("uneven.jsonl: row 0: 2 tokens and 1 tags"):
        NerReader(all_splits(tmp_path / "uneven.jsonl")).load()


PAIR = {"premise": "A dog ran.", "hypothesis": "It ran.", "label": "neutral"}
ASKED = {"id": "q", "title": "t", "context": "Ida sang in Oslo.", "question": "Who sang?",
         "answers": {"text": ["Ida"], "answer_start": [0]}}  # fmt: skip


@pytest.fixture
def lines(file):
    """Rows of JSON, or lines as they are, as all splits."""

    def write(*rows: Any, ending: str = "jsonl") -> dict[str, str]:
        text = "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
        return all_splits(file(text, f"all.{ending}"))

    return write


GOOD = {
    "snli": (SnliReader, PAIR), "ner": (NerReader, ROWS[0]), "squad": (SquadReader, ASKED),
    "sst5": (Sst5Reader, {"text": "Fine", "label": 4}), "trees": (Sst5Reader, {"ptb_tree": "(3 fine)"}),
}  # fmt: skip


@cases(r"""
    kind  | bad                                         | told
    snli  | {"premise": null}                           | premise is empty
    snli  | {"hypothesis": 3}                           | hypothesis is 3, not text
    snli  | {"label": "maybe"}                          | unknown label 'maybe'
    snli  | {"label": [1]}                              | unknown label
    ner   | {"ner_tags": ["O", null, "O", "O"]}         | ner_tags has an empty word
    ner   | {"ner_tags": null}                          | ner_tags is empty
    ner   | {"tokens": ["Ida", null, "in", "Oslo"]}     | tokens has an empty word
    ner   | {"tokens": ["Ida", "", "in", "Oslo"]}       | tokens has an empty word
    ner   | {"tokens": ["Ida", 3, "in", "Oslo"]}        | tokens has 3, which is not text
    ner   | {"ner_tags": [1, 0, 0, 1]}                  | .* numbers without names; .*\+task.data.tag_names=\[O
    squad | {"context": null}                           | context is empty
    squad | {"question": null}                          | question is empty
    squad | {"answers": null}                           | answers is empty
    squad | {"answers": {"text": ["Ida"]}}              | answers is not {
    squad | {"answers": {"text": [null], "answer_start": [0]}}     | an answer is not text
    squad | {"answers": {"text": ["Ida"], "answer_start": [null]}} | an answer is not text
    sst5  | {"text": null}                              | text is empty
    sst5  | {"text": "\u200b"}                          | text has no words
    sst5  | {"label": null}                             | label is empty
    sst5  | {"label": 5}                                | unknown label 5; choose from 0
    trees | {"ptb_tree": null}                          | ptb_tree is empty
""")
def test_what_a_cell_cannot_hold_is_refused_with_its_row(lines, kind, bad, told):
    reader, good = GOOD[kind]
    with refuses(rf"all\.jsonl: row 1: {told}"):
        reader(lines(good, good | bad)).load()


def test_tags_of_no_scheme_are_refused_with_their_file(lines):
    with refuses(r"all\.jsonl: the tag 'X' .*\(sentence 0, token 0\)"):
        NerReader(lines({"tokens": ["a"], "tags": ["X"]})).load()


@for_each("ending", "csv tsv")
def test_in_csv_only_an_empty_cell_is_empty(lines, ending):
    def read(reader, *rows: str, **settings):
        return reader(lines(*(row.replace("|", ",\t"[ending == "tsv"]) for row in rows), ending=ending),
                      **settings).load()["dev"]  # fmt: skip

    assert read(NerReader, "tokens|ner_tags", "Ida sang|B-PER O", "NA|O")["tokens"][:] == [["Ida", "sang"], ["NA"]]
    with refuses("row 0: tokens is empty"):
        read(NerReader, "tokens|ner_tags", "|O")
    pairs = read(SnliReader, "premise|hypothesis|label", "None|n/a|1", "a|b|", "null|c|2")
    assert pairs["premise"][:] == [["None"], ["null"]]
    assert pairs["label"][:] == ["neutral", "contradiction"]
    assert read(Sst5Reader, "text|label", "NA|2", phrases="sentences")["tokens"][:] == [["NA"]]


def test_rows_without_words_are_counted(lines, capsys):
    data = lines(*ROWS, {"tokens": [], "ner_tags": []})
    assert len(NerReader(data).load()["train"]) == 2
    assert f"{data['train']}: left out 1 rows without words" in capsys.readouterr().err


@cases("""
    ending | rows
    csv   | ["tokens,ner_tags", "Ida sang,1 0", "Ida,1"]
    jsonl | [{"tokens": ["Ida", "sang"], "ner_tags": [1.0, 0.0]}]
    jsonl | [{"tokens": ["Ida", "sang"], "ner_tags": ["1", "0"]}]
""")
def test_numbers_of_tags_have_names(lines, ending, rows):
    data = lines(*rows, ending=ending)
    tags = NerReader({**data, "tag_names": ["O", "B-PER"]}).load()["test"]["tags"][:]
    assert [tag for row in tags for tag in row][:2] == ["S-PER", "O"]
    with refuses(rf"all\.{ending}: row 0: the column ner_tags holds numbers without names"):
        NerReader(data).load()


def test_text_of_a_table_is_cut_as_that_of_predict_and_trained_on_though_it_has_no_phrases(lines):
    text = "It's a well-made film, -LRB-isn't it-RRB-?"
    reader = Sst5Reader(lines({"text": text, "label": 3.0}), phrases="long", long=40)
    assert reader.load()["train"].to_list() == [{**reader.from_text(text=text), "label": 3}]


def test_an_id_that_is_empty_becomes_a_number(lines):
    rows = [ASKED | {"id": id, "question": f"Who {number}?"} for number, id in enumerate([None, "1", None, ""])]
    read = SquadReader(lines(*rows)).load()["test"]
    assert read["id"][:] == "2 1 3 4".split()
    with refuses("question 1: the id occurs twice"):
        SquadReader(lines(rows[1], rows[1])).load()


def test_a_split_that_is_not_named(lines):
    for reader, row in ((NerReader, ROWS[0]), (SnliReader, PAIR), (Sst5Reader, {"ptb_tree": "(3 fine)"})):
        with refuses(r"no file is named for dev: set task\.data\.dev"):
            reader(lines(row) | {"dev": None}).load()
    rows = [ASKED | {"id": title, "title": title, "context": f"Ida sang {title}."} for title in "ab"]
    splits = SquadReader(lines(*rows) | {"dev": None}, held_out=1).load()
    assert {split: len(table) for split, table in splits.items()} == {"train": 1, "dev": 1, "test": 2}


@cases(r"""
    ending  | text
    jsonl   | ""
    jsonl   | "\n"
    csv     | ""
    csv     | "tokens,tags\n"
    parquet | ""
""")
def test_a_table_without_rows(file, ending, text):
    path = file(text, f"all.{ending}")
    if ending == "parquet":
        Dataset.from_dict({"tokens": []}, Features(tokens=Value("string"))).to_parquet(str(path))
    with refuses(rf"all\.{ending}: the table has no rows"):
        NerReader(all_splits(path)).load()


def test_the_split_at_fault_is_named_with_its_own_columns(lines, tmp_path, file):
    data = lines(ROWS[0]) | {"dev": str(tmp_path / "dev.jsonl")}
    file(json.dumps({"words": ["a"], "tags": ["O"]}) + "\n", "dev.jsonl")
    with refuses(r"^\S*dev\.jsonl: the table lacks tokens; it has words \(.*, tags \("):
        NerReader(data).load()
    with refuses("has no column ptb_tree, and not both text and label; it has tokens"):
        Sst5Reader(data).load()


def test_no_progress_is_printed(lines, capfd):
    datasets.enable_progress_bars()
    NerReader(lines(*ROWS)).load()
    assert "Generating" not in capfd.readouterr().err


@for_each("ending", "jsonl tsv")
def test_pairs_are_a_table_or_the_release_by_their_first_line(lines, ending):
    release = {"gold_label": "neutral", "sentence1": '"premise" "hypothesis"', "sentence2": "It ran."}
    for row in (PAIR, release):
        rows = [row] if ending == "jsonl" else ["\t".join(row), "\t".join(row.values()).replace('"', "")]
        read = SnliReader(lines(*rows, ending=ending)).load()["test"]
        assert (read["label"][:], read["hypothesis"][:]) == (["neutral"], [["It", "ran", "."]])


def test_tags_are_a_table_or_columns_and_questions_a_table_or_the_release_by_the_first_line(lines):
    for rows in (["tokens\ttags", "Ida\tB-PER"], ["Ida\tB-PER"], ["-DOCSTART-\tO", "", "Ida\tB-PER", '"\tO']):
        assert NerReader(lines(*rows, ending="tsv")).load()["dev"][0]["tokens"][0] == "Ida"
    renamed = lines("words\ttags", "Ida\tB-PER", ending="tsv") | {"columns": {"tokens": "words"}}
    assert NerReader(renamed).load()["dev"][0]["tokens"] == ["Ida"]
    release = {"title": "t", "paragraphs": [{"context": ASKED["context"], "qas": [
        {"id": "q", "question": "Who sang?", "answers": [{"text": "Ida", "answer_start": 0}]}]}]}  # fmt: skip
    for content in ([ASKED], {"data": [release]}):
        assert SquadReader(lines(content, ending="json")).load()["test"][0]["answers"] == ["Ida"]


@cases(r"""
    ending | rows                             | told
    csv | ["A good film, yes,3", "fine,2"] | all\.csv:2: 3 cells, where the header has 2; a cell with a comma
    csv | ["fine,2", "well, bad film,1"] | all\.csv:3: 3 cells
    csv | ["fine"] | all\.csv:2: 1 cells
    tsv | ["\" good film\t3", "bad \" film\t1", "fine\t2"] | all\.tsv:\d: cannot be read as TSV
    tsv | ["\"Hello\t3", "c \"\t1"] | all\.tsv:\d: cannot be read as TSV
    tsv | ["\"Hello\tb\"\t1"] | all\.tsv:2: cannot be read as TSV
    csv | ["\"never closed,1", "fine,2"] | all\.csv:\d: cannot be read as CSV
    csv | [] | all\.csv: the table has no rows
""")
def test_a_row_that_would_run_into_another_is_refused_with_its_line(lines, ending, rows, told):
    data = lines("text,label".replace(",", ",\t"[ending == "tsv"]), *rows, ending=ending)
    with refuses(told):
        Sst5Reader(data, phrases="sentences").load()


def test_text_stays_text_in_csv_and_packed_files_are_tables(lines, tmp_path, file):
    data = lines("text,label,", "1.5,3,x", "2020-01-01,0,y", ending="csv")
    assert Sst5Reader(data, phrases="sentences").load()["dev"]["label"][:] == [3, 0]
    packed = file(gzip.compress((tmp_path / "all.csv").read_bytes()), "all.csv.gz")
    assert len(Sst5Reader(dict.fromkeys(data, str(packed)), phrases="sentences").load()["dev"]) == 2
    with refuses("row 0: unknown label True"):
        SnliReader(lines(PAIR | {"label": True})).load()


def test_an_array_of_json_may_be_one_line_longer_than_a_line_of_text(lines, monkeypatch):
    monkeypatch.setattr(limits, "LINE", 100)
    assert len(NerReader(lines(ROWS * 10, ending="json")).load()["train"]) == 20
    with refuses(r"all\.json: the table has no rows"):
        NerReader(lines(" ", ending="json")).load()


def test_a_word_a_row_and_lists_as_python_prints_them_are_refused(lines):
    with refuses("has one word in each row, but a row must be a sentence"):
        NerReader(lines(*({"tokens": word, "tags": "O"} for word in ("Ida", "sang")))).load()
    with refuses("row 0: tokens is a list as Python prints it; in CSV write"):
        NerReader(lines("tokens,tags", "\"['Ida', 'sang']\",O O", ending="csv")).load()


def test_a_column_may_be_named_by_one_of_ours_and_a_key_that_nothing_reads_is_refused(lines):
    rows = [
        {"sentence": "fine", "stars": 4, "text": "x", "label": 0},
        {"sentence": "bad", "stars": 1, "text": "y", "label": 0},
    ]
    data = lines(*rows)
    columns = {"columns": {"text": "sentence", "label": "stars"}}
    assert Sst5Reader(data | columns, phrases="sentences").load()["dev"]["label"][:] == [4, 1]
    swapped = lines({"premise": "b", "hypothesis": "a", "label": 0})
    pair = SnliReader(swapped | {"columns": {"premise": "hypothesis", "hypothesis": "premise"}}).load()["dev"][0]
    assert (pair["premise"], pair["hypothesis"]) == (["a"], ["b"])
    for reader in (CorefReader, NerReader, SnliReader, SquadReader, SrlReader, Sst5Reader):
        with refuses(r"task\.data\.trian: there is no such key; did you mean train\?"):
            reader(data | {"trian": "x"}).load()
        with refuses(r"task\.data\.train is empty, perhaps from an unset shell variable"):
            reader(data | {"train": ""}).load()
    with refuses(r"task\.data\.word_column is for column files; for a table, "):
        NerReader(data | {"word_column": 1}).load()
    for key in ("hub", "columns"):
        for reader in (CorefReader, SrlReader):
            with refuses(rf"task\.data\.{key}: there is no such key; .*train, dev, test, folder"):
                reader(data | {key: "x"}).load()


def test_keys_of_tables_are_refused_of_other_files(lines):
    data = lines("Ida B-PER", ending="iob2")
    for key, value in (("columns", {"tokens": "0"}), ("tag_names", ["O", "B-PER"])):
        with refuses(rf"task\.data\.{key} is for tables.* task\.data\.word_column and .*tag_col"):
            NerReader(data | {key: value}).load()
    with refuses(r"task\.data\.columns is for tables, and .*all\.txt is not one; leave it out"):
        Sst5Reader(lines("(3 fine)", ending="txt") | {"columns": {"text": "a"}}).load()


# Rows that are mapped from a file.


FEATURES = Features({"words": List(List(Value("string"))), "span": List(Value("int32"))})


def some(number: int):
    return ({"words": [["a"] * (i % 3), ["b"]], "span": None if i == 1 else [i, i + 1]} for i in range(number))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@for_each("number", "0 1 7")
def test_the_rows_stay_when_their_file_has_gone(folder, monkeypatch, number):
    monkeypatch.setattr(source, "CHUNK", 3)
    table = source.mapped(some(number), FEATURES)
    assert table.features == FEATURES
    assert table.to_list() == list(some(number))
    assert not list(folder.iterdir())


def test_a_folder_without_room_is_one_line(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ArrowWriter, "write", full)
    with refuses("no space left on the disk"):
        source.mapped(some(2), FEATURES)
    assert not list(folder.iterdir())


def test_an_error_of_the_rows_is_passed_on(folder):
    def broken():
        yield {"words": [["a"]], "span": [0, 0]}
        raise UserError("malformed")

    with refuses("malformed"):
        source.mapped(broken(), FEATURES)
    assert not list(folder.iterdir())
