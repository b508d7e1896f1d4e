"""Writes the parts of pages that come from code, records and models: `make pages`; ARGS=NAME: only these blocks.

A block stands between `<!-- generated: NAME -->` and `<!-- /generated -->`. A test makes each block again and compares.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch: these models are small

import re
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from docs.generate import blocks, keys, pictures, tutorial
from elmo_bench.bilm.pretraining.recipe import Recipe
from elmo_bench.system.places import ROOT
from elmo_bench.system.storage.files import write_text
from tests import simulate

BLOCK = re.compile(r"(<!-- generated: ([\w .,=-]+) -->\n).*?(<!-- /generated -->)", re.DOTALL)
BLOCKS: dict[str, Callable[..., str]] = {
    "costs": blocks.costs,
    "first result": blocks.first_result,
    "one seed": blocks.one_seed,
    "two gains": blocks.two_gains,
    "commands": blocks.commands,
    "sweeps": blocks.sweeps,
    "keys": keys.table,
    "keys of task": keys.of_task,
    "recipe": partial(keys.block, "recipe", Recipe),
    "formats": blocks.formats,
    "prediction": blocks.prediction,
    "gains": blocks.gains,
    "perplexity": blocks.perplexity,
    "simulation": simulate.table,
}  # a block belongs to the longest of these names that its own begins with; the rest of its name is the argument


def documents() -> list[Path]:
    """The Markdown pages, with or without blocks."""
    found = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tasks").rglob("*.md")]
    return sorted([*found, *(ROOT / "models").rglob("README.md")])


def block(name: str) -> str:
    """The text of a block."""
    kind = max((each for each in BLOCKS if name == each or name.startswith(f"{each} ")), key=len)
    return BLOCKS[kind](*filter(None, [name.removeprefix(kind).strip()]))


def renewed(names: list[str], found: re.Match[str]) -> str:
    """A block, generated again if its name begins with one of the names, or if there are no names."""
    chosen = not names or found[2].startswith(tuple(names))
    return f"{found[1]}\n{block(found[2])}\n\n{found[3]}" if chosen else found[0]


def main(names: list[str]) -> None:
    """Writes all blocks, pictures and the tutorial's outputs, or only the parts with these names."""
    if not names or "costs" in names:
        blocks.count()
    for path in documents():
        text = path.read_text(encoding="utf-8")
        new = BLOCK.sub(partial(renewed, names), text)
        if new != text:
            write_text(path, new)
            print(path.relative_to(ROOT))
    for path, content in (pictures.files() | (blocks.cards() if {*names} <= {"cards"} else {})).items():
        write_text(path, content)
    if not names or "tutorial" in names:
        tutorial.write()


if __name__ == "__main__":
    main(sys.argv[1:])
