"""The arm of a run, baseline or +ELMo, and its variant: its other changes of its task's configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path, PurePath
from typing import Any

from omegaconf import OmegaConf

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.composing import ROOTS
from elmo_bench.configuration.schema import BilmConfig, RunConfig, TunedConfig
from elmo_bench.identity.settings import differences, identifying, relative, relevant
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

# Where files lie; their content tells runs apart, by its digests in the settings.
PATH_KEYS = re.compile(
    r"seed|bilm\.(_target_|name|options|weights|path|like)|task\.(reader\.)?data\.(root|folder|train|dev|test)"
    r"|vectors\.sets\..+\.(table|words)"
)


def variant(run: RunConfig) -> dict[str, Any]:
    """What a run changes of its task's configuration at its scale and arm: dotted keys and values, as they are typed.

    Other word vectors, another source of layers and files of callbacks are one key each, `vectors`, `bilm` and
    `callbacks`, whatever their files set; what was typed beside the choice has its own keys.
    """
    page = page_of(run)
    vectors = vectors_of(run)
    if run.task.words is None and vectors != vectors_of(page):
        raise UserError(f"vectors={vectors}: the model of task={run.task.name} has no word vectors")
    chosen: dict[str, Any] = {}
    if (vectors, run.vectors.source == "random") != (vectors_of(page), page.vectors.source == "random"):
        chosen["vectors"] = vectors
    if (callbacks := _callbacks(run)) != _callbacks(page):
        chosen["callbacks"] = callbacks[0] if len(callbacks) == 1 else callbacks
    if chosen:
        given = "vectors" in chosen and places.page("vectors", vectors).is_file()
        page = page_of(run, vectors if given else None, callbacks if "callbacks" in chosen else None)
    changes = differences(*(relative(_compared(each)) for each in (run, page)))
    if run.sets:  # whose size it is
        changes.pop("task.words.size", None)
    if "vectors" in chosen and vectors_of(page) != vectors:  # the files that were typed, of which no page says more
        ours = "task.words.path", "task.words.size"
        changes = {k: value for k, value in changes.items() if k not in ours and k.split(".")[0] != "vectors"}
    if not run.baseline and _source(run) != run.scale.bilm:
        chosen["bilm"] = "tuned" if isinstance(run.bilm, TunedConfig) else run.bilm.name
    kept = {
        key.replace("task.reader.data.", "task.data."): value  # where it is typed, and the reader's is taken from
        for key, value in changes.items()
        if not PATH_KEYS.fullmatch(key)
    }
    return dict(sorted({**kept, **chosen}.items()))


def own_files(config: Mapping[str, Any]) -> dict[str, str]:
    """By split, the name of a file of the user's where the scale has its own; of a run's configuration without places.

    What a scale generates is known by its place, other files by their names.
    """
    task, scale = config["task"], config["scale"]
    of_task, theirs, found = task.get("name"), dict[str, Any](), dict[str, str]()
    for page in (places.page("task", of_task), places.page(f"task/{of_task}", scale.get("name"))):
        said: Any = OmegaConf.to_container(pages.read(page)) if page.is_file() else {}
        theirs |= (said.get("task") or {}).get("data") or {}
    for split in ("train", "dev", "test"):
        ours = (task.get("data") or {}).get(split)
        if isinstance(ours, str) and isinstance(theirs.get(split), str):
            name, scales = PurePath(ours).name, theirs[split].removeprefix("${in_folder:").removesuffix("}")
            if scale.get("maker"):
                own = ours != scales.replace("${scale.folder}", str(scale.get("folder")))
            else:
                own = name != PurePath(scales).name
            found |= {split: name} if own else {}
    return found


def _compared(run: RunConfig) -> dict[str, Any]:
    """What a run is compared by with its page: all that its result depends on, and how its biLM is tuned."""
    plain = relevant(run, whole=True)
    if not run.baseline and isinstance(run.bilm, TunedConfig):  # these are part of a recipe in the run's identity
        plain["bilm"] |= {"parent": run.bilm.parent, "tuning": identifying(run.bilm.tuning, whole=True)}
    return plain


def _callbacks(run: RunConfig) -> list[str]:
    """The files in conf/callbacks/ of those callbacks on which its result depends, "none" if there are none."""
    named = relevant(run).get("callbacks", {})
    return sorted(name for name in named if places.page("callbacks", name).is_file()) or ["none"]


def page_of(run: RunConfig, vectors: str | None = None, callbacks: Sequence[str] | None = None) -> RunConfig:
    """What the configuration files alone give for a run's task, scale, arm and source of layers.

    Args:
        run: the run.
        vectors: a file in conf/vectors/; None: the word vectors of the scale.
        callbacks: files in conf/callbacks/; None: those of the task.
    """
    roots = tuple(getattr(run, place) for place in ROOTS)
    chosen = {"task": run.task.name, "scale": run.scale.name, "arm": run.arm}
    chosen |= {} if run.baseline else {"bilm": _source(run)}
    chosen |= {"vectors": vectors} if vectors else {}
    chosen |= {} if callbacks is None else {"callbacks": f"[{','.join(callbacks)}]"}
    return _page(tuple(places.conf()), tuple(f"{key}={value}" for key, value in chosen.items()), roots)


def _source(run: RunConfig) -> str:
    """The file of the run's source of layers in conf/bilm/."""
    if isinstance(run.bilm, TunedConfig):
        return "tuned"
    if places.page("bilm", run.bilm.name).is_file():
        return run.bilm.name
    return "custom" if isinstance(run.bilm, BilmConfig) else "transformers"


def vectors_of(run: RunConfig) -> str:
    """The name of its word vectors: of the choice, or of the file `task.words.path`; "random" if there are none."""
    path = (run.task.words or {}).get("path") if run.vectors.source == "page" else None
    if path is not None:
        return Path(path).name
    return "random" if run.vectors.source == "page" else run.vectors.label


@cache
def _page(conf: tuple[Path, ...], chosen: tuple[str, ...], roots: tuple[str | None, ...]) -> RunConfig:
    """The configuration that the files in `conf` alone give for a choice of them."""
    cfg = pages.compose(chosen)
    for place, root in zip(ROOTS, roots, strict=True):
        cfg[place] = root
    return schema.typed(cfg)
