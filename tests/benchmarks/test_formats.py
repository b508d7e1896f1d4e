"""One reader a format: train, predict and score read the same rows of every file, and refuse or tell the same."""

import gzip
import json
import lzma
import unicodedata
from pathlib import Path

import pytest
from datasets import ClassLabel, Dataset, Features, Value

from elmo_bench.commands.compare import Score
from elmo_bench.commands.compare import score as score_files
from elmo_bench.reporting.section import pipes
from elmo_bench.system import places
from elmo_bench.trained.prediction import read_rows
from tasks.coref.reader import CorefReader
from tasks.ner.reader import NerReader
from tasks.snli.reader import SnliReader
from tasks.squad.reader import SquadReader
from tasks.srl.reader import SrlReader
from tasks.sst5.reader import Sst5Reader
from tests.fakes import all_splits, cases, for_each, jsonl, refuses

READERS = {"ner": NerReader, "snli": SnliReader, "sst5": Sst5Reader, "squad": SquadReader,
           "srl": SrlReader, "coref": CorefReader}  # fmt: skip
TABLES = json.loads("""
{"ner": [{"tokens": ["Ida", "sang"], "tags": ["B-PER", "O"]}, {"tokens": ["In", "Oslo"], "tags": ["O", "B-LOC"]}],
 "snli": [{"premise": "Ida sang .", "hypothesis": "Yes .", "label": "entailment"},
          {"premise": "Ida sang .", "hypothesis": "Who .", "label": "neutral"},
          {"premise": "Ida sang .", "hypothesis": "No .", "label": "contradiction"}],
 "sst5": [{"text": "film 0", "label": 0}, {"text": "film 1", "label": 1}, {"text": "film 2", "label": 2},
          {"text": "film 3", "label": 3}, {"text": "film 4", "label": 4}],
 "squad": [{"id": "0", "title": "t", "context": "Ida sang 0", "question": "Who?",
            "answers": {"text": ["Ida"], "answer_start": [0]}},
           {"id": "1", "title": "t", "context": "Ida sang 1", "question": "Who?",
            "answers": {"text": ["Ida"], "answer_start": [0]}}]}
""")
CONLL = """\
#begin document (a); part 000
a 0 0 Ida NNP * - - - - * (ARG0*) (0)
a 0 1 sang VBD * sing 01 - - * (V*) -

a 0 0 She PRP * - - - - * (0)

#end document
"""
OWN = {
    "ner": "Ida\tB-PER\nsang\tO\n\nIn\tO\nOslo\tB-LOC\n",
    "snli": "gold_label\tsentence1\tsentence2\nentailment\tIda sang .\tYes .\nneutral\tIda sang .\tWho .\n"
    "contradiction\tIda sang .\tNo .\n",
    "sst5": "".join(f"({label} (2 film) (2 {label}))\n" for label in range(5)),
    "squad": """{"version": "1.1", "data": [{"title": "t", "paragraphs": [
        {"context": "Ida sang 0", "qas": [
            {"id": 0, "question": "Who?", "answers": [{"text": "Ida", "answer_start": 0}]}]},
        {"context": "Ida sang 1", "qas": [
            {"id": 1, "question": "Who?", "answers": [{"text": "Ida", "answer_start": 0}]}]}]}]}""",
    "srl": CONLL,
    "coref": CONLL,
}
FORMATS = "own csv tsv json jsonl parquet own.gz csv.xz".split()
NAMES = {"ner": "conll", "snli": "tsv", "sst5": "txt", "squad": "json", "srl": "conll", "coref": "conll"}


def reads(task: str, form: str) -> bool:
    """Whether a task reads a format: train, predict and score alike, as tested below, or none of them."""
    return form.startswith("own") or task in TABLES


def table() -> str:
    """The combinations, as in docs/data.md."""
    lines = [[task, *("yes" if reads(task, form) else "no" for form in FORMATS)] for task in READERS]
    return pipes(["task", *FORMATS], lines) + "\n"


def test_the_table_of_the_page_is_this_one():
    assert table() in (places.ROOT / "docs" / "data.md").read_text()


def written(folder: Path, task: str, form: str, rows=None) -> Path:
    """The same small data in a format."""
    kind, _, packed = form.partition(".")
    path = folder / f"{kind}.{NAMES[task] if kind == 'own' else kind}"
    rows = TABLES.get(task, []) if rows is None else rows
    if kind in ("csv", "tsv"):
        cells = [[" ".join(cell) if isinstance(cell, list) else json.dumps(cell) if isinstance(cell, dict) else cell
                  for cell in row.values()] for row in rows]  # fmt: skip
        mark = "," if kind == "csv" else "\t"
        quoted = [['"' + str(cell).replace('"', '""') + '"' for cell in row] for row in [rows[0], *cells]]
        path.write_text("".join(mark.join(row) + "\n" for row in quoted))
    elif kind == "parquet":
        Dataset.from_list(rows).to_parquet(str(path))
    else:
        lines = jsonl(rows)
        path.write_text({"own": OWN[task], "json": json.dumps(rows)}.get(kind, lines))
    if packed:
        content = path.read_bytes()
        path = path.with_name(f"{path.name}.{packed}")
        path.write_bytes({"gz": gzip.compress, "xz": lzma.compress}[packed](content))
    return path


def asked(task: str, path: Path, **keys) -> list[dict]:
    """The rows of `predict`."""
    reader = READERS[task](keys)
    if path.suffix in (".json", ".jsonl") and not (task == "squad" and path.stem == "own"):
        return [row for _, row in read_rows(reader, str(path), task)]
    return reader.from_file(str(path))


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("task", READERS)
def test_a_format_gives_the_same_rows_to_train_predict_and_score(tmp_path, task, form, file):
    if not reads(task, form):
        path = file(b"a", f"a.{form}")
        with refuses("reads CoNLL-2012 columns, not tables"):
            READERS[task](all_splits(path)).load()
        return
    path = written(tmp_path, task, form)
    reader = READERS[task](all_splits(path), **({"phrases": "sentences"} if task == "sst5" else {}))
    trained = reader.load()["test"].to_list()
    predicted = [row for row in asked(task, path) if row.get("predicates") != []]  # of SRL
    for field in reader.fields:
        assert [row[field] for row in predicted] == [row[field] for row in trained]
    own = answers = written(tmp_path, task, "own")
    if task == "squad":  # whose answers have a form of their own
        answers = file(json.dumps({row["id"]: "Ida" for row in TABLES[task]}), "answers")
    files = (path, answers), (own, answers if form.startswith("own") else path)
    found = [score_files(task, str(gold), str(given)) for gold, given in files]
    assert all(value == 100 for scores in found for name, value in scores.items() if "muc" not in name)


@for_each("form", "csv jsonl parquet")
@pytest.mark.parametrize("task", TABLES)
def test_columns_of_other_names_are_named_in_all_commands(tmp_path, task, form):
    field = {"ner": "tokens", "snli": "premise", "sst5": "text", "squad": "question"}[task]
    rows = [{"theirs" if name == field else name: cell for name, cell in row.items()} for row in TABLES[task]]
    path, columns = written(tmp_path, task, form, rows), {field: "theirs"}
    reader = READERS[task](all_splits(path) | {"columns": columns})
    assert len(reader.load()["dev"]) == len(asked(task, path, columns=columns)) == len(rows)
    assert set(score_files(task, str(path), str(path), {"columns": columns}).values()) == {100}


def test_keys_are_typed_after_score_as_after_train():
    given = ["task=snli", "gold=a", "predictions=b", "+task.data.labels={e: entailment, 0: neutral}",
             "task.data.columns.premise=theirs"]  # fmt: skip
    assert Score.parse(given).data == {
        "labels": {"e": "entailment", 0: "neutral"}, "columns": {"premise": "theirs"}
    }  # fmt: skip
    assert Score.parse(given[:3]).data == {}


def test_an_unknown_key_is_refused_by_score(tmp_path):
    path = str(written(tmp_path, "snli", "csv"))
    with refuses(r"task\.data\.label: there is no such key"):
        score_files("snli", path, path, {"label": 1})


# Labels.


@for_each("label", "ENTAILMENT e 2")
def test_labels_of_other_names_are_mapped_or_refused(tmp_path, label, file):
    path = written(tmp_path, "snli", "jsonl", [{"premise": "a", "hypothesis": "b", "label": label}])
    if label != 2:
        with refuses(rf"unknown label '{label}'; choose from entailment, .*task\.data\.labels="):
            SnliReader(all_splits(path)).load()
    mapped = SnliReader(all_splits(path) | {"labels": {label: "entailment"}}).load()
    assert mapped["train"]["label"][:] == ["entailment"]
    file("entailment\n", "answers")
    keys = {"labels": {label: "entailment"}}
    assert score_files("snli", str(path), str(tmp_path / "answers"), keys) == {"accuracy": 100}


def classes(folder: Path, names: list[str]) -> Path:
    features = Features(text=Value("string"), label=ClassLabel(names=names))
    rows = {"text": ["fine", "bad"], "label": [0, len(names) - 1]}
    Dataset.from_dict(rows, features).to_parquet(str(folder / "all.parquet"))
    return folder / "all.parquet"


def test_classes_are_read_by_their_names(tmp_path):
    names = ["very positive", "positive", "neutral", "negative", "very negative"]
    assert Sst5Reader(all_splits(classes(tmp_path, names)), phrases="sentences").load()["dev"]["label"][:] == [4, 0]
    with refuses("has the classes neg, pos: unknown label 'neg'; choose from 0, 1, 2, 3, 4"):
        Sst5Reader(all_splits(classes(tmp_path, ["neg", "pos"]))).load()


def test_numbers_without_names_and_classes_that_never_occur_are_told(tmp_path, capsys):
    rows = [{"text": "fine", "label": 1}, {"text": "bad", "label": 0}]
    Sst5Reader(all_splits(written(tmp_path, "sst5", "jsonl", rows)), phrases="sentences").load()
    told = capsys.readouterr().err
    assert "numbers without names, read as 0 (very negative), 1 (negative)" in told
    assert "only very negative, negative of very negative, negative, neutral, positive, very positive occur" in told


def test_what_predict_writes_as_a_name_is_a_label(tmp_path, file):
    file("4\n0\n", "gold")
    file("very positive\nvery negative\n\n", "answers")
    assert score_files("sst5", str(tmp_path / "gold"), str(tmp_path / "answers")) == {"accuracy": 100}


def test_files_without_a_label_in_common_say_so(tmp_path, capsys):
    for name, kind in (("gold", "PER"), ("answers", "person")):
        (tmp_path / name).write_text(f"Ida B-{kind}\n")
    files = str(tmp_path / "gold"), str(tmp_path / "answers")
    assert score_files("ner", *files)["f1"] == 0
    assert "no label in common: PER against person" in capsys.readouterr().err
    assert score_files("ner", *files, {"labels": {"person": "PER"}})["f1"] == 100


# What is only predicted needs no gold.


@cases(r"""
    task  | name    | text
    snli  | a.tsv   | "index\tsentence1\tsentence2\n0\tIda sang\tNo\n"
    snli  | b.jsonl | "{\"gold_label\": \"hidden\", \"sentence1\": \"Ida sang\", \"sentence2\": \"No\"}\n"
    snli  | c.csv   | "premise,hypothesis\nIda sang,No\n"
    ner   | a.txt   | "Ida\nsang\n"
    ner   | b.txt   | "Ida NNP\nsang VBD\n. .\n"
    ner   | c.csv   | "tokens\nIda sang\n"
    sst5  | a.csv   | "text\nIda sang\n"
    squad | a.csv   | "context,question\nIda sang,Who?\n"
    squad | b.json  | \
        "{\"data\": [{\"paragraphs\": [{\"context\": \"a\", \"qas\": [{\"id\": 7, \"question\": \"Who?\"}]}]}]}"
""")
def test_files_without_gold_are_predicted(tmp_path, task, name, text):
    (tmp_path / name).write_text(text)
    assert len(READERS[task]({}).from_file(str(tmp_path / name))) == 1


def test_an_empty_last_line_is_no_row_and_one_between_is_refused(file):
    path = file('{"text": "Ida"}\n\n', "in.jsonl")
    assert len(read_rows(NerReader({}), str(path), "ner")) == 1
    path.write_text('{"text": "Ida"}\n\n{"text": "Tom"}\n')
    with refuses(r"in\.jsonl:2: not JSON"):
        read_rows(NerReader({}), str(path), "ner")


def test_rows_keep_what_names_them(file):
    path = file(CONLL, "a.conll")
    place = {"document": "a", "part": "000"}
    assert READERS["coref"]({}).from_file(str(path))[0]["input"] == place
    predicates = {"predicates": [1], "lemmas": ["sing"]}  # with them the JSON lines can be predicted and scored again
    assert READERS["srl"]({}).from_file(str(path))[0]["input"] == place | predicates
    row = {"gold_label": "neutral", "sentence1": "a", "sentence2": "b", "pairID": "7"}
    path = file("\n".join("\t".join(cells) for cells in (row, row.values())), "a.tsv")
    assert SnliReader({}).from_file(str(path))[0]["input"] == row


# Columns.


def test_missing_empty_lines_are_told_and_a_split_of_one_long_sentence_is_refused(tmp_path, capsys):
    path = tmp_path / "a.iob2"
    files = {"train": str(path), "dev": str(path), "test": str(path)}
    for text, told in (("Ida O\n" * 101, "1 sentence of 101 words"), ("Ida O\n\n" * 3, "3 sentences of 3 words")):
        path.write_text(text)
        for read in (lambda: NerReader({}).from_file(str(path)), lambda: score_files("ner", str(path), str(path))):
            read()
            assert f"a.iob2: {told}; are the empty lines right?" in capsys.readouterr().err
    path.write_text("Ida O\n" * 101)
    with refuses(r"a\.iob2: 1 sentence of 101 words; are the empty lines right\?"):
        NerReader(files).load()


def test_a_separator_at_the_end_of_the_lines_is_no_column(tmp_path, file):
    clean, tabs, mixed = (tmp_path / name for name in ("clean", "tabs", "mixed"))
    text = CONLL.replace("#begin document", "#begin~document").replace("#end d", "#end~d")
    text = text.replace("~document (a); part", "~document~(a);~part").replace(" ", "\t").replace("~", " ")
    clean.write_text(text)
    tabs.write_text("".join(f"{line}\t\n" if "\t" in line else f"{line}\n" for line in text.split("\n")[:-1]))
    first, second = text.split("\n\n")[:2]
    mixed.write_text(first + "\n\n" + "\n".join(f"{line}\t" for line in second.split("\n")) + "\n\n#end document\n")
    expected = CorefReader(all_splits(clean)).load()["train"].to_list()
    for path in (tabs, mixed):
        assert CorefReader(all_splits(path)).load()["train"].to_list() == expected
        assert score_files("coref", str(clean), str(path))["conll_f1"] == pytest.approx(100)
        assert score_files("srl", str(clean), str(path))["f1"] == 100
    tagged = file("Ida\tB-PER\t\nsang\tO\t\n", "ner")
    assert NerReader(all_splits(tagged)).load()["train"]["tags"][:] == [["S-PER", "O"]]
    tagged.write_text("Ida\tB-PER\t\nsang\tO\n")
    with refuses("ner:2: 2 columns, but the lines before have 3"):
        NerReader(all_splits(tagged)).load()


def test_a_column_of_numbers_is_told_with_the_key(file):
    path = file("1 Ida B-PER\n2 sang O\n", "numbered")
    key = r"numbered:1: the first column numbers the words .* \+task\.data\.word_column=1"
    for read in (
        NerReader(all_splits(path)).load,
        lambda: asked("ner", path),
        lambda: score_files("ner", str(path), str(path)),
    ):
        with refuses(key):
            read()
    assert NerReader(all_splits(path) | {"word_column": 1}).load()["dev"]["tokens"][:] == [["Ida", "sang"]]
    assert asked("ner", path, word_column=1)[0]["tokens"] == ["Ida", "sang"]
    assert score_files("ner", str(path), str(path), {"word_column": 1})["f1"] == 100


# What was read can be written.


def test_lines_end_at_line_feeds_alone(file):
    path = file("a\u2028b O\n\x85 B-PER\n", "a")
    reader = NerReader({})
    rows = reader.from_file(str(path))
    assert reader.official([["O", "B-PER"]], rows) == "a\u2028b O\n\x85 B-PER\n\n"


@pytest.mark.parametrize("word", ["a\tb", "a\nb", " ", "-DOCSTART-"])
def test_a_word_that_columns_cannot_hold_is_refused_with_its_line(file, word):
    path = file(jsonl({"tokens": ["Ida", each]} for each in ("sang", word)), "in.jsonl")
    assert len(read_rows(NerReader({}), str(path), "ner")) == 2
    with refuses(r"in\.jsonl:2: .* cannot be written to a column file"):
        read_rows(NerReader({}), str(path), "ner", official=True)


def test_accents_in_either_form_are_the_same_to_score(tmp_path, file):
    for form in ("NFC", "NFD"):
        word = unicodedata.normalize(form, "Andr\u00e9")
        file(f"{word} B-PER\n", f"ner{form}")
        file(CONLL.replace("Ida", word), f"srl{form}")
        file(json.dumps({"q": word}), f"squad{form}")
        qas = [{"id": "q", "question": "Who?", "answers": [{"text": word, "answer_start": 0}]}]
        data = {"version": "1.1", "data": [{"paragraphs": [{"context": word, "qas": qas}]}]}
        file(json.dumps(data), f"gold{form}")
    assert score_files("ner", str(tmp_path / "nerNFC"), str(tmp_path / "nerNFD"))["f1"] == 100
    assert score_files("srl", str(tmp_path / "srlNFC"), str(tmp_path / "srlNFD"))["f1"] == 100
    assert score_files("squad", str(tmp_path / "goldNFC"), str(tmp_path / "squadNFD"))["exact_match"] == 100


if __name__ == "__main__":
    print(table(), end="")
