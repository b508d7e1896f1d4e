"""The tutorial: its page is the source of the notebook and of the outputs in the page.

A block of `python` or `sh` is a cell. A block of `text` right after it is the output of the cell; a block of `about` is
output with numbers that differ from machine to machine.
"""

from __future__ import annotations

import os
import re
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

from elmo_bench.system.places import ROOT
from elmo_bench.system.storage.files import write_text

PAGE, NOTEBOOK = ROOT / "docs" / "tutorial.md", ROOT / "docs" / "tutorial.ipynb"
PICTURE = ROOT / "docs" / "figures" / "tutorial.svg"
CELL = re.compile(r"^```(python|sh)\n(.*?)^```\n(?:\n```(text|about)\n(.*?)^```\n)?", re.DOTALL | re.MULTILINE)
PASSING = r"record: |\w+/\w+ .*(?:training|accuracy)"  # lines with a path or a time
KERNEL = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def code_of(language: str, code: str) -> str:
    """The code of a cell of the notebook."""
    return "\n".join(f"!{line}" if language == "sh" else line for line in code.rstrip().split("\n"))


def notebook(text: str) -> str:
    """The page as a notebook, without outputs."""
    new, parts, end = nbformat.v4, [], 0
    for found in CELL.finditer(text):
        parts += [
            new.new_markdown_cell(text[end : found.start()].strip()),
            new.new_code_cell(code_of(found[1], found[2])),
        ]
        end = found.end()
    parts.append(new.new_markdown_cell(text[end:].strip()))
    for number, cell in enumerate(parts):
        cell.id = f"cell-{number}"
    return nbformat.writes(new.new_notebook(cells=parts, metadata=KERNEL)) + "\n"


def executed(folder: Path, environment: dict[str, str]) -> list[tuple[str, dict[str, Any]]]:
    """What each cell of the notebook prints and shows, when it is executed in a folder."""
    book = nbformat.reads(NOTEBOOK.read_text(encoding="utf-8"), as_version=4)
    for cell in book.cells:  # without notes on preparations, which depend on the cache
        if cell.cell_type == "code":
            cell.source = re.sub(r"^(!.*)$", r"\1 2>/dev/null", cell.source, flags=re.MULTILINE)
    salt = "import matplotlib\nmatplotlib.rcParams['svg.hashsalt'] = 'tutorial'"  # else ids in pictures are random
    first = f"%config InlineBackend.figure_formats = ['svg']\n{salt}"
    book.cells.insert(0, nbformat.v4.new_code_cell(first))
    client = NotebookClient(book, timeout=1200, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    path = os.pathsep.join([str(ROOT / ".venv" / "bin"), environment["PATH"]])
    client.execute(env=environment | {"PYTHONPATH": str(ROOT), "PATH": path, "OMP_NUM_THREADS": "1", "TERM": "dumb",
                                      "MPLBACKEND": "module://matplotlib_inline.backend_inline"})  # fmt: skip
    return [_shown(cell.outputs) for cell in book.cells[1:] if cell.cell_type == "code"]


def _shown(outputs: list[Any]) -> tuple[str, dict[str, Any]]:
    text = "".join(each.get("text", "") for each in outputs if each.get("name") == "stdout")
    text = re.sub(r"\x1b\[[\d;]*m", "", text).replace("\r\n", "\n")
    data = {kind: value for each in outputs for kind, value in each.get("data", {}).items()}
    lines = [line for line in text.splitlines() if not re.match(PASSING, line)]
    return "".join(f"{textwrap.fill(line, 110).rstrip()}\n" for line in lines), data


def write() -> None:
    """Executes the tutorial and writes what it prints, its picture and the notebook."""
    text = PAGE.read_text(encoding="utf-8")
    write_text(NOTEBOOK, notebook(text))
    with tempfile.TemporaryDirectory() as folder:
        shown = iter(executed(Path(folder), dict(os.environ)))

    def with_output(found: re.Match[str]) -> str:
        printed, data = next(shown)
        if "image/svg+xml" in data:
            bare = re.sub(r"\s*<metadata>.*?</metadata>", "", data["image/svg+xml"], flags=re.DOTALL)  # has the date
            write_text(PICTURE, bare.strip() + "\n")
        if found[3] is None:
            return found[0]
        return f"```{found[1]}\n{found[2]}```\n\n```{found[3]}\n{printed}```\n"

    write_text(PAGE, CELL.sub(with_output, text))
