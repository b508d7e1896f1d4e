"""What the pages take from code, records and models is current; the tutorial runs; the site builds strictly."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from itertools import zip_longest
from typing import NamedTuple

import pytest

import elmo_bench
from docs.generate import __main__ as generate
from docs.generate import blocks, pictures, tutorial
from elmo_bench.configuration import composing
from elmo_bench.configuration.composing import compose
from elmo_bench.records import store
from elmo_bench.records.settings import Identity
from elmo_bench.system.places import RECORDED, ROOT
from tests import simulate
from tests.conftest import PATIENCE, clean_environment
from tests.fakes import for_each

pytestmark = pytest.mark.slow
REMEDY = "make pages writes it again"
PAGES = {path: path.read_text() for path in generate.documents()}
NAMES = sorted({found[2] for text in PAGES.values() for found in generate.BLOCK.finditer(text)})
START = [sys.executable, "-P", str(ROOT / "elmo_bench" / "system" / "start.py"), "-m"]


NUMBER = re.compile(r"[-+]?\d+\.\d+|\d[\d,]*")
WITHIN = {"text": 0.02, "about": 12.0}  # of a number


class Cell(NamedTuple):
    """Code, and what the page says that it prints; None if it does not say."""

    code: str
    kind: str | None
    printed: str | None


def cells(text: str) -> list[Cell]:
    """The cells of the page."""
    return [Cell(tutorial.code_of(each[1], each[2]), each[3], each[4]) for each in tutorial.CELL.finditer(text)]


def differs(cell: Cell, printed: str) -> str:
    """What is wrong with the output that the page gives; empty if it is right."""
    if cell.printed is None or cell.kind is None:
        return ""
    pairs = zip_longest(NUMBER.findall(cell.printed), NUMBER.findall(printed), fillvalue="nan")
    close = all(abs(float(a.replace(",", "")) - float(b.replace(",", ""))) <= WITHIN[cell.kind] for a, b in pairs)
    same = NUMBER.sub("#", cell.printed).split() == NUMBER.sub("#", printed).split()
    return "" if close and same else f"{cell.code}\n--- the page\n{cell.printed}--- here\n{printed}"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "simulation"])  # which takes minutes
def test_a_generated_block_is_current(name):
    wanted = generate.block(name)
    for path, text in PAGES.items():
        if any(found[2] == name for found in generate.BLOCK.finditer(text)):
            assert f"<!-- generated: {name} -->\n\n{wanted}\n\n<!-- /generated -->" in text, f"{path}: {REMEDY}"


def test_a_row_of_the_simulation_is_current():
    assert simulate.row(simulate.CASES[0]) in (ROOT / "docs/statistics.md").read_text(), REMEDY


def test_every_kind_of_block_is_used_and_every_mark_is_known():
    assert {kind for kind in generate.BLOCKS if any(name.startswith(kind) for name in NAMES)} == set(generate.BLOCKS)
    apart = [text.count("<!-- generated:") - len(generate.BLOCK.findall(text)) for text in PAGES.values()]
    assert sum(apart) == 1  # docs/development.md explains the mark


def test_the_words_whose_layers_are_stored_are_counted():
    assert blocks.counted()["mini"]["coref"] == blocks.words("coref", "mini"), REMEDY


@pytest.mark.parametrize("path", pictures.files(), ids=lambda path: path.stem)
def test_a_picture_is_current(path):
    assert path.read_text() == pictures.files()[path], REMEDY


def test_the_cards_of_the_heads_are_current():
    assert {path: path.read_text() for path in blocks.cards()} == blocks.cards(), REMEDY


def test_the_notebook_is_the_tutorial():
    assert tutorial.NOTEBOOK.read_text() == tutorial.notebook(tutorial.PAGE.read_text()), REMEDY


def test_the_tutorial_prints_what_its_page_shows(tmp_path, monkeypatch):
    """Its two runs and its study are recorded already: `make pages` makes them."""
    pytest.importorskip("nbclient")
    for arm in ("baseline", "elmo"):
        run = Identity(composing.validated(compose(["task=snli", f"arm={arm}", "seed=1"]))).run
        there, recorded = (store.place(root, "mini", "snli", run) for root in (tmp_path / "outputs", RECORDED))
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(recorded, there)
    shutil.copytree(RECORDED / "analysis/mini/pos", tmp_path / "outputs/analysis/mini/pos")
    monkeypatch.setattr(tutorial, "PASSING", rf"{tutorial.PASSING}|.* not run again")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    shown = tutorial.executed(tmp_path, clean_environment() | {"IPYTHONDIR": str(tmp_path / "ipython")})
    listed = cells(tutorial.PAGE.read_text())
    assert len(listed) == len(shown) > 6
    assert any("image/svg+xml" in data for _, data in shown)
    wrong = [found for cell, (printed, _) in zip(listed, shown, strict=True) if (found := differs(cell, printed))]
    assert wrong == [], "\n".join(wrong)


@for_each("name", "python bilms")
def test_the_snippets_of_a_page_run(name, tmp_path, monkeypatch):
    """One after another, in a folder with the biLM that they name, and with one epoch of training."""
    for file in ("options.json", "weights.hdf5"):
        (tmp_path / file).symlink_to(ROOT / "models" / "open" / file)
    (tmp_path / "results").symlink_to(ROOT / "results")
    monkeypatch.chdir(tmp_path)
    train, own = elmo_bench.train, ["task.fit.epochs=1", "trainer=cpu", f"results_root={tmp_path / 'own'}"]
    monkeypatch.setattr(elmo_bench, "train", lambda task, given: train(task, [*given, *own]), raising=False)
    snippets = re.findall(r"^```python\n(.*?)^```", (ROOT / f"docs/{name}.md").read_text(), re.DOTALL | re.M)
    assert snippets
    exec(compile("\n".join(snippets), name, "exec"), {})


@pytest.mark.skipif(importlib.util.find_spec("mkdocs") is None, reason="no mkdocs: the extra docs is not installed")
def test_the_site_builds_without_a_warning(tmp_path):
    environment = clean_environment() | {"NO_MKDOCS_2_WARNING": "1"}
    command = [*START, "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    assert built.stdout + built.stderr == ""
    for name, words in {
        "index": "Table 1",
        "docs/keys": "elmo.layers",
        "docs/api": "UserError",
        "tasks/ner/index": "F1",
    }.items():
        assert words in (tmp_path / "site" / f"{name}.html").read_text()
    assert os.path.getsize(tmp_path / "site" / "search" / "search_index.json") > 1e5
