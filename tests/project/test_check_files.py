"""What .ci/check_files.py lets pass: no data, no large files but models that a card names, and per-example results."""

import subprocess
import sys
from pathlib import Path

import pytest

from elmo_bench.bilm.card import write_card
from elmo_bench.system.places import ROOT
from tests.fakes import cases

pytestmark = pytest.mark.slow


@cases("""
    name                                  | size     | fault
    a.py                                  | 10       |
    b.py                                  | 1048577  | limit here is 1 MiB
    train.iob2                            | 10       | .iob2 files are data
    models/w.hdf5                         | 33554433 | limit here is 32 MiB
    results/runs/open/ner/abc-1.items.npz | 10       |
    results/runs/open/ner/abc-1.items.npz | 1048577  | limit here is 1 MiB
    results/report.html                   | 1048577  |
    results/report.html                   | 2097153  | limit here is 2 MiB
    results/runs/open/ner/abc-1.npz       | 10       | .npz files are data
    results/abc-1.items.npz               | 10       | .npz files are data
    other/results/runs/abc-1.items.npz    | 10       | .npz files are data
    results/runs/open/ner/items.jsonl     | 10       | .jsonl files are data
""")
def test_data_and_large_files_cannot_be_committed(tmp_path, name, size, fault, file):
    file(b"\0" * size, name)
    assert fault in checked(tmp_path, name, passes=not fault)


def checked(folder: Path, name: str, passes: bool) -> str:
    """What is said of a file."""
    command = [sys.executable, ROOT / ".ci/check_files.py", name]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert result.returncode == (not passes)
    return result.stderr


def test_every_file_of_a_model_is_named_by_its_card(tmp_path):
    (folder := tmp_path / "models" / "mine").mkdir(parents=True)
    for name in "options.json weights.hdf5 README.md later.bin".split():
        (folder / name).write_text(name)
    assert "not in `files` of the card.json" in checked(tmp_path, "models/mine/weights.hdf5", passes=False)
    write_card(folder, {"updates": 3})
    for name in "options.json weights.hdf5 README.md card.json".split():
        checked(tmp_path, f"models/mine/{name}", passes=True)
    checked(tmp_path, "models/mine/later.bin", passes=False)
    (folder / "options.json").write_text("changed")
    checked(tmp_path, "models/mine/options.json", passes=False)
    (folder / "card.json").write_text((folder / "card.json").read_text().replace('"updates": 3', '"updates": 4'))
    checked(tmp_path, "models/mine/weights.hdf5", passes=False)
