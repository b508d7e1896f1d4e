"""Where a data set lies: in files, below a folder if one is named, or on the hub."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datasets import Dataset

from elmo_bench.system.errors import UserError
from elmo_bench.text.hub import load_from_hub

SPLITS = {"train": "train", "dev": "validation", "test": "test"}  # ours and the hub's names


class Source:
    """The `data` of a task's page for one scale.

    Args:
        data: the file of each split, below {folder} if given; or a data set of the hub {hub, revision}, for which no
            folder may be named.
        files: what to give instead where the hub cannot be reached, for messages.
    """

    def __init__(self, data: Mapping[str, Any], files: str = "task.data.<scale>.folder=DIR"):
        self.data, self.hint = dict(data), f"give {files} to read files instead"

    @property
    def from_hub(self) -> bool:
        """Whether a data set of the hub is named, and no folder that goes before it."""
        return self.data.get("hub") is not None and self.data.get("folder") is None

    def path(self, split: str) -> Path:
        """The file of a split. Raises `UserError` where none is named."""
        name = self.data.get(split)
        if name is None:
            raise UserError(f"no file is named for {split}: set task.data.<scale>.{split}")
        return Path(self.data.get("folder") or "", name).expanduser()

    def load(self, splits: Mapping[str, str] = SPLITS) -> dict[str, Dataset]:
        """The splits of the hub's data set, by our names.

        Raises:
            UserError: it cannot be loaded, or lacks a split.
        """
        dataset = load_from_hub(self.data["hub"], self.data.get("revision"), hint=self.hint)
        if missing := [split for split in splits.values() if split not in dataset]:
            raise self.unfit(f"has no split {', '.join(missing)}")
        return {ours: dataset[theirs] for ours, theirs in splits.items()}

    def unfit(self, why: str) -> UserError:
        """The error that the hub's data set is not what it should be."""
        return UserError(f"the data set {self.data['hub']} of the hub {why}; {self.hint}")
