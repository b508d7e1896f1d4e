"""Composing configurations: Hydra composes each choice of files once, and every run of it gets a copy."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from elmo_bench.configuration import schema
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import yaml_text
from elmo_bench.system.terminal.console import choices

ARMS = ("baseline", "elmo")  # the two columns of the paper's Table 1
FORMER_ARMS = {  # of earlier releases: what is typed today
    "glove": "arm=baseline vectors=glove.6B.50d",
    "elmo+glove": "arm=elmo vectors=glove.6B.50d",
    "text": "arm=baseline vectors=text",
    "elmo+text": "arm=elmo vectors=text",
    "joint": "elmo.finetune=joint",
    "tuned": "bilm=tuned",
    "untrained": "bilm=untrained",
}


def register() -> None:
    """Makes the schema and the resolvers known to Hydra.

    `${root:models}` is the folder `models` of the checkout, `${shipped:${models_root},open}` that of a model which the
    project brings, `${conf:a.yaml}` a file in `conf`, `${arm:A,B}` A for the baseline and B with ELMo,
    `${last:PATH,NAME}` the last part of a path (NAME for null), `${page:bilm,NAME,KEY}` the value of a key in another
    file, `${seeded:NAME,SEED}` the name of a folder: NAME for the seed 1, else NAME-seedSEED, `${packaged:NAME,FOLDER}`
    a folder in an installed package, `${in_folder:FILE}` a file of the `folder` beside it, null if that is null (the
    data are then those of the hub), and `${made:}` the folder that `elmo-bench data` writes to by default, null if
    there is none, and `${cache:}` the cache.
    """
    OmegaConf.register_new_resolver("root", lambda name="": str(places.ROOT / name), replace=True)
    OmegaConf.register_new_resolver("conf", lambda name: str(places.CONF / name), replace=True)
    OmegaConf.register_new_resolver("cache", _cache, replace=True)
    OmegaConf.register_new_resolver("shipped", lambda root, name: str(places.shipped(root, name)), replace=True)
    OmegaConf.register_new_resolver("made", places.default_data, replace=True)
    OmegaConf.register_new_resolver("arm", _by_arm, replace=True)
    OmegaConf.register_new_resolver("last", lambda path, name: Path(path).name if path else name, replace=True)
    OmegaConf.register_new_resolver("packaged", lambda *path: str(places.packaged(*path)), replace=True)
    OmegaConf.register_new_resolver("in_folder", _in_folder, replace=True)
    OmegaConf.register_new_resolver("page", _value_on_page, replace=True)
    OmegaConf.register_new_resolver("seeded", seeded, replace=True)
    schema.register()


def _by_arm(baseline: Any, elmo: Any, *, _root_: DictConfig) -> Any:
    return baseline if _root_.arm == "baseline" or _root_.elmo.where == "none" else elmo


def _in_folder(name: str, *, _parent_: DictConfig) -> str | None:
    return None if _parent_.folder is None else name


ROOTS = ("data_root", "models_root", "vectors_root", "cache_root", "results_root")
FILES = ("bilm.options", "bilm.weights", "bilm.like", "bilm.path", "bilm.folder", "task.words.path")
DATA = ("task.data.root", "task.data.folder", "task.data.train", "task.data.dev", "task.data.test")


def settled(cfg: DictConfig, overrides: Sequence[str] = ()) -> DictConfig:
    """The configuration of a run, with absolute paths, in which `arm=baseline` and `elmo.where=none` are the same.

    Relative paths are those of the current folder: a command settles what it was given before it goes elsewhere. What
    was typed travels with it, but for the seed.

    Raises:
        UserError: another arm.
    """
    if cfg.arm not in ARMS:
        if former := FORMER_ARMS.get(str(cfg.arm)):
            raise UserError(f"arm={cfg.arm} is now {former}")
        raise UserError(f"arm={cfg.arm}: {choices(str(cfg.arm), ARMS)}")
    _make_absolute(cfg)
    with open_dict(cfg):
        cfg.typed = [each for each in overrides if not each.startswith("seed=")]
    if not isinstance(cfg.elmo, DictConfig):  # no block of keys, which `schema.typed` refuses
        return cfg
    if cfg.arm == "baseline":
        cfg.elmo.where = "none"
    elif cfg.elmo.where == "none":
        cfg.arm = "baseline"
    return cfg


def _make_absolute(cfg: DictConfig) -> None:
    """Makes absolute the roots and the paths of existing files; if the data have a folder, only that folder."""
    below = next((number for number, key in enumerate(DATA[:2], 1) if _value(cfg, key) is not None), len(DATA))
    for key in (*ROOTS, *FILES, *DATA[:below]):
        value = _value(cfg, key)
        if isinstance(value, str):
            new = _absolute(value, always=key in ROOTS)
        elif isinstance(value, ListConfig):
            new = [_absolute(each) if isinstance(each, str) else each for each in value]
        else:
            continue
        # The default folder of models, typed, is the user's own, which `shipped` tells by its relative path.
        if new != value and not (key == "models_root" and new == str(places.ROOT / "models")):
            OmegaConf.update(cfg, key, new)


def _value(cfg: DictConfig, key: str) -> Any:
    """The value of a key; None if there is none, or what it refers to is missing, of which the run will tell."""
    try:
        return OmegaConf.select(cfg, key)
    except OmegaConfBaseException:
        return None


def _absolute(path: str, always: bool = False) -> str:
    here = path and not path.startswith("~") and (always or os.path.exists(path))
    return os.path.abspath(path) if here and not os.path.isabs(path) else path


def _cache() -> str:
    """ELMO_BENCH_CACHE, or else that of this machine; the home folder is asked for only then."""
    return os.environ.get("ELMO_BENCH_CACHE") or str(places.machine_cache())


def seeded(name: str, seed: int) -> str:
    """The name of a folder for what is made from a seed."""
    return name if seed == 1 else f"{name}-seed{seed}"


def _value_on_page(group: str, name: str, key: str, *, _root_: DictConfig) -> Any:
    """The value of a key in a configuration file that was not chosen; None if the file has no such key.

    Raises:
        UserError: there is no such configuration file.
    """
    path = places.page(group, name)
    if not path.is_file():
        raise UserError(f"{group}={name}: there is no such configuration file; {choices(name, places.named(group))}")
    page = yaml_text.read(path)
    page._set_parent(_root_)  # its interpolations are those of the run
    return OmegaConf.select(page, key)


register()  # at import, so that the worker processes of a launcher have them too


def compose(overrides: Sequence[str] = (), name: str = "train") -> DictConfig:
    """The configuration that `elmo-bench NAME OVERRIDES` would get.

    A composition by Hydra takes a quarter of a second, and a command needs many: of all settings of a sweep. So Hydra
    composes a choice of files once, as long as no file changes; to a copy of it, Hydra applies the values of the run.

    Raises:
        The same errors as the command; `console.report` turns them into one line.
    """
    from hydra._internal.config_loader_impl import ConfigLoaderImpl

    parsed = [parse(text) for text in overrides]
    values = [override for override in parsed if is_value(override)]
    chosen = tuple(text for text, override in zip(overrides, parsed, strict=True) if not is_value(override))
    cfg = copy.deepcopy(_by_pages(_state(), name, chosen))
    ConfigLoaderImpl._apply_overrides_to_config(values, cfg)
    return settled(cfg, overrides) if "arm" in cfg else cfg


def page(overrides: Sequence[str], arm: str) -> DictConfig:
    """What the files alone say that overrides choose, for an arm; not to be changed."""
    return _page(_state(), tuple(text for text in overrides if not is_value(parse(text))), arm)


@lru_cache(maxsize=256)
def _page(state: Any, chosen: tuple[str, ...], arm: str) -> DictConfig:
    cfg = copy.deepcopy(_by_pages(state, "train", chosen))
    cfg.arm = arm
    return settled(cfg)


def by_hydra(overrides: Sequence[str] = (), name: str = "train") -> DictConfig:
    """The same by Hydra alone."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    running, GlobalHydra.instance().hydra = GlobalHydra.instance().hydra, None  # set a running command's aside
    further = [f"hydra.searchpath=['file://{folder}']" for folder in places.conf()[:-1]]
    try:
        with initialize_config_dir(str(places.CONF), version_base="1.3"):
            return hydra_compose(name, [*further, *overrides])
    finally:
        GlobalHydra.instance().hydra = running


@lru_cache(maxsize=256)
def _by_pages(state: Any, name: str, chosen: tuple[str, ...]) -> DictConfig:
    return by_hydra(chosen, name)


def _state() -> tuple[tuple[str, int, int], ...]:
    """The path, time and size of every configuration file, which differ as soon as one changes."""
    *own, ours = places.conf()
    known, groups = [], [folder / group for folder in own for group in os.listdir(ours)]
    for top in (ours, *groups):
        files = (os.path.join(folder, name) for folder, _, names in os.walk(top) for name in names)
        found = ((path[len(str(top)) :], os.stat(path)) for path in sorted(files) if path.endswith(".yaml"))
        known += [(path, now.st_mtime_ns, now.st_size) for path, now in found]
    return tuple(known)


@lru_cache(maxsize=4096)
def parse(text: str) -> Any:
    """One override as Hydra reads it."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    return OverridesParser.create().parse_overrides([text])[0]


def is_value(override: Any) -> bool:
    """Whether an override sets a key of the composed files and neither chooses a file nor concerns Hydra itself."""
    key = override.key_or_group
    if override.is_sweep_override() or override.package is not None or key.partition(".")[0] == "hydra":
        return False
    return (
        isinstance(override.value(), dict) or "." in key or not any((folder / key).is_dir() for folder in places.conf())
    )
