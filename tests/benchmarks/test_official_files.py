"""What the official data files contain against expectation, on invented lines: each of it is read, none is refused."""

import json
import unicodedata
from pathlib import Path

import pytest

from elmo_bench.tagging.metric import score_spans
from elmo_bench.text.tokenizer import words
from elmo_bench.trained.opened import answered
from tasks.coref.metric import CorefMetric
from tasks.coref.metric import score as score_coref
from tasks.coref.reader import CorefReader
from tasks.ner.reader import NerReader
from tasks.snli.reader import SnliReader
from tasks.squad.paragraphs import AnswerSpan, placed
from tasks.squad.reader import SquadReader
from tasks.srl.metric import score as score_srl
from tasks.srl.reader import SrlReader
from tasks.sst5.reader import Sst5Reader
from tests.benchmarks.test_formats import READERS
from tests.fakes import SPLITS, all_splits, cases, put, refuses


def write(folder: Path, texts: dict[str, str]) -> dict[str, str]:
    """Writes a file for each split, in the bytes of the text, and returns the `data` that name them."""
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode())
    return {"folder": str(folder), **dict(zip(SPLITS, texts, strict=True))}


# CoNLL-2003: eng.train, eng.testa, eng.testb.


def ner_data(folder: Path, train: str, dev: str = "Ida NNP I-NP I-PER\n", test: str = "Pell NNP I-NP I-LOC\n") -> dict:
    return write(folder, {"eng.train": train, "eng.testa": dev, "eng.testb": test})


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("docstart", ["-DOCSTART- -X- -X- O", "-DOCSTART- -X- O O"])
@pytest.mark.parametrize("blank", ["", "  "])
@pytest.mark.parametrize("last", ["", "\n", "\n \n\n"])
def test_marks_of_documents_blank_lines_and_ends_of_lines(tmp_path, end, docstart, blank, last):
    """Four columns, a document that begins without an empty line, and a last sentence with or without one."""
    first, second = ["Ida NNP I-NP I-PER ", "sang VBD I-VP O"], ["# SYM O O", "Pell NNP I-NP I-LOC"]
    text = "\n".join([docstart, blank, *first, blank, docstart, *second]) + last
    rows = NerReader(ner_data(tmp_path, text.replace("\n", end))).load()["train"].to_list()
    assert rows == [
        {"tokens": ["Ida", "sang"], "tags": ["S-PER", "O"], "document": "document 1"},
        {"tokens": ["#", "Pell"], "tags": ["O", "S-LOC"], "document": "document 2"},
    ]


IOB1 = "Pell NNP I-NP I-LOC\nBell NNP I-NP I-LOC\nRoma NNP I-NP B-LOC\nsang VBD I-VP O\n\n"
ODD = "the DT I-NP O\nold JJ I-NP B-MISC\nBell NNP I-NP I-MISC\n\n"  # B-MISC after O: not in IOB1


def test_training_lines_that_break_the_scheme_are_repaired_and_told_once(tmp_path, capsys):
    data = ner_data(tmp_path, ODD + IOB1 * 150 + ODD)
    rows = NerReader(data).load()["train"].to_list()
    assert rows[0]["tags"] == rows[-1]["tags"] == ["O", "B-MISC", "E-MISC"]
    assert rows[1]["tags"] == "B-LOC E-LOC S-LOC O".split()
    where = f"{tmp_path}/eng.train (lines 2, 756)"
    told = f"tags repaired as conlleval reads them: 2 of 302 entities against iob1 in {where}\n"
    assert capsys.readouterr().err == told


def test_a_place_of_each_split_is_told_and_a_long_list_is_cut(tmp_path, capsys):
    NerReader(ner_data(tmp_path, ODD * 14 + IOB1 * 700, test=IOB1 * 60 + ODD)).load()
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert "14 of 1414 entities against iob1" in told
    assert "(lines 2, 6, 10, 14, 18, 22, 26, 30, 34, 38 and 4 more)" in told
    assert "1 of 121 entities against iob1" in told
    assert "eng.testb (line 302)" in told


# CoNLL-2012: *.v4_gold_conll below nested folders.

GOLD = """\
#begin document (bc/made/00/made_0001); part 000
bc/made/00/made_0001   0    0      Ida    NNP  (TOP(S(NP*)     -    -   -   Host#1  (PERSON)   (ARG0*)   (0|(0)
bc/made/00/made_0001   0    1     Bell    NNP            *     -    -   -   Host#1         *         *        0)
bc/made/00/made_0001   0    2     sang    VBD        (VP*)  sing   01   1   Host#1         *       (V*)       -
bc/made/00/made_0001   0    3       /.      .          *))     -    -   -   Host#1         *         *        -

bc/made/00/made_0001   0    0     Yes      UH     (TOP(FRAG*     -    -   -   -   *    -
bc/made/00/made_0001   0    1      /-       :              *     -    -   -   -   *    -
bc/made/00/made_0001   0    2     she     PRP            (NP*)   -    -   -   -   *   (0
bc/made/00/made_0001   0    3    they     PRP            (NP*)   -    -   -   -   *   0)|(0
bc/made/00/made_0001   0    4      /?       .             *))    -    -   -   -   *   0)

#end document
#begin document (bc/made/00/made_0001); part 001
bc/made/00/made_0001   1    0     Rain     NN    (TOP(NP*    rain    -   1   -   *   (0)
bc/made/00/made_0001   1    1      /.       .          *))     -     -   -   -   *    -

#end document
"""
PLACE = "data/{split}/data/english/annotations/bc/made/0{n}/made_000{n}.v4_gold_conll"


@pytest.fixture
def ontonotes(tmp_path):
    for n, split in enumerate(SPLITS, start=1):
        path = tmp_path / PLACE.format(split=split, n=n)
        path.parent.mkdir(parents=True)
        path.write_text(GOLD.replace("made_0001", f"made_000{n}"))
        path.with_suffix(".v4_gold_skel").write_text("not to be read")
        path.with_suffix(".v4_gold_parse_conll").write_text("not to be read")
    return {"folder": str(tmp_path / "data"), **{split: f"{split}/data/english" for split in SPLITS}}


def test_coreference_reads_every_part_with_nested_and_touching_mentions(ontonotes):
    rows = CorefReader(ontonotes, keep_singletons=True).load()["dev"].to_list()
    parts = [("bc/made/00/made_0002", part, "bc") for part in ("000", "001")]
    assert [(row["document"], row["part"], row["genre"]) for row in rows] == parts
    (cluster,) = rows[0]["clusters"]
    assert sorted(cluster) == [[0, 0], [0, 1], [6, 8], [7, 7]]  # `0)|(0`: a mention of this word inside a longer one
    assert rows[1]["clusters"] == [[[0, 0]]]
    assert rows[0]["speakers"] == ["Host#1"] * 4 + ["-"] * 5


def test_coreference_writes_marks_with_a_slash_as_vectors_and_the_bilm_know_them(ontonotes):
    reader = CorefReader(ontonotes, min_count=1)
    rows = reader.load()["train"].to_list()
    assert rows[0]["sentences"] == ["Ida Bell sang .".split(), "Yes /- she they ?".split()]
    assert {".", "?", "/-"} <= set(reader.vocabularies["words"].items)
    assert not {"/.", "/?"} & set(reader.vocabularies["words"].items)


def test_coreference_repeats_words_as_given(ontonotes):
    reader = CorefReader(ontonotes, min_count=1)
    reader.load()
    row = reader.from_text(sentences=[["Ida", "sang", "/."], ["she", "/?"]])
    batch = reader.collate([row])
    assert batch.texts["sentences"].sentences == [["Ida", "sang", "."], ["she", "?"]]
    assert batch.texts["sentences"].words[0, 2] == reader.vocabularies["words"]["."]
    assert batch.rows[0]["sentences"] == [["Ida", "sang", "/."], ["she", "/?"]]


def test_coreference_scores_the_files_by_position(ontonotes):
    gold = Path(ontonotes["folder"], "train/data/english/annotations/bc/made/01/made_0001.v4_gold_conll")
    written = gold.with_name("answers")
    written.write_text(gold.read_text().replace(" /.", "  .").replace(" /?", "  ?"))
    assert score_coref(gold, written)["conll_f1"] == pytest.approx(100)


def test_roles_keep_marks_with_a_slash_and_need_no_predicate_in_a_sentence(ontonotes):
    reader = SrlReader(ontonotes)
    (row,) = reader.load()["test"].to_list()
    assert (row["tokens"], row["predicates"]) == ("Ida Bell sang /.".split(), [2])
    assert row["tags"] == ["B-ARG0 O B-V O".split()]
    assert "/." in reader.vocabularies["words"]


# SQuAD v1.1.

CONTEXT = "Ida\u00a0Bell was\tborn in\u2009Ar\u200blen,  1,902-foot\u3000high. Roma is not far."
BORN, ROMA = map(CONTEXT.index, ("born", "Roma"))


@cases(r"""
    word | text              | off | found             | at
    born | born              | 0  | born              | 0
    born | born              | -1 | born              | 0
    born | born              | 2  | born              | 0
    Roma | " Roma"           | -1 | " Roma"           | -1
    Roma | " Roma "          | 0  | " Roma "          | -1
    far  | " far "           | 0  | far               | 0
    Ida  | Ida Bell          | 0  | Ida Bell          | 0
    Ida  | Ida Bell was born | 1  | Ida Bell was born | 0
    Ida  | "Ida\u00a0Bell"   | 0  | "Ida\u00a0Bell"   | 0
    born | born              | 3  | null              | 0
    Ida  | Roma              | -1 | null              | 0
    Ida  | Bo                | 0  | null              | 0
""")
def test_an_answer_is_found_within_two_characters_whatever_its_white_space(word, text, off, found, at):
    """Places are told from a word of the context. After `far` a full stop follows."""
    start = CONTEXT.index(word)
    assert placed(AnswerSpan(text, start + off), CONTEXT) == (found and AnswerSpan(found, start + at))


def test_of_two_places_the_nearer_is_taken():
    assert placed(AnswerSpan("a", 3), "a b a a") == AnswerSpan("a", 4)


def test_answers_off_their_place_repeated_questions_and_unusual_white_space(tmp_path):
    """No answer is refused; the words of each are those that it covers, if only in part."""
    asked = {" Roma ": ROMA, "902": 32, "Ida Bell": 0, "Ar\u200blen": 21, "high": 40, " born": BORN}
    questions = [
        {"id": str(i), "question": "\u00a0 Where?", "answers": [{"text": text, "answer_start": start}] * 2}
        for i, (text, start) in enumerate(asked.items())
    ]
    data = {"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": CONTEXT, "qas": questions}]}]}
    named = write(tmp_path, dict.fromkeys(("a.json", "b.json", "c.json"), json.dumps(data)))
    rows = SquadReader(named).load()["train"].to_list()
    assert [row["question"] for row in rows] == [["Where", "?"]] * len(asked)
    context = [word.form for word in words(CONTEXT, apart=True)]
    covered = [" ".join(context[row["span"][0] : row["span"][1] + 1]) for row in rows]
    assert covered == ["Roma", "1,902", "Ida Bell", "Ar \u200b len", "high", "born"]


# Inputs as people who do this job have them, each with what is right.


BEGIN, END = "#begin document (nw/{}); part 000", "#end document"


def three(tmp_path: Path, text: str) -> dict[str, str]:
    """The text as train, dev and test."""
    put(tmp_path, {f"{split}.conll": text for split in SPLITS})
    return {split: str(tmp_path / f"{split}.conll") for split in SPLITS}


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
def test_train_and_score_tell_documents_apart_alike(tmp_path, begin, end, file):
    data = three(tmp_path, documents(begin, end))
    rows = CorefReader(data).load()["train"].to_list()
    assert [(row["document"], row["clusters"]) for row in rows] == [
        (f"nw/{name}", [[[0, 0], [1, 1]]]) for name in "abc"
    ]
    file(documents(), "gold")
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


def test_documents_without_names_can_be_written_and_read(tmp_path, file):
    reader = CorefReader({})
    rows = [reader.from_text(text="Ann sang. She left."), reader.from_text(sentences=[["Ann"]], document="a", part="1")]
    text = reader.official([{"clusters": [[[0, 0], [3, 3]], [[3, 4]]]}, {"clusters": []}], rows)
    file(text, "answers")
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
    data = all_splits(file)
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
        reader = CorefReader(all_splits(gold), keep_singletons=keep)
        clusters = {"clusters": [[[0, 0], [3, 3]]]}
        answers.write_text(reader.official([clusters], reader.from_file(str(gold))))
        metric = CorefMetric()
        metric.update([clusters], reader.load()["test"].to_list())
        scores = score_coref(gold, answers)
        assert scores == pytest.approx(metric.compute())
        assert (scores["conll_f1"] == pytest.approx(100)) != keep
        assert ("1 clusters of one mention" in capsys.readouterr().err) != keep
