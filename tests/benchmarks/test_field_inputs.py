"""Inputs as people who do this job have them, each with what is right."""

import unicodedata
from pathlib import Path

import pytest

from elmo_bench.tagging.metric import score_spans
from elmo_bench.trained.opened import answered
from tasks.coref.metric import CorefMetric
from tasks.coref.metric import score as score_coref
from tasks.coref.reader import CorefReader
from tasks.ner.metric import score as score_ner
from tasks.ner.reader import NerReader
from tasks.snli.reader import SnliReader
from tasks.squad.reader import SquadReader
from tasks.srl.metric import score as score_srl
from tasks.srl.reader import SrlReader
from tasks.sst5.reader import Sst5Reader
from tests.benchmarks.test_formats import READERS
from tests.fakes import cases, refuses

BEGIN, END = "#begin document (nw/{}); part 000", "#end document"


def three(tmp_path: Path, text: str) -> dict[str, str]:
    """The text as train, dev and test."""
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.conll").write_text(text)
    return {split: str(tmp_path / f"{split}.conll") for split in ("train", "dev", "test")}


# Markers of documents.


def documents(begin: str = BEGIN, end: str = END) -> str:
    """Three documents, each with a cluster 0 of two mentions."""
    lines = []
    for name in "abc":
        rows = [f"nw/{name}\t0\t0\t{word}\tNN\t*\t-\t-\t-\t-\t*\t(0)\n" for word in ("Ann", "she")]
        lines += [f"{begin.format(name)}\n" if begin else "", *rows, "\n", f"{end}\n" if end else ""]
    return "".join(lines)


@cases("""
    begin                                | end
    #begin document (nw/{}); part 000    | #end document
    # begin document (nw/{}); part 000   | # end document
    #begin document nw/{}                | #end document
    "#Begin Document (nw/{}); part 0 "   | #End Document
    "#\\tbegin_document (nw/{}); part 000" | "#\\tend_document"
    ""                                   | ""
    # sentence 1                         | ""
""")
def test_train_and_score_tell_documents_apart_alike(tmp_path, begin, end):
    data = three(tmp_path, documents(begin, end))
    rows = CorefReader(data).load()["train"].to_list()
    assert [(row["document"], row["clusters"]) for row in rows] == [
        (f"nw/{name}", [[[0, 0], [1, 1]]]) for name in "abc"
    ]
    (tmp_path / "gold").write_text(documents())
    assert score_coref(tmp_path / "gold", data["dev"])["conll_f1"] == pytest.approx(100)


@pytest.mark.parametrize("begin", ["#document begins: nw/{}", "# newdoc id = nw/{}"])
def test_a_marker_of_documents_that_nobody_knows_is_refused_by_both(tmp_path, begin):
    data = three(tmp_path, documents(begin, ""))
    with refuses(r"train\.conll:1: a sentence outside any document; expected '#begin"):
        CorefReader(data).load()
    with refuses(r"dev\.conll:1: .*expected '#begin document"):
        score_coref(data["train"].replace("train", "dev"), data["dev"])


@pytest.mark.parametrize("empty", ["", "-", " "])
def test_an_empty_last_cell_is_no_mention(tmp_path, empty):
    """As in LitBank's own files."""
    rows = [
        f"a_brat\t0\t{i}\t{word}" + "\t_" * 8 + f"\t{cell}"
        for i, (word, cell) in enumerate([("Ann", "(0)"), ("sang", empty)])
    ]
    text = "\n".join(["#begin document (a_brat); part 0", *rows, "", *rows, "", END, ""])
    data = three(tmp_path, text)
    assert CorefReader(data).load()["train"][0]["clusters"] == [[[0, 0], [2, 2]]]
    assert score_coref(data["train"], data["test"])["conll_f1"] == pytest.approx(100)


@pytest.mark.parametrize("reader", [CorefReader, SrlReader])
def test_a_skeleton_is_refused_by_those_who_need_its_words(tmp_path, reader):
    data = three(tmp_path, documents().replace("Ann", "[WORD]").replace("she", "[WORD]"))
    score = score_coref if reader is CorefReader else score_srl
    reads = reader(data).load, lambda: reader({}).from_file(data["train"]), lambda: score(data["train"], data["test"])
    for read in reads:
        with refuses(r"train\.conll:1: 2 of 2 words are missing"):
            read()


# Arguments inside others.


@cases("""
    column                                      | tags                     | inner
    ["(ARG1*", "*)", "(ARG0(R-ARG1*))", "(V*)"] | B-ARG1 I-ARG1 B-ARG0 B-V | O O B-R-ARG1 O
    ["(ARG1*", "(R-ARG1*)", "*)", "(V*)"]       | B-ARG1 I-ARG1 I-ARG1 B-V | O B-R-ARG1 O O
    ["(ARG1(ARG2*", "*)", "(ARG3*))", "(V*)"]   | B-ARG1 I-ARG1 I-ARG1 B-V | B-ARG2 I-ARG2 B-ARG3 O
""")
def test_one_label_a_word_is_learned_and_both_are_scored(tmp_path, capsys, column, tags, inner):
    words = ("The", "man", "who", "sang")
    cells = ["- -", "- -", "- -", "sing 01"]
    rows = [f"nw/x 0 {i} {words[i]} VBD * {cells[i]} - - * {column[i]} -" for i in range(4)]
    data = three(tmp_path, "\n".join([BEGIN.format("x"), *rows, "", END, ""]))
    reader = SrlReader(data)
    (row,) = reader.load()["train"].to_list()
    assert (row["tags"], row["inner"]) == ([tags.split()], [inner.split()])
    lines = [2 + place for place, tag in enumerate(inner.split()) if tag[0] == "B"]
    where = ", ".join(f"{data['train']}:{line}" for line in lines)
    told = f"srl train: {len(lines)} arguments lie inside others and are not learned, only scored ({where})"
    assert told in capsys.readouterr().err
    assert score_srl(data["train"], data["test"])["f1"] == 100


# Raw text.


@cases(r"""
    raw                                                              | tokenized
    Anna Berg works for Acme in Paris.                               | Anna Berg works for Acme in Paris .
    I met Tom, Ida, and Bob in Rome, Italy.                          | I met Tom , Ida , and Bob in Rome , Italy .
    "Bergman" visited (Berlin).                                      | " Bergman " visited ( Berlin ) .
    O'Brien didn't read the Qur'an in Xi'an.                         | O'Brien did n't read the Qur'an in Xi'an .
    Great film ❤️❤️ 👍🏽                                               | Great film ❤️ ❤️ 👍🏽
    "Soft\u00adly, na\u00efve Mah\u0101r\u0101\u1e63\u1e6dra\u200b!" | Softly , naïve Mahārāṣṭra !
""")
def test_text_has_the_same_words_for_all_tasks_in_either_form(raw, tokenized):
    expected = tokenized.split()
    for text in (raw, unicodedata.normalize("NFD", raw)):
        rows = [
            NerReader({}).from_text(text=text), SrlReader({}).from_text(text=text, predicates=[]),
            CorefReader({}).from_text(text=text), Sst5Reader({}).from_text(text=text),
        ]  # fmt: skip
        found = [row["sentences"][0] if "sentences" in row else row["tokens"] for row in rows]
        found.append(SnliReader({}).from_text(premise=text, hypothesis="x")["premise"])
        question = SquadReader({}).from_text(context=text, question="x")
        found.append([word for sentence in question["context"] for word in sentence])
        assert found == [expected] * 6
        for row in rows[:3]:
            pieces = [text[start:end] for start, end in row["places"]]
            assert [unicodedata.normalize("NFC", piece).replace("\u00ad", "") for piece in pieces] == expected
        assert [text[a:b] for a, b in zip(question["starts"], question["ends"], strict=True)] == pieces


@cases(r"""
    task  | keys               | refused
    ner   | text               | [{"words": ["a"]}, {"text": ["a"]}, {"tokens": []}, {"tokens": " "}, \
        {"tokens": ["a", 1]}]
    srl   | text predicates    | [{"predicates": [5]}, {"predicates": [-1]}, {"predicates": [true]}, \
        {"predicates": 1}, {"predicates": [0, 0]}, {"predicates": [0], "lemmas": []}]
    coref | text               | []
    sst5  | text               | []
    snli  | premise hypothesis | [{"premise": ["a"]}]
    squad | context question   | []
""")
def test_raw_text_that_does_not_fit_is_refused(task, keys, refused):
    reader, keys = READERS[task], keys.split()
    good = {key: [] if key == "predicates" else "Ida sang" for key in keys}
    reader({}).from_text(**good)
    lacking = [{other: good[other] for other in keys if other != key} for key in keys]
    empty = ("", " \n", "\u200b", "\ufeff \u200b", 3, None)
    texts = [good | {key: text} for key in keys if key != "predicates" for text in empty]
    for raw in lacking + texts + [(good if good.keys() & each else {}) | each for each in refused]:
        with refuses():
            reader({}).from_text(**raw)


def test_a_document_is_split_into_sentences():
    text = 'Ida sang. "Go!" Dr. Bell left\nShe stayed.'
    row = CorefReader({}).from_text(text=text)
    assert [" ".join(words) for words in row["sentences"]] == [
        "Ida sang .", '" Go ! "', "Dr. Bell left", "She stayed .",
    ]  # fmt: skip
    flat = [word for words in row["sentences"] for word in words]
    assert [text[start:end] for start, end in row["places"]] == flat


def test_words_that_are_given_are_taken_as_they_are():
    given = ["Paris.", "Qur'an", "e\u0301"]
    assert NerReader({}).from_text(tokens=given, text="x")["tokens"] == given
    assert CorefReader({}).from_text(sentences=[given], text="x")["sentences"] == [given]


# Keys of the input.


@cases("""
    task  | raw
    ner   | {"tokens": ["Oslo"], "tags": ["B-LOC"], "entities": "gold", "self": 1, "id": null}
    snli  | {"premise": "a", "hypothesis": "b", "label": "gold", "gold_label": "-", "probabilities": [1]}
    sst5  | {"tokens": ["Fine"], "label": 4, "name": "film-17", "sentence": "Fine"}
    coref | {"sentences": [["Ida"]], "clusters": [[[0, 0]]], "document": "a", "part": "1", "speaker": 1}
""")
def test_what_the_input_has_stays(task, raw):
    reader = READERS[task]
    row = reader({}).from_text(**raw)
    assert answered(raw, row, reader.fields, {"tags": ["O"]}) == raw | {"prediction": {"tags": ["O"]}}


# Official files.


def test_tags_are_written_as_score_reads_them(tmp_path, file):
    file("Ida\tB-PER\nBerg\tI-PER\nsang\tO\n\nOslo\tB-LOC\n", "gold")
    reader = NerReader({})
    rows = reader.from_file(str(tmp_path / "gold"))
    file(reader.official([["B-PER", "I-PER", "O"], ["B-LOC"]], rows), "answers")
    assert score_ner(tmp_path / "gold", tmp_path / "answers")["f1"] == 100
    with refuses("cannot be written to a file of columns"):
        reader.official([["O"]], [{"tokens": ["two\nlines"]}])


def test_documents_without_names_can_be_written_and_read(tmp_path):
    reader = CorefReader({})
    rows = [reader.from_text(text="Ann sang. She left."), reader.from_text(sentences=[["Ann"]], document="a", part="1")]
    text = reader.official([{"clusters": [[[0, 0], [3, 3]], [[3, 4]]]}, {"clusters": []}], rows)
    (tmp_path / "answers").write_text(text)
    again = reader.from_file(str(tmp_path / "answers"))
    assert [row["sentences"] for row in again] == [row["sentences"] for row in rows]
    assert [(row["document"], row["part"]) for row in again] == [("document 1", "000"), ("a", "1")]
    assert score_coref(tmp_path / "answers", tmp_path / "answers")["conll_f1"] == pytest.approx(100)


@cases("""
    named                | told
    [{"document": "#1"}] | a comment: give the document '#1' another name
    [{"document": "a", "part": "1"}, {"document": "a", "part": "001"}] | 'a', '001' occurs twice
    [{"document": "document 2"}, {}] | 'document 2', '000' occurs twice
""")
def test_documents_that_score_would_not_read_are_not_written(named, told):
    reader = CorefReader({})
    rows = [reader.from_text(text="Ann sang.", **names) for names in named]
    with refuses(told):
        reader.official([{"clusters": []} for _ in rows], rows)


@pytest.mark.parametrize("comment", ["# sent_id = 1", "# id1"])
def test_comments_of_a_column_file_name_the_key_where_there_is_one(tmp_path, comment):
    file = tmp_path / "a"
    file.write_text(f"{comment}\nIda\tB-PER\n\n".replace("\t", "\t" if "=" in comment else " "))
    data = {split: str(file) for split in ("train", "dev", "test")}
    with refuses("""are comments, add '\\+task.data.comment="#"'"""):
        NerReader(data).load()
    with refuses("are comments, add"):
        score_spans(file, file)
    assert len(NerReader({**data, "comment": "#"}).load()["train"]) == 1
    file.write_text("Ida B-PER\n# sent_id = 1\n")
    with refuses("are comments, add"):
        NerReader(data).from_file(str(file))


# Answers of a model that was trained on a part of what a file holds.

PARTLY = """\
#begin document (nw/a); part 000
x 0 0 Ida  NNP * -    -  - - * (ARG0*) (ARG0*) (0)
x 0 1 gave VBD * give 01 - - * (V*)    *       -
x 0 2 help NN  * help 01 - - * (ARG1*) (V*)    (1)
x 0 3 she  PRP * -    -  - - * *       *       (0)

#end document
"""


def test_a_model_of_verbs_is_asked_for_verbs_and_scored_on_them(tmp_path, capsys):
    gold, answers = tmp_path / "gold.conll", tmp_path / "answers"
    gold.write_text(PARTLY)
    arguments = [{"label": "ARG0", "start": 0, "end": 1}, {"label": "ARG1", "start": 2, "end": 3}]
    for chosen, f1 in (
        ("verbs", 100),
        ("all", 80),
    ):  # of a noun that is missing, the argument is missed, as in srl-eval
        reader = SrlReader({"predicates": chosen})
        rows = reader.from_file(str(gold))
        assert [row["predicates"] for row in rows] == [[1] if chosen == "verbs" else [1, 2]]
        told = capsys.readouterr().err
        assert ("1 predicates are no verbs and left out" in told) == (chosen == "verbs")
        rows = [row | {"predicates": [1], "lemmas": ["give"], "frames": ["01"]} for row in rows]
        answers.write_text(reader.official([{"frames": [{"predicate": 1, "arguments": arguments}]}], rows))
        assert score_srl(gold, answers)["f1"] == pytest.approx(f1)
        assert ("1 predicates of" in capsys.readouterr().err) == (chosen == "verbs")
    unknown = SrlReader({"predicates": "verbs"}).from_file(str(answers))
    assert unknown[0]["predicates"] == [1]  # no part of speech


def test_clusters_of_one_mention_count_in_score_as_they_did_in_the_run(tmp_path, capsys):
    gold, answers = tmp_path / "gold.conll", tmp_path / "answers"
    gold.write_text(PARTLY)
    for keep in (False, True):
        reader = CorefReader(dict.fromkeys(("train", "dev", "test"), str(gold)), keep_singletons=keep)
        clusters = {"clusters": [[[0, 0], [3, 3]]]}
        answers.write_text(reader.official([clusters], reader.from_file(str(gold))))
        metric = CorefMetric()
        metric.update([clusters], reader.load()["test"].to_list())
        scores = score_coref(gold, answers)
        assert scores == pytest.approx(metric.compute())
        assert (scores["conll_f1"] == pytest.approx(100)) != keep
        assert ("1 clusters of one mention" in capsys.readouterr().err) != keep
