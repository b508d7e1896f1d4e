"""Records that somebody else made, moved or copied: left out aloud, never averaged, answered with or made a path."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from elmo_bench.records import store
from elmo_bench.records.record import RECORD, without_seed
from elmo_bench.reporting import findings, report
from elmo_bench.reporting.findings import evaluated
from elmo_bench.system.storage.hashing import fingerprint
from elmo_bench.system.storage.json_text import sealed
from tests.fakes import cases, for_each, refuses
from tests.records.test_records import at, fake, save

ONE = fake(seed=1)


def write(folder: Path, **changes: Any) -> None:
    """A sealed record whose keys are not as `Record` has them."""
    path = at(folder, fake(seed=2))
    path.write_text(sealed(store.in_lines(fake(seed=2).plain() | changes, store.BLOCKS)), encoding="utf8")


def left_out(folder: Path, capsys) -> str:
    """What is said of the only record that is left out; the own one is read."""
    assert store.read_all(folder) == [ONE]
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"left out: {folder}")
    return line


def test_a_record_of_another_folder_of_configuration_is_read(bench, monkeypatch):
    """At a scale without word vectors there, and of an earlier version of the task."""
    record = bench.train("arm=baseline", "task.fit.epochs=1", "task.data.train=dev.txt")
    monkeypatch.undo()
    assert store.read_all(bench.results) == [record]
    assert store.read(record.path).own_data == {"task.data.train": "dev.txt"}


@for_each("link", "false true")
@pytest.mark.parametrize("name", ["{} copy.json", "{}.1.json", "{} (conflict).json", "0123456789abcdef.json"])
def test_a_copy_or_a_link_under_another_name_counts_once(tmp_path, capsys, name, link):
    save(tmp_path, ONE)
    other = at(tmp_path, ONE).with_name(name.format(ONE.run))
    other.symlink_to(at(tmp_path, ONE)) if link else shutil.copy(at(tmp_path, ONE), other)
    assert "this record belongs at" in left_out(tmp_path, capsys)
    with refuses("belongs at"):
        store.read(other)


def test_hidden_files_of_a_file_system_are_no_records(tmp_path, capsys):
    save(tmp_path, fake("none", 1, 80.0))
    (path,) = tmp_path.glob("runs/*/*/*.json")
    path.with_name(f"._{path.name}").write_bytes(b"\0\5\x16\7")  # as macOS leaves them in an archive
    assert len(store.read_all(tmp_path)) == 1
    assert capsys.readouterr().err == ""


@for_each("place", "runs/mini/ner runs/open/srl")
def test_a_record_in_the_folder_of_another_scale_or_task_is_none_of_it(tmp_path, capsys, place):
    save(tmp_path, ONE)
    (tmp_path / place).mkdir(parents=True)
    shutil.copy(at(tmp_path, ONE), tmp_path / place)
    assert "this record belongs at" in left_out(tmp_path, capsys)


@cases(r"""
    changes
    {"run": "*/../../../victim"}
    {"run": "0123456789ABCDEF"}
    {"task": "../../.."}
    {"task": "a\nb"}
    {"scale": "/tmp"}
    {"arm": "../../page"}
    {"arm": "elmo+glove"}
    {"arm": "baseline"}
""")
def test_a_word_of_a_record_becomes_no_path(tmp_path, capsys, changes):
    """Anyone can seal a record, and make its hashes those of its settings. The last two are of earlier releases, and
    of a run with ELMo.
    """
    save(tmp_path, ONE)
    write(tmp_path, **changes)
    before = sorted(tmp_path.rglob("*"))
    assert f"record of a run: {next(iter(changes))}" in left_out(tmp_path, capsys)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_record_of_another_seed_or_settings_than_its_hash_is_left_out(tmp_path, capsys):
    """The same run with another seed typed into it, its settings, or both; its name is that of the hash, or not."""
    two = fake(seed=2)
    edited = {**ONE.settings, "seed": 2}
    for changed in (
        replace(ONE, seed=2, run=two.run),
        replace(two, seed=3),
        replace(two, version=2),
        replace(two, group=ONE.run),
        replace(ONE, settings=edited, run=fingerprint(edited), group=fingerprint(without_seed(edited))),
    ):
        save(tmp_path, ONE)
        store.write(at(tmp_path, two), changed)
        assert "settings" in left_out(tmp_path, capsys)


@cases("""
    changes
    {"metrics": {"dev": {"f1": 1.0}}}
    {"metrics": {"dev": {"f1": 1e300}, "test": {"f1": 1.0}}}
    {"metrics": {"dev": {"x": 1.0}, "test": {"x": 1.0}}}
    {"metrics": {"dev": {"f1": true}, "test": {"f1": 1.0}}}
    {"variant": {"elmo": "x"}}
    {"seed": "2"}
    {"version": null}
    {"epoch": 3}
    {"epochs": 0}
    {"layer_weights": {}}
    {"layer_weights": {"input": [[0.1], [0.1, 0.2]]}}
    {"layer_weights": {"input": [[], []]}}
    {"gamma": {"input": [1.0]}}
    {"history": {"epoch": [0, 1], "updates": [0, 2], "dev.f1": [1.0, 2.0]}}
    {"history": {"epoch": [0, 1], "updates": [1, 2], "dev.f1": [1.0, null]}}
    {"config": {"task": {"monitor": "f1"}, "elmo": {"where": "none"}, "scale": 3}}
    {"machine": {}}
    {"settings": {"seed": 2, "scale": "open", "task": {}}}
""")
def test_a_sealed_record_of_another_shape_is_left_out_and_the_report_is_written(tmp_path, capsys, changes):
    save(tmp_path, ONE)
    write(tmp_path, **changes)
    assert "not a record of a run" in left_out(tmp_path, capsys)


def test_the_report_leaves_strangers_out_in_one_line_each(tmp_path, capsys):
    save(tmp_path, ONE, fake("none"))
    write(tmp_path, config={})
    report.refresh(tmp_path)
    (line,) = capsys.readouterr().err.splitlines()
    assert "no value for config.elmo" in line
    assert fake(seed=2).run not in (tmp_path / "report.html").read_text()


def test_a_record_keeps_keys_that_this_version_does_not_know(tmp_path):
    more = replace(ONE, more={"later": [1]})
    save(tmp_path, more)
    assert store.read(at(tmp_path, ONE)).plain() == more.plain()
    assert tuple(ONE.plain()) == tuple(key for key, field in RECORD.model_fields.items() if field.is_required())


def test_the_findings_show_what_records_say_as_text():
    found = [each._replace(command="<script>alert(1)</script>") for each in evaluated([], "mini", [])]
    text = findings.markdown([found])
    assert "<script" not in text
    assert "&lt;script>" in text
