"""Writes what pages take from code, records and models: `make pages`, with ARGS=NAME only the blocks of that name.

A block stands between `<!-- generated: NAME -->` and `<!-- /generated -->`. A test writes each again and compares.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: these models are small

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from docs.generate import costs, keys, pictures, tutorial, usage
from elmo_bench.system.places import ROOT
from elmo_bench.system.storage.files import write_text
from tests import simulate

BLOCK = re.compile(r"(<!-- generated: ([\w .,=-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)
MADE: dict[str, Callable[..., str]] = {
    "costs": costs.table,
    "first result": costs.first_result,
    "one seed": costs.one_seed,
    "two gains": costs.two_gains,
    "commands": usage.commands,
    "sweeps": usage.sweeps,
    "keys": keys.table,
    "keys of task": keys.of_task,
    "recipe": keys.recipe,
    "formats": usage.formats,
    "prediction": usage.prediction,
    "gains": usage.gains,
    "perplexity": usage.perplexity,
    "simulation": simulate.table,
}  # the longest name that a block's name begins with; what follows is the argument


def documents() -> list[Path]:
    """The Markdown pages, each with blocks or without."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tasks").rglob("*.md")]
    return sorted([*found, *(ROOT / "models").rglob("README.md")])


def blocks(text: str) -> Iterator[str]:
    """The names of the blocks of a page."""
    return (found[2] for found in BLOCK.finditer(text))


def made(name: str) -> str:
    """The text of a block."""
    kind = max((each for each in MADE if name == each or name.startswith(f"{each} ")), key=len)
    argument = name.removeprefix(kind).strip()
    return MADE[kind](argument) if argument else MADE[kind]()


def renewed(text: str, wanted: Callable[[str], bool] = lambda name: True) -> str:
    """A page with its blocks written again."""
    return BLOCK.sub(
        lambda found: f"{found[1]}\n{made(found[2])}\n\n{found[3]}" if wanted(found[2]) else found[0], text
    )


def main(names: list[str]) -> None:
    """Writes all blocks, pictures and the tutorial's outputs, or those with these names."""
    if not names or "costs" in names:
        costs.count()
    for path in documents():
        text = path.read_text(encoding="utf-8")
        if (new := renewed(text, lambda name: not names or name.startswith(tuple(names)))) != text:
            write_text(path, new)
            print(path.relative_to(ROOT))
    for path, content in (pictures.files() | (usage.cards() if {*names} <= {"cards"} else {})).items():
        write_text(path, content)
    if not names or "tutorial" in names:
        tutorial.write()


if __name__ == "__main__":
    main(sys.argv[1:])
