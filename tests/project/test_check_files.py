"""What .ci/check_files.py lets pass: no data, no large files but models, and scores of items beside their records."""

from __future__ import annotations

import subprocess
import sys

import pytest

from elmo_bench.system.places import ROOT


@pytest.mark.parametrize(
    ("name", "size", "fault"),
    [
        ("a.py", 10, None),
        ("b.py", 2**20 + 1, "limit here is 1 MiB"),
        ("train.iob2", 10, ".iob2 files are data"),
        ("models/w.hdf5", 2**21, None),
        ("results/runs/open/ner/abc-1.items.npz", 10, None),
        ("results/runs/open/ner/abc-1.items.npz", 2**20 + 1, "limit here is 1 MiB"),
        ("results/report.html", 2**20 + 1, None),
        ("results/report.html", 2**21 + 1, "limit here is 2 MiB"),
        ("results/runs/open/ner/abc-1.npz", 10, ".npz files are data"),
        ("results/abc-1.items.npz", 10, ".npz files are data"),
        ("other/results/runs/abc-1.items.npz", 10, ".npz files are data"),
        ("results/runs/open/ner/items.jsonl", 10, ".jsonl files are data"),
    ],
)
def test_data_and_large_files_cannot_be_committed(tmp_path, name, size, fault):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_bytes(b"\0" * size)
    command = [sys.executable, ROOT / ".ci/check_files.py", name, "a file that is gone"]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == (fault is not None)
    assert [line.split(":")[0] for line in result.stderr.splitlines()] == [name] * result.returncode
    assert (fault or "") in result.stderr
