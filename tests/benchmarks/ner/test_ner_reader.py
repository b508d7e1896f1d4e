"""The NER reader: files in any layout, the hub, vocabularies, batches, raw text, and what is wrong by file and line."""

from pathlib import Path

import datasets.config
import huggingface_hub.constants
import pytest
from datasets import ClassLabel, Dataset, DatasetDict, Features, Sequence, Value

from elmo_bench.text import hub
from tasks.ner.reader import NerReader
from tests.fakes import at, refuses, splits_in

TRAIN = "Ida\tB-PER\nBell\tI-PER\nsings\tO\nin\tO\nRoma\tB-LOC\n\nroma\tB-LOC\nsings\tO\n\n"
DEV = "Bell\tB-PER\nleft\tO\n"
TEST = "Acme\tB-ORG\n"


@pytest.fixture
def data(tmp_path):
    def write(train: str = TRAIN, dev: str = DEV, test: str = TEST, **more) -> dict:
        return splits_in(tmp_path, (train, dev, test)) | more

    return write


def test_rows_in_the_scheme_that_is_learned(data):
    splits = NerReader(data()).load()
    assert {name: len(split) for name, split in splits.items()} == {"train": 2, "dev": 1, "test": 1}
    row = {"tokens": "Ida Bell sings in Roma".split(), "tags": "B-PER E-PER O O S-LOC".split()}
    assert splits["train"][0] == row
    assert NerReader(data(), scheme="iob2").load()["train"][0]["tags"] == "B-PER I-PER O O B-LOC".split()


DOCSTART = "-DOCSTART- O\n\n"


def test_documents_begin_at_their_marks_and_one_alone_is_none(data):
    marked = f"Ida B-PER\n\n{DOCSTART}Bell B-PER\n\nin O\n{DOCSTART}{DOCSTART}Roma B-LOC\n"
    splits = NerReader(data(marked.replace("\t", " "), dev=f"{DOCSTART}Bell O\n\nin O\n")).load()
    assert splits["train"]["document"][:] == ["document 0", "document 1", "document 1", "document 3"]
    assert "document" not in splits["dev"].column_names


def test_documents_are_named_beside_the_file(data):
    place = data()
    beside = Path(place["folder"], "train.documents")
    beside.write_text("weblog-1\nmail 2\n")
    reader = NerReader(place)
    splits = reader.load()
    assert splits["train"]["document"][:] == ["weblog-1", "mail 2"]
    assert "document" not in splits["test"].column_names
    assert reader.collate(splits["train"].to_list()).labels["tags"].shape == (2, 5)
    for text, message, line in (("a\n", "1 lines, but train has 2 sentences", None), ("a\n \n", "no name", 2)):
        beside.write_text(text)
        with refuses(message, at(beside, line)):
            NerReader(place).load()


def test_columns_by_number_and_comments(data):
    train = "# sent_id = 1\n1\tIda\tB-PER\t_\n2\tsings\tO\t_\n"
    reader = NerReader(data(train, train, train, word_column=1, tag_column=2, comment="#"))
    assert reader.load()["dev"][0] == {"tokens": ["Ida", "sings"], "tags": ["S-PER", "O"]}


def test_vocabularies_come_from_train_alone_and_leave_rare_words_unknown(data):
    reader = NerReader(data(), char_min_count=2)
    reader.load()
    assert reader.vocabularies["words"].items == "<pad> <unk> roma sings".split()
    assert "R" not in reader.vocabularies["chars"]
    assert "l" in reader.vocabularies["chars"]
    assert reader.vocabularies["labels"].items[:3] == ["O", "B-LOC", "I-LOC"]
    assert len(reader.vocabularies["labels"]) == 9
    cased = NerReader(data(), lower=False, min_count=1)
    cased.load()
    assert {"Roma", "roma", "Ida"} <= set(cased.vocabularies["words"].items)


def test_a_type_that_train_lacks_is_kept_in_the_row_and_o_in_the_loss(data):
    reader = NerReader(data())
    (row,) = reader.load()["test"].to_list()
    assert row["tags"] == ["S-ORG"]
    assert reader.collate([row]).labels["tags"].tolist() == [[0]]


def test_tags_of_no_scheme_are_named_with_their_line(data):
    with refuses("train:2: .*no known scheme"):
        NerReader(data("Ida\tB-PER\nBell\tX-PER\n")).load()
    with refuses("train:4: .*does not follow"):
        NerReader(data("Ida\tB-PER\n\nin\tO\nBell\tI-PER\n")).load()


def test_broken_tags_can_be_read_as_the_scorer_reads_them(data):
    reader = NerReader(data("in\tO\nBell\tI-PER\n\nIda\tB-PER\n", source_scheme="conlleval"))
    assert reader.load()["train"]["tags"][:] == [["O", "S-PER"], ["S-PER"]]


def test_what_else_a_user_can_get_wrong(data):
    with refuses("no span"):
        NerReader(data("a\tO\n")).load()
    with refuses("train:1: column 5 is missing"):
        NerReader(data(tag_column=5)).load()
    with refuses("should be 'bioes' or 'iob2'"):
        NerReader({}, scheme="iob3")
    with refuses("source_scheme=iob3"):
        NerReader(data(source_scheme="iob3")).load()


# The hub.

NAMES = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]
HUB = {"hub": "owner/name", "revision": "r", "folder": None, "train": None, "dev": None}


def hub_data(features: Features | None = None) -> DatasetDict:
    named = {"tokens": Sequence(Value("string")), "ner_tags": Sequence(ClassLabel(names=NAMES))}
    features = features or Features(named)
    rows = {"tokens": [["Ida", "Bell", "sings"], []], "ner_tags": [[1, 2, 0], []]}
    return DatasetDict({name: Dataset.from_dict(rows, features) for name in ("train", "validation", "test")})


def test_hub_data_name_their_tags(on_hub):
    asked = on_hub(hub_data())
    splits = NerReader(HUB).load()
    assert asked == [(("owner/name", None), {"revision": "r"})]
    assert splits["dev"][:] == {"tokens": [["Ida", "Bell", "sings"]], "tags": [["B-PER", "E-PER", "O"]]}


def test_hub_tags_against_the_scheme_are_told_by_sentence(on_hub, capsys):
    features = hub_data()["train"].features
    rows = Dataset.from_dict({"tokens": [["a", "b"]] * 101, "ner_tags": [[1, 2]] * 100 + [[0, 4]]}, features)
    on_hub(DatasetDict(dict.fromkeys(("train", "validation", "test"), rows)))
    assert NerReader(HUB).load()["dev"]["tags"][100] == ["O", "S-LOC"]
    assert "1 of 101 entities against iob2 in dev (at sentence 100 token 1)" in capsys.readouterr().err


def test_a_folder_goes_before_the_hub(data):
    place = data()
    assert NerReader({**HUB, **place}).load()["train"].num_rows == 2


def test_files_are_never_passed_over_for_the_hub(on_hub):
    on_hub(hub_data())
    with refuses(r"task\.data\.dev names a file, and task\.data\.train none"):
        NerReader({**HUB, "dev": "mine.dev"}).load()
    with refuses(r"mine\.train: no such file"):
        NerReader({**HUB, "train": "mine.train", "dev": "mine.dev", "test": "mine.test"}).load()


def test_hub_faults_are_one_line(monkeypatch, on_hub):
    monkeypatch.setattr(hub, "_reachable", lambda: False)
    seen = []

    def fail(*_, **__):
        seen.append(huggingface_hub.constants.HF_HUB_OFFLINE)
        raise ConnectionError("Couldn't reach\nthe Hub")

    before = huggingface_hub.constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    monkeypatch.setattr(datasets, "load_dataset", fail)
    with refuses("no connection.*folder=DIR"):
        NerReader(HUB).load()
    assert seen == [True]
    assert before == (huggingface_hub.constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE)
    monkeypatch.setattr(hub, "_reachable", lambda: True)
    with refuses("ConnectionError: Couldn't reach the Hub"):
        NerReader(HUB).load()
    unnamed = Features({"tokens": Sequence(Value("string")), "ner_tags": Sequence(Value("int64"))})
    on_hub(hub_data(unnamed))
    with refuses(r"ner_tags .* numbers without names; .*tag_names=\[O,B-PER"):
        NerReader(HUB).load()
    named = NerReader({**HUB, "tag_names": NAMES}).load()
    assert named["train"]["tags"][:] == [["B-PER", "E-PER", "O"]]
    with refuses("row 0: ner_tags has the number 1, but .*tag_names has 1 names"):
        NerReader({**HUB, "tag_names": ["O"]}).load()


@pytest.mark.slow
def test_uner_is_read_whole(data_root):
    places = {split: f"{data_root}/ner_uner_ewt/{split}.iob2" for split in ("train", "dev", "test")}
    reader = NerReader(places)
    splits = reader.load()
    counted = {}
    for name, split in splits.items():
        entities = sum(tag[0] in "BS" for tags in split["tags"] for tag in tags)
        counted[name] = len(split), sum(map(len, split["tokens"])), entities
    assert counted == {"train": (12543, 204579, 7005), "dev": (2001, 25149, 966), "test": (2077, 25097, 1088)}
    assert {tag[2:] for tag in reader.vocabularies["labels"].items[1:]} == {"PER", "LOC", "ORG"}
