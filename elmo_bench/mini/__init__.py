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
from elmo_bench.mini.paths import LANGUAGE, PATHS, SPLITS, TEXT, edited_language
from elmo_bench.system.errors import UserError

__all__ = ["MiniBilm", "MiniData"]


class MiniData:
    """Makes the data of `scale=mini`, at `scale.folder`: the text, and the data of the task of the run.

    Raises:
        UserError: the configuration asks for another version than this code generates, or the tables of the language do
            not fit together.
    """

    files = (*(path.format(split) for path in PATHS.values() for split in SPLITS), *TEXT)

    def __init__(self, scale: ScaleConfig, places: Places):
        self.scale = scale

    def recipe(self) -> dict[str, Any]:
        """What the bytes depend on."""
        return {"version": self.scale.version, "seed": self.scale.seed, "sizes": self.scale.sizes, **edited_language()}

    def make(self) -> Path:
        """The folder with the data set in it."""
        assert self.scale.folder is not None
        only = (self.scale.only or "").removesuffix("5")  # the files of sst5 are called sst
        try:
            from elmo_bench.mini.data import FORMATS, VERSION, ensure_data

            if self.scale.version != VERSION:
                raise UserError(
                    f"scale.version={self.scale.version} (conf/scale/mini.yaml): this code generates version "
                    f"{VERSION}; check out the other one"
                )
            tasks = [only] if only in FORMATS else FORMATS
            return ensure_data(self.scale.folder, self.scale.seed, self.scale.sizes, tasks)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            if isinstance(error, UserError) or not edited_language():  # else a fault of the generator itself
                raise
            reason = f"{type(error).__name__}: {error}"
            raise UserError(f"the tables of the language (*.yaml) do not fit together: {reason}", LANGUAGE) from error
