"""The place of a data set: files, below a folder if one is named, or the hub."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.system.errors import UserError
from elmo_bench.text.hub import load_from_hub

if TYPE_CHECKING:
    from datasets import Dataset

SPLITS = {"train": "train", "dev": "validation", "test": "test"}  # our names -> the hub's names


class Source:
    """The `data` of a task's page for one scale.

    Args:
        data: the file of each split, below {folder} if given; or, without a folder, a data set of the hub
            {hub, revision, configuration}.
        files: the settings that name files instead of the hub, for error messages.
    """

    def __init__(self, data: Mapping[str, Any], files: str = "task.data.folder=DIR"):
        self.data, self.hint = dict(data), f"give {files} to read files instead"

    @property
    def from_hub(self) -> bool:
        """Whether a data set of the hub is named and no folder, which would take precedence."""
        return self.data.get("hub") is not None and self.data.get("folder") is None

    def path(self, split: str) -> Path:
        """The file of a split. Raises `UserError` if none is named."""
        name = self.data.get(split)
        if name is None:
            raise UserError(f"no file is named for {split}: set task.data.{split}")
        return Path(os.path.expanduser(Path(self.data.get("folder") or "", name)))

    def load(self, splits: Mapping[str, str] = SPLITS) -> dict[str, Dataset]:
        """The splits of the hub's data set, by our names.

        Raises:
            UserError: it cannot be loaded, or lacks a split.
        """
        dataset = load_from_hub(
            self.data["hub"], self.data.get("revision"), self.data.get("configuration"), hint=self.hint
        )
        if missing := [split for split in splits.values() if split not in dataset]:
            raise self.unfit(f"has no split {', '.join(missing)}")
        return {ours: dataset[theirs] for ours, theirs in splits.items()}

    def unfit(self, why: str) -> UserError:
        """The error for a data set of the hub that is not as expected; `why` completes "the data set ..."."""
        return UserError(f"the data set {self.data['hub']} of the hub {why}; {self.hint}")
