"""Files that the project makes itself: generated data, the biLM trained on it, an untrained biLM, skip-gram vectors.

They are identified by their recipe, not by their bytes, whose last digits differ from machine to machine. A file
names the class that makes them as `maker`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from hydra.utils import get_class

from elmo_bench.configuration.schema import Places, RunConfig


class Maker(Protocol):
    """Built as `maker(block, places)` with the typed block of the configuration file that names it.

    Neither the constructor nor `recipe` reads or makes any of the files. A class with a true attribute `seeded` makes
    other files for another `seed` in its block. That of a scale has `files`, the names of all files in its folder.
    """

    def recipe(self) -> dict[str, Any]:
        """Everything the files depend on, including a version of the code: plain values, and paths of other files."""
        ...

    def make(self) -> Any:
        """Makes the files if they are missing. Several processes may call it at once."""
        ...


def is_seeded(block: Any) -> bool:
    """Whether the files of a block are made here, from its seed."""
    return block.maker is not None and getattr(get_class(block.maker), "seeded", False)


def maker(block: Any, places: Places) -> Maker | None:
    """The maker that a block names, if it names one."""
    return None if block is None or block.maker is None else get_class(block.maker)(block, places)


def make(run: RunConfig) -> Path | None:
    """Makes all files that a run needs and that are missing, the data first because the others are trained on them.

    Returns:
        The file of skip-gram vectors, if the run uses them.
    """
    blocks = run.scale, None if run.baseline else run.bilm, run.vectors if run.trains_vectors else None
    makers = [maker(block, run.places) for block in blocks]
    *_, vectors = [None if each is None else each.make() for each in makers]
    return vectors
