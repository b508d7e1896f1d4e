"""SRL's reader: rows and tags from columns, choices, batches, raw text; faults by file and line."""

import re

import pytest

from elmo_bench.task import Row
from tasks.srl.reader import SrlReader
from tests.fakes import refuses, splits_in, table

ROWS = """\
#begin document (nw/made/00/made_{n}); part 000
x 0 0 Ida NNP * - - - - * (ARG0*) * (ARG0* -
x 0 1 was VBD * be 03 - - * (V*) * *) -
x 0 2 glad JJ * glad 01 - - * * (V*) * -
x 0 3 to TO * - - - - * * (ARG1* * -
x 0 4 give VB * give 01 - - * * * (V*) -
x 0 5 up RP * - - - - * * *) (C-V*) -

x 0 0 Rain NN * - - - - * -

x 0 0 Bo NNP * - - - - * (ARG0*) -
x 0 1 sings VBZ * sing 01 - - * (V*) -

#end document
"""


@pytest.fixture
def data(tmp_path):
    def write(**changes: tuple[str, str]) -> dict[str, str]:
        kept = [changes.get(split, ("", "")) for split in ("train", "dev", "test")]
        return splits_in(
            tmp_path, [ROWS.replace("{n}", str(n)).replace(*each) for n, each in enumerate(kept)], ".conll"
        )

    return write


def rows_of(reader: SrlReader, split: str = "train") -> list[Row]:
    return [dict(row) for row in reader.load()[split]]  # type: ignore[arg-type]


def test_a_row_for_every_predicate(data):
    reader = SrlReader(data())
    rows = rows_of(reader)
    assert [(row["predicates"], " ".join(row["tags"][0])) for row in rows] == [
        ([1], "B-ARG0 B-V O O O O"),
        ([2], "O O B-V B-ARG1 I-ARG1 I-ARG1"),
        ([4], "B-ARG0 I-ARG0 O O B-V B-C-V"),
        ([1], "B-ARG0 B-V"),
    ]
    assert rows[0]["tokens"] == "Ida was glad to give up".split()
    assert "inner" not in rows[0]  # as no argument lies inside another
    roles = [f"{b}-{r}" for r in "ARG0 ARG1 C-V V".split() for b in "BI"]
    assert reader.vocabularies["labels"].items == ["O", *roles]
    assert sorted(reader.vocabularies["words"].items[2:]) == "bo give glad ida sings to up was".split()


def test_rows_name_their_document_unless_it_is_the_only_one(data):
    second = ROWS.replace("made_{n}", "other")
    folder = data(test=("#end document\n", f"#end document\n{second}"))
    assert [row["document"] for row in rows_of(SrlReader(folder), "test")] == ["nw/made/00/made_2"] * 4 + [
        "nw/made/00/other"
    ] * 4
    assert "document" not in rows_of(SrlReader(folder), "dev")[0]


def test_verbs_alone(data):
    rows = rows_of(SrlReader({**data(), "predicates": "verbs"}), "dev")
    assert [row["predicates"] for row in rows] == [[1], [4], [1]]


def test_every_second_sentence_and_short_ones_of_training_alone(data):
    reader = SrlReader({**data(), "every": 2}, longest=2)
    assert [row["tokens"] for row in rows_of(reader)] == [["Bo", "sings"]]
    assert len(rows_of(reader, "test")) == 4


def test_words_are_counted_once_a_sentence(data):
    reader = SrlReader(data(), lower=False, min_count=2)
    reader.load()
    assert reader.vocabularies["words"].items[2:] == []  # "Ida" stands in one sentence of three predicates


def test_batches(data):
    reader = SrlReader(data())
    rows = [rows_of(reader)[i] for i in (1, 3)]
    batch = reader.collate(rows)
    text = batch.texts["tokens"]
    assert text.sentences == [rows[0]["tokens"], rows[1]["tokens"]]
    assert text.parts is None
    assert batch.labels["predicates"].tolist() == [[0, 0, 1, 0, 0, 0], [0, 1, 0, 0, 0, 0]]
    labels = reader.vocabularies["labels"].items
    assert [labels[i] for i in batch.labels["tags"][1]] == "B-ARG0 B-V O O O O".split()


def test_raw_text_with_its_predicates(data):
    reader = SrlReader(data())
    reader.load()
    gives = reader.from_text(text="Ida gives  up", predicates=[1, 2])
    rows = [gives, reader.from_text(tokens=["no", "verb"], predicates=[])]
    assert (gives["tokens"], gives["predicates"]) == (["Ida", "gives", "up"], [1, 2])
    assert gives["places"] == [[0, 3], [4, 9], [11, 13]]
    batch = reader.collate(rows)
    text = batch.texts["tokens"]
    assert text.sentences == [["Ida", "gives", "up"]] * 2 + [["no", "verb"]]
    assert text.parts == [[3], [3], [2]]  # the biLM reads the sentence of two predicates once
    assert batch.labels["predicates"].tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


def test_faults_of_the_page(data):
    given = data()
    for wrong, message in table(r"""
        {"predicates": "nouns"} | should be 'all' or 'verbs'
        {"every": 0}            | greater than 0
        {"dev": null}           | dev
        {"test": "none.conll"}  | no such file
    """):
        with refuses(message):
            SrlReader({**given, **wrong}).load()
    with refuses("no predicate"):
        SrlReader({**data(dev=("VB", "NN")), "predicates": "verbs"}).load()


def test_a_file_without_arguments_is_asked_for_the_words_with_a_frame_or_else_with_a_lemma(data, tmp_path):
    reader, path = SrlReader(data()), tmp_path / "blind.conll"
    blind = re.sub(r"(?m)^((?:\S+ ){10}\S+) .*", r"\1 -", ROWS).replace("Rain NN * -", "Rain NN * rain")
    assert "(V*)" not in blind
    for text, rain in ((blind, []), (re.sub(" 0[13] ", " - ", blind), [0])):
        path.write_text(text)
        rows = reader.from_file(str(path))
        assert [row["predicates"] for row in rows] == [[1, 2, 4], rain, [1]]
        assert rows[0]["lemmas"] == ["be", "glad", "give"]
    path.write_text(ROWS.replace("Rain NN * - -", "Rain NN * rain 01"))  # a word that nobody annotated
    assert reader.from_file(str(path))[1]["predicates"] == []


@pytest.mark.slow
def test_the_open_data(data, data_root):
    """Numbers of the data set's own documentation: 4,968 predicates in dev, of which those tagged VB* are 3,801."""
    given, folder = data(), data_root / "srl_ewt"
    given |= {"train": f"{given['folder']}/train.conll", "test": str(folder / "test.conll")}
    splits = SrlReader({**given, "dev": str(folder / "dev.conll")}).load()
    assert [len(splits["dev"]), len(splits["test"])] == [4968, 4798]
    verbs = SrlReader({**given, "test": str(folder / "dev.conll"), "predicates": "verbs"})
    assert len(verbs.load()["test"]) == 3801


def test_roles_written_otherwise_than_in_the_training_data_are_told(data, capsys, tmp_path, file):
    SrlReader(data()).load()
    assert capsys.readouterr().err == ""
    SrlReader(data(test=("(ARG0*) * (ARG0*", "(A0*) * (A0*"))).load()
    assert capsys.readouterr().err == "task.data.train has 3 of the 5 roles of test (60.0%)\n"
    folder, alone = (
        data(),
        re.sub(r"\((?!V)[\w-]+\*\)?|(?<= )\*\)", "*", ROWS),
    )  # the same predicates, each with its V alone
    for split, change in (("dev", ROWS.replace("ARG", "A").replace("C-V", "K-V")), ("test", alone)):
        kept = (tmp_path / f"{split}.conll").read_text()
        file(change, f"{split}.conll")
        with refuses(r"written alike, ARG0 or A0|test data contain no argument"):
            SrlReader(folder).load()
        file(kept, f"{split}.conll")


def test_predicates_may_be_named_by_their_words(data):
    reader = SrlReader(data())
    words = {"text": "The girl who read it gave it up."}
    assert reader.from_text(**words, predicates="read, gave")["predicates"] == [3, 5]
    assert reader.from_text(**words, predicates=["gave", 3])["predicates"] == [5, 3]
    with refuses("it occurs 2 times; give its number, from 0"):
        reader.from_text(**words, predicates=["it"])
