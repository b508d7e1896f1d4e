"""An output is never what a command reads, and never takes the place of what others have made."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_bench.commands.command import command
from elmo_bench.commands.compare import Report
from elmo_bench.commands.train import DOWNLOADS, Data
from elmo_bench.system import places
from elmo_bench.system.storage import files, outputs
from tests import tiny_bilm
from tests.conftest import PATIENCE, ROOT
from tests.fakes import for_each, refuses, table

CASES = table("""
    embed      | options={0}/options.json weights={0}/weights.hdf5 input={0}/t | t
    embed      | options={0}/options.json weights={0}/weights.hdf5 input={0}/t | options.json
    embed      | options={0}/options.json weights={0}/weights.hdf5 input={0}/t | weights.hdf5
    embed      | input={0}/t                                | models/open/weights.hdf5
    vocabulary | text={0}/t                                 | t
    vocabulary | text={0}                                   | t
    vocabulary | text={0}/[t]*                              | t
    predict    | task=ner input={0}/t                       | t
    predict    | checkpoint={0}/run.ckpt input={0}/t        | run.ckpt
    predict    | task=ner input={0}/t models_root={0}/models | models/heads/ner/head.ckpt
""")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A text, a biLM, the open biLM and a head."""
    place = tmp_path / "here"
    for name in "models/open/options.json models/open/weights.hdf5 models/heads/ner/head.ckpt run.ckpt t".split():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("a few words\n")
    tiny_bilm.exported(place)
    monkeypatch.setattr(places, "ROOT", place)
    return place


@pytest.mark.parametrize("through", ["", "soft", "hard"])
@pytest.mark.parametrize("case", CASES)
def test_an_input_is_refused_as_the_output(folder, case, through):
    typed, arguments, name = case
    target = output = folder / name
    if through:
        output = folder.parent / "other"
        os.symlink(target, output) if through == "soft" else os.link(target, output)
    before = target.read_bytes()
    with refuses("is an input of the command .*; give another output"):
        command(typed).parse([*arguments.format(folder).split(), f"output={output}"]).run()
    assert target.read_bytes() == before


def test_another_output_is_written(folder, monkeypatch, capsys):
    """Also where the input has another name for a file beside it, and where a file is replaced."""
    (folder.parent / "words").write_text("of an earlier call")
    monkeypatch.setattr("sys.argv", ["elmo-bench", f"text={folder}/t", f"output={folder.parent}/words"])
    command("vocabulary").parse(sys.argv[1:]).run()
    assert "few" in (folder.parent / "words").read_text()


def test_a_folder_takes_its_place_at_the_end_or_not_at_all(tmp_path):
    place, mark = tmp_path / "bilm", "card.json"

    def write(text: str, before: bytes | None, interrupt: Path | None = None) -> None:
        with outputs.filled(place, mark, before) as partial:
            (partial / mark).write_text(text)
            if interrupt:
                interrupt.parent.mkdir(exist_ok=True)
                interrupt.write_text("of somebody else")

    with refuses("bilm: somebody else has made it meanwhile; give another output"):
        write("new", None, place / mark)
    assert (place / mark).read_text() == "of somebody else"
    shutil.rmtree(place)
    killed = tmp_path / ".bilm~01234567.partial"
    killed.mkdir()
    write("first", outputs.mark(place, mark))
    (place / "notes").write_text("mine")
    (tmp_path / "link").symlink_to(place)
    place = tmp_path / "link"
    write("second", b"first")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bilm", "link"]
    assert [(path.name, path.read_text()) for path in sorted((tmp_path / "bilm").iterdir())] == [
        (mark, "second"), ("notes", "mine"),
    ]  # fmt: skip
    assert place.is_symlink()


def test_data_removes_no_folder_that_it_has_not_made(tmp_path, monkeypatch):
    monkeypatch.setattr("elmo_bench.sources.make.made_or_checked", lambda *_: "made")
    monkeypatch.setattr("sys.argv", ["elmo-bench data", f"data_root={tmp_path}"])
    mine = tmp_path / DOWNLOADS / "film"
    mine.parent.mkdir()
    mine.write_text("mine")
    with refuses("was not made by this command, which would delete it; move it away"):
        Data.parse(sys.argv[1:]).run()
    assert mine.read_text() == "mine"
    mine.unlink()
    Data.parse(sys.argv[1:]).run()
    assert not mine.parent.exists()


def test_a_report_replaces_no_readme_of_somebody_else(tmp_path, monkeypatch, file):
    file("# My data\n", "README.md")
    monkeypatch.setattr("sys.argv", ["elmo-bench report", f"results_root={tmp_path}"])
    with refuses("README.md: not written by `elmo-bench report`; move it away"):
        Report.parse(sys.argv[1:]).run()
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert (tmp_path / "README.md").read_text() == "# My data\n"


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on this machine")
def test_clean_cache_removes_only_what_this_project_has_made(tmp_path):
    ours, mine = tmp_path / "vectors/0123456789abcdef", tmp_path / "vectors/glove.txt"
    ours.mkdir(parents=True)
    for path in (ours / "lock", ours / "vectors.txt", mine):
        path.write_text("text")
    environment = {**os.environ, "ELMO_BENCH_CACHE": str(tmp_path)}
    subprocess.run(["make", "-s", "clean-cache"], cwd=ROOT, env=environment, check=True, timeout=PATIENCE)
    assert [path.name for path in (tmp_path / "vectors").iterdir()] == ["glove.txt"]


@for_each("mask", "0 2")
def test_what_is_written_only_its_owner_may_change(tmp_path, mask):
    before = os.umask(mask)
    try:
        files.write_text(tmp_path / "folder" / "file", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "folder" / "file").stat().st_mode & 0o777 == 0o644
