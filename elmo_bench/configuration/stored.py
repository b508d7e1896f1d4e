"""Which code a file may name: Hydra calls whatever `_target_` says, and a checkpoint or record may be a stranger's.

Code that a page of conf/ names is known, and so are classes of torch and Lightning with which people train and the
layers of this package, which a run may be given on the command line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_bench.system import places
from elmo_bench.system.errors import UserError

KEYS = "_target_", "maker"
PLACES = r"torch\.nn|torch\.optim(\.lr_scheduler)?|pytorch_lightning\.callbacks|elmo_bench\.nn\.\w+"


def known(name: Any) -> bool:
    """Whether a dotted name may be imported and called though a file says so."""
    if not isinstance(name, str):
        return False
    return name in _on_pages(places.CONF) or re.fullmatch(rf"({PLACES})\.[A-Z]\w+", name) is not None


def check(config: Any, path: str | PathLike[str]) -> None:
    """Raises `UserError` if the configuration in a file names other code, anywhere."""
    for key, name in _named(config):
        if name is not None and not known(name):
            told = "no page of conf/ names this code, so it is not run; if you trust the file, name it on a page"
            raise UserError(f"{key}={name}: {told}", path)


def _named(node: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(node, list | tuple):
        for inner in node:
            yield from _named(inner)
    elif isinstance(node, dict):
        for key, inner in node.items():
            if key in KEYS:
                yield key, inner
            yield from _named(inner)


@cache
def _on_pages(conf: Path) -> frozenset[str]:
    texts = [page.read_text(encoding="utf-8") for page in conf.rglob("*.yaml")]
    return frozenset(name for text in texts for name in re.findall(rf"\b(?:{'|'.join(KEYS)}): *([\w.]+)", text))
