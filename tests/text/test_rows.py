"""Rows that are mapped from a file."""

import tempfile

import pytest
from datasets import Features, List, Value
from datasets.arrow_writer import ArrowWriter

from elmo_bench.system.errors import UserError
from elmo_bench.text import source

FEATURES = Features({"words": List(List(Value("string"))), "span": List(Value("int32"))})


def some(number: int):
    return ({"words": [["a"] * (i % 3), ["b"]], "span": None if i == 1 else [i, i + 1]} for i in range(number))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of temporary files."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("number", [0, 1, 7])
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
    with pytest.raises(UserError, match="no space left on the disk"):
        source.mapped(some(2), FEATURES)
    assert not list(folder.iterdir())


def test_an_error_of_the_rows_is_passed_on(folder):
    def broken():
        yield {"words": [["a"]], "span": [0, 0]}
        raise UserError("malformed")

    with pytest.raises(UserError, match="malformed"):
        source.mapped(broken(), FEATURES)
    assert not list(folder.iterdir())
