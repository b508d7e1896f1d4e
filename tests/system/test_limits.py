"""What is read has limits: regular files only, bounds on lines, sizes, nesting and digits; beyond them, one line."""

import gzip
import json
import os
import socket
import time
from pathlib import Path

import pytest

from elmo_bench.bilm.options import Options
from elmo_bench.bilm.weights import load_weights
from elmo_bench.commands.compare import score
from elmo_bench.commands.train import Train
from elmo_bench.embedding.tables import VectorFiles
from elmo_bench.embedding.vectors import read
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import hashing, json_text, limits, yaml_text
from elmo_bench.system.storage.files import open_text, read_text
from elmo_bench.text import brackets
from elmo_bench.text.columns import read_blocks
from elmo_bench.text.conll2012 import find_files, read_documents
from elmo_bench.trained import prediction
from tasks.snli import reader as snli
from tasks.snli.pairs import labels, read_pairs
from tasks.squad import paragraphs
from tasks.sst5 import reader as sst5
from tasks.sst5.trees import read_trees
from tests.drill import documents
from tests.drill.mutations import PACKERS
from tests.fakes import for_each, refuses

pytestmark = pytest.mark.slow


def lines_of(path) -> list[str]:
    with open_text(path) as lines:
        return list(lines)


# Regular files.

OPENERS = {
    "text": lines_of,
    "whole": read_text,
    "yaml": yaml_text.read,
    "digest": hashing.sha256,
    "digest of the content": hashing.content_sha256,
    "options": Options.read,
    "weights": lambda path: load_weights(None, None, path),  # type: ignore[arg-type]
    "vectors": lambda path: read(VectorFiles(path), {"a"}, 2),
    "matrix": lambda path: read(VectorFiles(path.with_name("pipe.npy"), path.with_name("words")), {"a"}, 2),
    "score": lambda path: score("snli", str(path), str(path)),
    "predict": lambda path: list(prediction.read_lines(str(path))),
}


@pytest.fixture
def irregular(tmp_path):
    """A folder, a pipe, a socket, a device, and a link that leads nowhere."""
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "pipe.npy")
    (tmp_path / "words").write_text("a\n")
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with socket.socket(socket.AF_UNIX) as one:
        here = os.getcwd()
        os.chdir(tmp_path)  # the name of a socket must be short
        one.bind("socket")
        os.chdir(here)
        yield {"folder": tmp_path, "pipe": tmp_path / "pipe", "socket": tmp_path / "socket",
               "device": Path("/dev/zero"), "link": tmp_path / "link"}  # fmt: skip


@pytest.mark.parametrize("opener", OPENERS)
def test_what_is_no_regular_file_is_never_opened(irregular, opener):
    for kind, path in irregular.items():
        if (opener == "matrix" and kind != "pipe") or (opener == "digest of the content" and kind == "folder"):
            continue
        with refuses("a link to .*gone, which does not exist" if kind == "link" else "regular file"):
            OPENERS[opener](path)


TRAIN = "task=ner scale=open arm=baseline vectors=random trainer=cpu".split()


def test_a_run_whose_data_are_a_pipe_ends_at_once(refused, tmp_path, file):
    os.mkfifo(tmp_path / "pipe")
    file(documents.NER, "dev.iob2")
    data = [f"task.data.{split}={tmp_path / 'dev.iob2'}" for split in ("dev", "test")]
    places = [f"data_root={tmp_path}", f"results_root={tmp_path}/results", f"cache_root={tmp_path}/cache"]
    assert "regular file" in refused(Train, *TRAIN, *data, *places, f"task.data.train={tmp_path / 'pipe'}")


# Sizes.


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zip"])
def test_a_line_has_a_bound_however_small_it_is_packed(tmp_path, suffix):
    path, content = tmp_path / f"x.txt{suffix}", b"a line\n" + b"\0" * (limits.LINE + 1)
    packed = documents.zipped({"x.txt": content}) if suffix == ".zip" else PACKERS.get(suffix, bytes)(content)
    path.write_bytes(packed)
    with refuses(r"16 MiB|200 times"):
        read(VectorFiles(path), {"b"}, 1) if suffix == ".zip" else lines_of(path)


def test_a_file_that_unpacks_to_gigabytes_ends_in_one_line(tmp_path):
    path = tmp_path / "x.json.gz"
    with gzip.GzipFile(path, "wb", compresslevel=1) as file:
        for _ in range(100):
            file.write(b"\0" * (1 << 20))
    for opener in (json_text.read, hashing.content_sha256, lines_of, paragraphs.read):
        with refuses(r"x\.json\.gz: unpacks to over 200 times its size|16 MiB"):
            opener(path)


@for_each("suffix", ".gz .xz")
def test_many_short_lines_have_a_bound_too(file, suffix, monkeypatch):
    monkeypatch.setattr(limits, "UNPACKED", 1 << 20)
    path = file(PACKERS[suffix](b"no\n" * (limits.UNPACKED // 3 + 1)), f"x.txt{suffix}")
    with refuses("unpacks to over 200 times its size"):
        sum(1 for _ in lines_of(path))


def test_a_file_of_one_line_that_is_read_whole_may_be_longer(file):
    path = file(json.dumps({"a": "b" * (limits.LINE + 1)}), "x.json")
    assert len(json_text.read(path)["a"]) == limits.LINE + 1


def test_an_error_of_the_code_that_reads_is_not_the_files(tmp_path, file):
    file("a\n", "x")
    with pytest.raises(OSError, match="full"), open_text(tmp_path / "x"):
        raise OSError("the disk of another file is full")


# JSON.

DEEP = "[" * 200_000
BAD_JSON = {
    DEEP: "nested",
    "[" * 201 + "]" * 201: "nested",
    '{"a":' * 300 + "1" + "}" * 300: "nested",
    "1" * 5000: "5000 digits",
    "-" + "1" * 21: "digits",
    "NaN": "NaN",
    "[-Infinity]": "-Infinity",
    "1e999": "too large",
    '{"a": 1, "a": 2}': "'a' occurs twice",
    '["\\ud800"]': r"\\ud800 without",
    '{"\\udc00x": 1}': r"\\udc00 without",
    "{": "not JSON",
    "": "not JSON",
}


@pytest.mark.parametrize("text", BAD_JSON, ids=lambda text: text[:12])
def test_json_within_limits(text):
    with pytest.raises(ValueError, match=BAD_JSON[text]) as error:
        json_text.parse(text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [[[[1]]], {"a": {"b": None}}, "\U0001f600", "\x85\u2028\0", -(2**63), 1e-300, [True]])
def test_other_json_is_as_it_was(value):
    assert json_text.parse(json.dumps(value)) == value
    assert json_text.parse(json.dumps(value, ensure_ascii=False)) == value


def test_the_line_of_what_is_no_json_is_named(tmp_path, file):
    file('{"a": 1,\n"b": }', "x.json")
    with refuses(r"x\.json:2: not JSON"):
        json_text.read(tmp_path / "x.json")


@pytest.mark.parametrize("line", [DEEP, '{"a": NaN}', '{"gold_label": "\\ud800", "sentence1": "a", "sentence2": "b"}'])
def test_lines_of_json_are_named_too(tmp_path, line, file):
    file(f"{documents.SNLI_JSONL.splitlines()[0]}\n{line}\n", "x.jsonl")
    for reader in (lambda path: read_pairs(path, labels({})), prediction.read_lines):
        with refuses(r"x\.jsonl:2: "):
            list(reader(tmp_path / "x.jsonl"))


@pytest.mark.parametrize("place", ["carries", "Who lit", "a1", "1,000 lamps"])
def test_half_a_surrogate_pair_in_squad(tmp_path, place, file):
    file(json.dumps(documents.SQUAD).replace(place, "\\ud800", 1), "x.json")
    with refuses("other half"):
        paragraphs.read(tmp_path / "x.json")


# Other formats.


@pytest.mark.parametrize("part", ["²", "1" * 5000, "٣", "-1"])
def test_a_part_is_whatever_the_file_says(tmp_path, part, file):
    file(documents.CONLL.replace("000", part), "x.conll")
    assert [document.part for document in read_documents(tmp_path / "x.conll")] == [part, "001"]


def test_leading_zeros_make_no_other_part(tmp_path, file):
    file(documents.CONLL + documents.CONLL.replace("000", "0"), "x.conll")
    with refuses("part 0 of document a/b occurs again"):
        list(read_documents(tmp_path / "x.conll"))


def test_trees_may_not_be_nested_without_end(tmp_path, file):
    file("(3 (2 a) (4 gem))\n" + "(3 " * 100_000 + "a" + ")" * 100_000, "x.txt")
    with refuses(r"x\.txt:2: nested more than 200 deep"):
        list(read_trees(tmp_path / "x.txt"))


def test_lines_that_end_in_a_carriage_return_alone_are_an_error(tmp_path, file):
    file(b"Mira B-PER\rleft O\r", "x.conll")
    with refuses(r"x\.conll:1: a carriage return"):
        list(read_blocks(tmp_path / "x.conll"))


@pytest.mark.parametrize("name", ["x\0y", "a" * 300, "**b", "[a", "~nobody/x", "all.list"])
def test_odd_names_in_a_list_of_files(tmp_path, name, file):
    file(name, "all.list")
    with refuses():
        list(read_documents(find_files(tmp_path / "all.list")))


def test_an_archive_that_is_locked_is_an_error(file):
    content = bytearray(documents.zipped({"v.txt": b"a 1 2\n"}))
    for place in (content.find(b"PK\x03\x04") + 6, content.find(b"PK\x01\x02") + 8):
        content[place] |= 1  # "encrypted"
    path = file(bytes(content), "v.zip")
    for opener in (lambda path: read(VectorFiles(path), {"a"}, 2), hashing.content_sha256):
        with refuses("cannot be read"):
            opener(path)


@pytest.mark.parametrize("read", ["cell of clusters", "line of a document", "compound in snli", "compound in sst5"])
def test_what_is_long_takes_no_more_than_its_length(tmp_path, read, file):
    """Seconds, where each character once cost as much as all before it: minutes to hours."""
    began = time.process_time()
    if read == "cell of clusters":
        with pytest.raises(brackets.BracketError):
            brackets.chains(["(0)" + "[" * 300_000])
    elif read == "line of a document":
        file(documents.CONLL.replace("; part 000", " " * 100_000 + "x"), "x.conll")
        assert len(list(read_documents(tmp_path / "x.conll"))) == 2
    else:
        tokenize = {"snli": snli.tokenize, "sst5": sst5.tokenize}[read.split()[-1]]
        assert tokenize("a-" * 100_000 + "a") == ["a-" * 100_000 + "a"]
    assert time.process_time() - began < 20


# Messages.


def test_a_message_neither_steers_nor_fills_the_terminal():
    message = str(UserError("a \x1b[2Jtag\u2028\x07 " + "x" * 10_000_000, Path("a\nb"), 3))
    assert message.isprintable()
    assert message.startswith(r"a\nb:3: a \x1b[2Jtag \x07 xxx")
    assert len(message) < 2_100
