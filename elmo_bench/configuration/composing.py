"""Composing configurations: Hydra composes each choice of files once, and every run with this choice gets a copy.

A run is checked when it is composed, and then gets its variant: the typed settings that differ from its files.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from elmo_bench.configuration import messages, schema
from elmo_bench.configuration.keys import Keys, defaults, fields, flat, relative, valid
from elmo_bench.configuration.schema import BilmConfig, RunConfig, TunedConfig, VectorsConfig, WandbConfig
from elmo_bench.system import console, places
from elmo_bench.system.console import choices
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text, yaml_text

TRACEBACK = ("debug=true", "debug=false")  # for a command, not a preset of conf/debug/
ARMS = ("baseline", "elmo")  # the two columns of the paper's Table 1
FORMER_ARMS = {  # arms of earlier releases, and what to type today
    "glove": "arm=baseline vectors=glove.6B.50d",
    "elmo+glove": "arm=elmo vectors=glove.6B.50d",
    "text": "arm=baseline vectors=text",
    "elmo+text": "arm=elmo vectors=text",
    "joint": "elmo.finetune=joint",
    "tuned": "bilm=tuned",
    "untrained": "bilm=untrained",
}
ROOTS = ("data_root", "models_root", "vectors_root", "cache_root", "results_root")
FILES = ("bilm.options", "bilm.weights", "bilm.like", "bilm.path", "bilm.folder", "task.words.path")
DATA = ("task.data.root", "task.data.folder", "task.data.train", "task.data.dev", "task.data.test")
WORDS = "task.words.path"
# Places of files; runs differ by the files' content, through its digests in the settings.
PLACES = {*FILES, *DATA, "bilm._target_", "bilm.name", "seed"}


def settled(cfg: DictConfig, overrides: Sequence[str] = ()) -> DictConfig:
    """The configuration of a run, with absolute paths, in which `arm=baseline` and `elmo.where=none` are the same.

    Relative paths are relative to the current folder, and are resolved before a command changes to another folder. The
    overrides are kept with the configuration, except the seed; an experiment is replaced by the overrides in its file.
    """
    if cfg.arm not in ARMS:
        if former := FORMER_ARMS.get(str(cfg.arm)):
            raise UserError(f"arm={cfg.arm} is now {former}")
        raise UserError(f"arm={cfg.arm}: {choices(str(cfg.arm), ARMS)}")
    for group in ("experiment", "debug"):
        if isinstance(cfg.get(group), DictConfig):
            raise UserError(f"{group}=...: a file sets keys of the run only if its first line is '# @package _global_'")
    _make_absolute(cfg)
    typed = list[str]()
    for text in overrides:
        override = parse(text)
        if override.key_or_group != "experiment":
            typed.append(text)
            continue
        for name in [override.value()] if isinstance(override.value(), str) else override.value():
            file: Any = OmegaConf.to_container(yaml_text.read(places.page("experiment", name)))
            chosen = [pair for each in file.pop("defaults", ()) for pair in each.items()]
            typed += [f"{group.rpartition('/')[2]}={choice}" for group, choice in chosen]
            typed += [f"{key}={json_text.dumps(value)}" for key, value in flat(file).items()]
    with open_dict(cfg):
        cfg.typed = [each for each in typed if not each.startswith("seed=")]
        cfg.debug = any(each.startswith("debug=") for each in overrides)
    if not isinstance(cfg.elmo, DictConfig):  # not a block of keys, which `validated` refuses
        return cfg
    if cfg.arm == "baseline":
        cfg.elmo.where = "none"
    elif cfg.elmo.where == "none":
        cfg.arm = "baseline"
    return cfg


def _make_absolute(cfg: DictConfig) -> None:
    """Makes absolute the roots and the paths of existing files; if the data have a folder, only that folder."""
    for key in (*ROOTS, *FILES, *DATA):
        # One by one, as paths may refer to roots. A path that refers to something missing is None; the run reports it.
        value = OmegaConf.select(cfg, key, throw_on_resolution_failure=False)
        new = list(value) if isinstance(value, ListConfig) else [value]
        for i, path in enumerate(new):
            if isinstance(path, str) and path and not path.startswith("~") and (key in ROOTS or os.path.exists(path)):
                new[i] = os.path.abspath(path)
        new = new if isinstance(value, ListConfig) else new[0]
        # A typed default folder of models means the user's own, which `shipped` recognises by its relative path.
        if new != value and not (key == "models_root" and new == str(places.ROOT / "models")):
            OmegaConf.update(cfg, key, new)
        if key in DATA[:2] and value is not None:
            break


def roots(models_root: str | None = None) -> dict[str, str | None]:
    """The folders of a run, from the first configuration file alone, so that nothing has to be composed."""
    page = OmegaConf.masked_copy(yaml_text.read(places.CONF / "train.yaml"), [*ROOTS])
    page.models_root = models_root or page.models_root
    _make_absolute(page)
    return {key: page[key] for key in ROOTS}


def seeded(name: str, seed: int) -> str:
    """The name of a folder for files made from a seed."""
    return name if seed == 1 else f"{name}-seed{seed}"


def _value_on_page(group: str, name: str, key: str, *, _root_: DictConfig) -> Any:
    """The value of a key in any configuration file; None if the file has no such key."""
    path = places.page(group, name)
    if not path.is_file():
        raise UserError(f"{group}={name}: there is no such configuration file; {choices(name, places.named(group))}")
    page = yaml_text.read(path)
    page._set_parent(_root_)  # because its interpolations refer to the run
    return OmegaConf.select(page, key)


def run_config(overrides: Sequence[str] = ()) -> RunConfig:
    """The checked configuration of the run that `elmo-bench train OVERRIDES` would make."""
    return validated(compose(overrides))


def validated(cfg: DictConfig) -> RunConfig:
    """A composed run with every value checked, and with its variant."""
    try:
        plain: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True, enum_to_str=True)
    except OmegaConfBaseException:
        if missing := OmegaConf.missing_keys(cfg):
            raise UserError(f"no value for {', '.join(sorted(missing))}; give it as key=value") from None
        raise
    run = schema.from_plain(plain)
    run.variant = variant(run) if run.typed else {}
    return run


def compose(overrides: Sequence[str] = (), name: str = "train") -> DictConfig:
    """The configuration that `elmo-bench NAME OVERRIDES` would get.

    A composition by Hydra takes a quarter of a second, and a command needs one for each setting of a sweep. So Hydra
    composes a choice of files once, as long as no file changes, and applies the values of a run to a copy.

    Raises:
        The same errors as the command; `console.report` turns them into one line.
    """
    from hydra._internal.config_loader_impl import ConfigLoaderImpl

    overrides = [each for each in overrides if each not in TRACEBACK]
    chosen, values = _chosen(overrides)
    cfg = copy.deepcopy(_composed(_state(), name, chosen))
    ConfigLoaderImpl._apply_overrides_to_config(values, cfg)
    return settled(cfg, overrides) if "arm" in cfg else cfg


def by_hydra(overrides: Sequence[str] = (), name: str = "train") -> DictConfig:
    """The same, composed by Hydra alone."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    running, GlobalHydra.instance().hydra = (
        GlobalHydra.instance().hydra,
        None,
    )  # the Hydra of a running command is set aside
    further = [f"hydra.searchpath=['file://{folder}']" for folder in places.conf()[:-1]]
    try:
        with initialize_config_dir(str(places.CONF), version_base="1.3"):
            return hydra_compose(name, [*further, *overrides])
    finally:
        GlobalHydra.instance().hydra = running


@lru_cache(maxsize=256)
def _composed(state: Any, name: str, chosen: tuple[str, ...], arm: str | None = None) -> DictConfig:
    """The configuration of the chosen files without further values, for an arm; shared, so do not change it."""
    if arm is None:
        return by_hydra(chosen, name)
    cfg = copy.deepcopy(_composed(state, name, chosen))
    cfg.arm = arm
    return settled(cfg)


def _chosen(overrides: Iterable[str]) -> tuple[tuple[str, ...], list[Any]]:
    """The overrides that choose files, as typed, and the overrides that set keys, parsed by Hydra.

    The latter neither choose a file nor concern Hydra itself.
    """
    files, values, groups = [], [], places.conf()
    for text in overrides:
        override = parse(text)
        key, of_hydra = override.key_or_group, override.key_or_group.partition(".")[0] == "hydra"
        if override.is_sweep_override() or override.package is not None or of_hydra:
            files.append(text)
        elif isinstance(override.value(), dict) or "." in key or not any((each / key).is_dir() for each in groups):
            values.append(override)
        else:
            files.append(text)
    return tuple(files), values


def _state() -> tuple[tuple[str, int, int], ...]:
    """The path, time and size of every configuration file, to detect changes."""
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


# The variant of a run: the typed settings that differ from its configuration files.


def variant(run: RunConfig, places_too: bool = False) -> dict[str, Any]:
    """A run's changes to its task's configuration at its scale and arm: dotted keys and values, as typed.

    Only changes that may alter a result count. Other word vectors, another source of layers and files of callbacks are
    one key each, `vectors`, `bilm` and `callbacks`, whatever their files set; settings typed in addition to the choice
    have their own keys.

    Args:
        run: a run.
        places_too: whether to include the places of files, too (`PLACES`).
    """
    files, parsed = _chosen(run.typed)
    page = _composed(_state(), "train", files, run.arm)
    typed = [key for each in parsed for key, value in flat({each.key_or_group: each.value()}).items() if value != {}]
    values = {key: (relative(_value(run, key)), relative(_value(page, key))) for key in typed if matters(run, key)}
    found = {key: ours for key, (ours, theirs) in values.items() if ours != theirs}
    chosen = {key.partition("=")[0] for key in run.typed}
    if "vectors" in chosen or WORDS in found:
        default = _composed(_state(), "train", (f"task={run.task.name}", f"scale={run.scale.name}"), run.arm)
        usual = valid(VectorsConfig, OmegaConf.to_container(default.vectors, resolve=True))
        names = run.vectors.name_with(run.task.words), usual.name_with(OmegaConf.select(default, "task.words"))
        if names[0] != names[1] or (run.vectors.source == "random") != (usual.source == "random"):
            if run.task.words is None:
                raise UserError(f"vectors={names[0]}: the model of task={run.task.name} has no word vectors")
            if WORDS in found:  # the file decides the size, and replaces the keys of the chosen vectors
                found = {k: v for k, v in found.items() if k != "task.words.size" and not k.startswith("vectors.")}
            found["vectors"] = names[0]
    if "callbacks" in chosen:
        named = sorted(name for name in run.changing_callbacks if places.page("callbacks", name).is_file())
        found |= {"callbacks": named[0] if len(named) == 1 else named} if named else {}
    if not run.baseline:
        name = "tuned" if isinstance(run.bilm, TunedConfig) else run.bilm.name
        kind = "custom" if isinstance(run.bilm, BilmConfig) else "transformers"
        if run.scale.bilm != (name if name == "tuned" or places.page("bilm", name).is_file() else kind):
            found["bilm"] = name
    return {key: found[key] for key in sorted(found) if places_too or key not in PLACES}


def matters(run: RunConfig, key: str) -> bool:
    """Whether a result of the run may depend on a key: not if the run does not use its block."""
    first, _, rest = key.partition(".")
    if (first in ("elmo", "bilm") and run.baseline) or (first == "vectors" and not (run.trains_vectors or run.sets)):
        return False
    if (key == "task.words.size" and run.sets) or (key == "task.words.trainable" and run.vectors.source == "random"):
        return False  # the vectors decide it
    if first == "callbacks":
        return rest.partition(".")[0] in run.changing_callbacks
    block: Any = run
    for part in key.split("."):
        if isinstance(block, Keys):
            field = fields(type(block)).get(part)
            if field is None or (field.exclude and not field.json_schema_extra):
                return False
        block = _value(block, part)
    return True


def _value(node: Any, key: str) -> Any:
    """The value of a dotted key; None if there is none."""
    if OmegaConf.is_config(node):
        found = OmegaConf.select(node, key)
        return OmegaConf.to_container(found, resolve=True) if OmegaConf.is_config(found) else found
    for part in key.split("."):
        node = node.plain() if isinstance(node, Keys) else node
        node = node.get(part) if isinstance(node, Mapping) else None
    return node


# Registered at import, so that worker processes of a launcher have them, too: the resolvers; the schema, `schema` for a
# run and `schema/bilm/<kind>` for each kind of source of layers; the messages.

RESOLVERS = {
    "root": lambda name="": str(places.ROOT / name),  # `${root:models}`: a folder of the checkout
    "conf": lambda name: str(places.CONF / name),  # `${conf:a.yaml}`: a file in conf/
    "cache": lambda: os.environ.get("ELMO_BENCH_CACHE") or str(places.machine_cache()),
    "shipped": lambda root, name: str(places.shipped(root, name)),  # of a model that comes with the project
    # The folder that `elmo-bench data` writes to by default; null if there is none, or another folder of that name.
    "made": lambda: str(places.DATA) if (places.DATA / places.LICENCES).is_file() else None,
    "arm": lambda baseline, elmo, *, _root_: (  # `${arm:A,B}`: A for the baseline, B with ELMo
        baseline if _root_.arm == "baseline" or _root_.elmo.where == "none" else elmo
    ),
    "last": lambda path, name: Path(path).name if path else name,  # the last part of a path; `name` for null
    "packaged": lambda *path: str(places.packaged(*path)),  # a folder in an installed package
    # A file in the `folder` beside it; null if that is null, because the data come from the hub.
    "in_folder": lambda name, *, _parent_: None if _parent_.folder is None else name,
    "page": _value_on_page,  # `${page:bilm,NAME,KEY}`: the value of a key in another file
    "seeded": seeded,  # `${seeded:NAME,SEED}`: NAME for the seed 1, else NAME-seedSEED
}
for name, resolver in RESOLVERS.items():
    OmegaConf.register_new_resolver(name, resolver, replace=True)
STORE, RUN = ConfigStore.instance(), OmegaConf.create(defaults(RunConfig))
for open_block in (RUN.trainer, RUN.vectors.sets):  # their keys are checked with their values
    open_block._set_flag("struct", False)
STORE.store("schema", node=RUN)
STORE.store("wandb", node=defaults(WandbConfig), group="schema/logger", package="logger.wandb")
for kind, source in schema.SOURCES.items():
    STORE.store(kind, node=defaults(source), group="schema/bilm", package="bilm")
console.EXPLAINERS.append(messages.explain)
