"""The arm of a run, baseline or +ELMo, and its variant: its other changes of its task's configuration."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.composing import ROOTS
from elmo_bench.configuration.schema import BilmConfig, RunConfig, TunedConfig
from elmo_bench.identity.identity import differences, relative
from elmo_bench.identity.settings import relevant
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

# Where files lie; their content tells runs apart, by its digests in the settings.
PATH_KEYS = re.compile(
    r"seed|bilm\.(_target_|name|options|weights|path|like)|task\.(reader\.)?data\.(root|folder|train|dev|test)"
    r"|vectors\.sets\..+\.(table|words)"
)


def variant(run: RunConfig) -> dict[str, Any]:
    """What a run changes of its task's configuration at its scale and arm: dotted keys and values, as they are typed.

    Other word vectors and another source of layers are one key each, `vectors` and `bilm`, whatever their files set.

    Raises:
        UserError: word vectors are chosen for a model that has none.
    """
    page = page_of(run)
    if run.task.words is None and _vectors(run) != _vectors(page):
        raise UserError(f"vectors={_vectors(run)}: the model of task={run.task.name} has no word vectors")
    changes = differences(*(relative(relevant(each, whole=True)) for each in (run, page)))
    if (_vectors(run), run.vectors.source == "random") != (_vectors(page), page.vectors.source == "random"):
        changes = {key: value for key, value in changes.items() if not _decided_by_vectors(key, run)}
        changes["vectors"] = _vectors(run)
    if not run.baseline and _source(run) != run.scale.bilm:
        changes["bilm"] = "tuned" if isinstance(run.bilm, TunedConfig) else run.bilm.name
    return {key: value for key, value in sorted(changes.items()) if not PATH_KEYS.fullmatch(key)}


def page_of(run: RunConfig) -> RunConfig:
    """What the configuration files alone give for a run's task, scale, arm and source of layers."""
    roots = tuple(getattr(run, place) for place in ROOTS)
    source = None if run.baseline else _source(run)
    return _page(tuple(places.conf()), run.task.name, run.scale.name, run.arm, source, roots)


def _source(run: RunConfig) -> str:
    """The file of the run's source of layers in conf/bilm/."""
    if isinstance(run.bilm, TunedConfig):
        return "tuned"
    if places.page("bilm", run.bilm.name).is_file():
        return run.bilm.name
    return "custom" if isinstance(run.bilm, BilmConfig) else "transformers"


def _vectors(run: RunConfig) -> str:
    """The name of its word vectors: of the choice, or of the file `task.words.path`; "random" if there are none."""
    path = (run.task.words or {}).get("path") if run.vectors.source == "page" else None
    if path is not None:
        return Path(path).name
    return "random" if run.vectors.source == "page" else run.vectors.label


def _decided_by_vectors(key: str, run: RunConfig) -> bool:
    """Whether the choice of word vectors decides a key."""
    trained = run.vectors.source == "random" and key == "task.words.trainable"
    return trained or key in ("task.words.size", "task.words.path") or key.split(".")[0] == "vectors"


@cache
def _page(
    conf: tuple[Path, ...], task: str, scale: str, arm: str, source: str | None, roots: tuple[str | None, ...]
) -> RunConfig:
    """The configuration that the files in `conf` alone give."""
    cfg = pages.compose([f"task={task}", f"scale={scale}", f"arm={arm}", *([f"bilm={source}"] if source else [])])
    for place, root in zip(ROOTS, roots, strict=True):
        cfg[place] = root
    return schema.typed(cfg)
