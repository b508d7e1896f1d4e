"""Folders that cannot be: one line, exit status 2, and nothing is written."""

import os
import re
import shlex

import pytest

from elmo_bench.commands.compare import Report
from elmo_bench.configuration import composing
from elmo_bench.running.launch import train
from elmo_bench.system import console, places
from elmo_bench.system.storage import outputs
from tests.fakes import refuses

PLACES = {
    "loop": ": is a link to itself; give another place",
    "dangling": "dangling: is a link to {0}/nowhere, which does not exist; create it, or give another place",
    "l" * 300: ": a name in it is longer than the disk allows; give a shorter name",
    "/proc/elmo": "/proc/elmo: nothing can be created below /proc; give another place",
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    return tmp_path


def said(capsys, action) -> str:
    with pytest.raises(SystemExit) as ended:
        console.report(action)
    out, err = capsys.readouterr()
    assert (ended.value.code, out, err.count("\n")) == (2, "", 1)
    return err


@pytest.mark.parametrize("name", PLACES)
def test_a_place_that_cannot_be_is_told_in_one_line(folder, name, monkeypatch, capsys):
    """By a run for its results and its cache, by a report, and by a training of a biLM before it begins."""
    there, message = folder / name, PLACES[name].format(folder)
    before = sorted(folder.iterdir())
    own = {"results_root": folder / "results", "cache_root": folder / "cache"}
    for key in own:
        asked = ["task=ner", "scale=mini", *(f"{root}={path}" for root, path in {**own, key: there}.items())]
        assert message in said(capsys, lambda asked=asked: train(composing.compose(asked)))
    monkeypatch.setattr("sys.argv", ["elmo-bench report", f"results_root={there}"])
    told = "/proc/elmo: there is no such folder" if name == "/proc/elmo" else message  # a report makes none
    assert told in said(capsys, lambda: Report.parse([f"results_root={there}"]).run())
    if name != "dangling":  # the folder is made where the link leads to
        with refuses(re.escape(message)):
            outputs.begun(there, "card.json")
    assert [path for path in sorted(folder.iterdir()) if path not in own.values()] == before


def test_a_value_beyond_ascii_is_shown_in_quotes(capsys):
    line = said(capsys, lambda: composing.compose(["results_root=/tmp/é b"]))
    assert line.endswith("""a value with letters outside ASCII needs double quotes: 'results_root="/tmp/é b"'\n""")
    (quoted,) = shlex.split(line.rpartition(": ")[2])
    assert composing.compose([quoted]).results_root == "/tmp/é b"


def test_a_user_without_a_home_is_told(monkeypatch):
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}[0])
    monkeypatch.setattr(places, "CHECKOUT", False)
    with refuses(r"there is no home folder; set HOME, or give an absolute path"):
        places.machine_cache()
    assert places.expanded(os.sep) == places.Path("/")


def test_code_of_another_checkout_than_the_one_in_the_current_folder_is_told(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert places.other_checkout() is None
    (tmp_path / "elmo_bench").mkdir()
    for name in ("pyproject.toml", "elmo_bench/__main__.py"):
        (tmp_path / name).touch()
    assert places.other_checkout() == tmp_path
    monkeypatch.chdir(places.PACKAGE.parent)
    assert places.other_checkout() is None
