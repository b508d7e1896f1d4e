"""A run's id follows the content of every file that its reader opens, and nothing else of where it lies."""

import gzip
from pathlib import Path

import pytest

from elmo_bench.configuration import composing
from elmo_bench.records.settings import Identity
from elmo_bench.system.storage.hashing import content_sha256, sha256
from elmo_bench.text.conll2012 import find_files
from tests.fakes import refuses

DOCUMENTS = {"a.conll": "one\n", "b.conll": "two\n"}


@pytest.fixture
def data(tmp_path):
    """A folder of two documents."""
    for name, text in DOCUMENTS.items():
        (tmp_path / "data" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "data" / name).write_text(text)
    return tmp_path / "data"


def id_of(*typed: object, task: str = "coref", scale: str = "open") -> str:
    """The id of a run with this training data; of several, a list."""
    named = str(typed[0]) if len(typed) == 1 else f"[{','.join(map(str, typed))}]"
    chosen = [f"task={task}", f"scale={scale}", "arm=baseline", "vectors=random", f"task.data.train={named}"]
    return Identity(composing.run_config([*chosen, "data_root=/x", "cache_root=/x/cache"])).run


def listed(folder: Path, *names: str) -> Path:
    path = folder / "train.id"
    path.write_text("".join(f"{name}\n" for name in names))
    return path


def test_a_list_counts_by_the_content_of_its_files(data):
    first = id_of(listed(data, "a", "b"))
    assert id_of(listed(data, "b.conll", "a.conll")) == first
    (data / "b.conll").write_text("another\n")
    assert id_of(listed(data, "a", "b")) != first


def test_one_file_counts_the_same_alone_in_a_list_and_packed(data, tmp_path, file):
    file(gzip.compress((data / "a.conll").read_bytes()), "p.conll.gz")
    assert id_of(data / "a.conll") == id_of(listed(data, "a")) == id_of(tmp_path / "p.conll.gz")


def test_a_folder_counts_by_what_is_read_of_it_wherever_it_lies(data, tmp_path):
    first = id_of(data)
    assert id_of(data / "b.conll", data / "a.conll") == first
    (data / "README").write_text("not read")
    assert id_of(data.rename(tmp_path / "moved")) == first


def test_a_linked_folder_is_read_and_counts_and_a_loop_ends(data, tmp_path):
    first = id_of(data)
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "c.conll").write_text("three\n")
    (data / "linked").symlink_to(tmp_path / "more")
    (data / "loop").symlink_to(data)
    assert [path.name for path in find_files(data)] == ["a.conll", "b.conll", "c.conll"]
    second = id_of(data)
    (tmp_path / "more" / "c.conll").write_text("four\n")
    assert len({first, second, id_of(data), content_sha256(data)}) == 4


def test_a_file_that_is_there_plain_and_packed_is_refused(data):
    (data / "a.conll.gz").write_bytes(gzip.compress(b"other\n"))
    for read in (find_files, content_sha256, lambda folder: find_files(listed(folder, "a"))):
        with refuses(r"a\.conll.*the same file plain or compressed; remove one"):
            read(data)


def test_the_home_folder_is_written_as_a_tilde(data, monkeypatch):
    monkeypatch.setenv("HOME", str(data))
    assert id_of('"~/a.conll"') == id_of(data / "a.conll")


def test_documents_beside_a_column_file_count_but_for_those_of_the_project(data, monkeypatch):
    first = id_of(data / "a.conll", task="ner")
    (beside := data / "a.conll.documents").write_text("one document\n")
    second = id_of(data / "a.conll", task="ner")
    beside.write_text("another document\n")
    assert len({first, second, id_of(data / "a.conll", task="ner")}) == 3
    monkeypatch.setattr("elmo_bench.records.settings._documents_of_project", lambda: {sha256(beside)})
    assert id_of(data / "a.conll", task="ner") == first


def test_a_file_of_ones_own_below_the_generated_data_counts_by_content(tmp_path):
    def id_at_mini(name: str) -> str:
        folder = tmp_path / "generated"
        chosen = ["task=ner", "arm=baseline", f"scale.folder={folder}", f"task.data.train={folder / name}"]
        return Identity(composing.run_config(chosen)).run

    generated = id_at_mini("ner/train.iob2")
    (tmp_path / "generated" / "ner").mkdir(parents=True)
    found = {generated, id_at_mini("ner/dev.iob2")}
    for text in ("Ida\tB-PER\n", "Bern\tB-LOC\n"):
        (tmp_path / "generated" / "ner" / "mine.iob2").write_text(text)
        found.add(id_at_mini("ner/mine.iob2"))
    assert len(found) == 4
