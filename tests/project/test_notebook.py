"""The notebook of docs/ runs from its first cell to its last."""

from __future__ import annotations

import json
import os

import nbformat
import pytest
from nbclient import NotebookClient

from elmo_bench.system import places
from tests.conftest import clean_environment

pytestmark = pytest.mark.slow
PATH = places.ROOT / "docs" / "elmo_in_ten_minutes.ipynb"


def test_the_notebook_runs_and_shows_what_it_says(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    book = nbformat.read(PATH, as_version=4)
    environment = clean_environment() | {
        "OMP_NUM_THREADS": "1",
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
    }
    client = NotebookClient(book, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute(env=environment | {"PYTHONPATH": os.fspath(places.ROOT)})
    outputs = [output for cell in book.cells for output in cell.get("outputs", [])]
    shown = json.dumps(outputs)
    assert "image/png" in shown
    for words in ("('Oslo', 'LOC')", "layer 2", "baseline"):
        assert words in shown, words


def test_the_notebook_is_committed_without_outputs():
    assert [cell for cell in nbformat.read(PATH, as_version=4).cells if cell.get("outputs")] == []
