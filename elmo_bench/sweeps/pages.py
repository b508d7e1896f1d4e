"""Sweeps: the files in conf/sweep/, each a table or figure of the paper as the overrides of its runs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import Any

from omegaconf import DictConfig, OmegaConf

from elmo_bench.configuration import schema
from elmo_bench.configuration.composing import DATA, compose, parse
from elmo_bench.configuration.pages import read
from elmo_bench.configuration.tables import Setting, table
from elmo_bench.identity.arms import PLACES, matters, variant, vectors_of
from elmo_bench.identity.settings import flat, relative
from elmo_bench.records.frame import normal
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal import console


def varied(sweep: str) -> set[str]:
    """The keys that a sweep varies."""
    return {str(key).lstrip("+") for key in _params(sweep)}


def points(
    sweep: str, overrides: Sequence[str] = (), seeds: Iterable[int] | None = None, instead: Sequence[str] = ()
) -> list[list[str]]:
    """The overrides of every run of a sweep, in Hydra's order: the last parameter varies fastest; then `also`.

    Args:
        sweep: file in conf/sweep/.
        overrides: choose task and scale, to which the configuration file may refer.
        seeds: instead of those in the configuration file.
        instead: other values of keys that the configuration file varies, as "vectors=random,text".
    """
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

    params = _params(sweep)
    if any(OmegaConf.is_interpolation(params, str(key)) for key in params):
        params._set_parent(compose(overrides))  # its interpolations are those of the run
    values: dict[str, Any] = OmegaConf.to_container(params, resolve=True)  # type: ignore[assignment]
    for key, _, value in (one.lstrip("+").partition("=") for one in instead):
        values = {name: value if name.lstrip("+") == key else given for name, given in values.items()}
    if seeds is not None:
        values["seed"] = ",".join(map(str, seeds))
    seeded = {"seed": values["seed"]} if "seed" in values else {}
    products = [values, *({**each, **seeded} for each in table(sweep).also)]
    parsed = ([parse(f"{key}={value}") for key, value in product.items()] for product in products)
    batches = (BasicSweeper.split_arguments(each, max_batch_size=None) for each in parsed)
    return [point for (batch,) in batches for point in batch]


def settings(sweep: str, scale: str, instead: Sequence[str] = ()) -> list[Setting]:
    """The settings of the runs of a sweep, which differ in their seed alone, as its own file makes them."""
    return [normal(setting(point), scale) for point in points(sweep, [f"scale={scale}"], [1], instead)]


def seeds_of(point: Iterable[str]) -> list[int]:
    """The seed of a run, by its overrides; empty if they give none."""
    return [int(one.removeprefix("seed=")) for one in point if one.startswith("seed=")]


def is_file(key: str) -> bool:
    """Whether it says where data or word vectors lie: no part of a setting."""
    return key in DATA or re.fullmatch(r"vectors\.sets\..+\.words", key) is not None


def _params(sweep: str) -> DictConfig:
    """What a sweep's file varies, in Hydra's words. Raises `UserError` for a list, which Hydra takes for one value."""
    path = places.page("sweep", sweep)
    found = OmegaConf.select(read(path), "hydra.sweeper.params")
    for key in found or ():
        if OmegaConf.is_list(found._get_node(key)):
            written = ",".join(map(str, found[key]))
            raise UserError(f"{key}: several values are written as on the command line, {key}: {written}", path)
    return OmegaConf.create(OmegaConf.to_container(found) if found else {})  # type: ignore[return-value]


def setting(overrides: Iterable[str]) -> Setting:
    """The setting that overrides make as they are typed: "elmo={layers:last}" is `elmo.layers`. Seeds and paths of
    files are left out.

    A source of layers of one's own goes by its name, which is by default that of its folder.
    """
    found: Setting = {}
    for text in overrides:
        override = parse(text)
        found |= flat({override.key_or_group: relative(override.value())})
    if named := found.get("bilm.name") or found.get("bilm.path"):
        found["bilm"] = PurePath(str(named)).name
    return {key: found[key] for key in found if found[key] != {} and not (key in PLACES or is_file(key))}


def made(overrides: Sequence[str], task: str, scale: str) -> Setting:
    """The setting that overrides make of a run of a task: as typed, but with the names that its record will have.

    A choice of files goes by what it gives ("vectors=paper" by the names of the vectors), and what no result depends on
    is left out. Of a run that cannot be composed, as its task has no such key, it is the setting as typed.
    """
    typed = setting(overrides)
    try:
        run = schema.typed(compose([f"task={task}", f"scale={scale}", *overrides]))
        changes, vectors = variant(run), vectors_of(run)
    except Exception as error:
        if console.explain(error) is None:
            raise
        return typed
    said = {key: value for key, value in typed.items() if matters(run, key)}
    said |= {"vectors": vectors} if "vectors" in typed else {}
    return said | changes | ({"arm": "baseline"} if run.baseline else {})
