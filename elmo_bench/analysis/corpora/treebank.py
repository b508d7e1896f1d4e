"""Makes the files of the open data of parts of speech: UD English-EWT (CoNLL-U), as its repository has it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from elmo_bench.system.storage.files import read_text


def ewt(sources: Mapping[str, Path]) -> dict[str, str]:
    """The official splits. Train, too large for some copies of the repository, is joined from its documents.

    Args:
        sources: `ud`, the folder of the repository.

    Returns:
        the text of each file below data_root, by its name.
    """
    parts = sources["ud"] / "not-to-release"
    train = "".join(read_text(parts / "sources" / name) for name in read_text(parts / "file-lists/files.train").split())
    held = [f"en_ewt-ud-{split}.conllu" for split in ("dev", "test")]
    return {"ud_ewt/en_ewt-ud-train.conllu.xz": train} | {
        f"ud_ewt/{name}": read_text(sources["ud"] / name) for name in held
    }
