"""What the official data files contain against expectation, on invented lines: each of it is read, none is refused."""

import json
from pathlib import Path

import pytest

from elmo_bench.text.tokenizer import words
from tasks.coref.metric import score as score_coref
from tasks.coref.reader import CorefReader
from tasks.ner.reader import NerReader
from tasks.squad.paragraphs import AnswerSpan, placed
from tasks.squad.reader import SquadReader
from tasks.srl.reader import SrlReader
from tests.fakes import cases

SPLITS = ("train", "dev", "test")


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
