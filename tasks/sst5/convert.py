"""Makes the open data of SST-5 (one tree per line) from a public copy of the treebank."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from elmo_bench.system.storage.files import open_text

TRAIN = 8544  # trees of the official training split; in this copy, dev follows them


def trees(sources: Mapping[str, Path]) -> dict[str, str]:
    """The official splits.

    Args:
        sources: `trees`, the folder of the repository.

    Returns:
        the text of each file below data_root, by its name.
    """
    folder = sources["trees"] / "trees"
    most = {"train": TRAIN, "dev": None, "test": None}
    return {f"sst/{split}.txt": _first(folder / f"{split}.txt", number) for split, number in most.items()}


def _first(path: Path, number: int | None) -> str:
    with open_text(path) as lines:
        return "".join(islice(lines, number))
