"""The mini scale: a seeded world whose events become the data of all six tasks and the plain text for a biLM.

The same version, seed and sizes give the same bytes on any platform and Python. `data` makes a data set, unless it
exists; its files are described in `build`. Here are the makers that configuration files name: whoever asks them for a
recipe does not load the language.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import Places, ScaleConfig
from elmo_bench.mini.bilm import MiniBilm
from elmo_bench.mini.paths import PATHS, SPLITS, TEXT
from elmo_bench.system.errors import UserError

__all__ = ["MiniBilm", "MiniData"]


class MiniData:
    """Makes the data of `scale=mini`, at `scale.folder`: the text, and the data of the task of the run.

    Raises:
        UserError: the configuration asks for another version than this code generates.
    """

    files = (*(path.format(split) for path in PATHS.values() for split in SPLITS), *TEXT)

    def __init__(self, scale: ScaleConfig, places: Places):
        self.scale = scale

    def recipe(self) -> dict[str, Any]:
        """What the bytes depend on."""
        return {"version": self.scale.version, "seed": self.scale.seed, "sizes": self.scale.sizes}

    def make(self) -> Path:
        """The folder with the data set in it."""
        from elmo_bench.mini.data import FORMATS, VERSION, ensure_data

        if self.scale.version != VERSION:
            raise UserError(
                f"scale.version={self.scale.version}: this code generates version {VERSION}; check out the other one"
            )
        assert self.scale.folder is not None
        only = (self.scale.only or "").removesuffix("5")  # the files of sst5 are called sst
        return ensure_data(self.scale.folder, self.scale.seed, self.scale.sizes, [only] if only in FORMATS else FORMATS)
