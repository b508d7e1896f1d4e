"""Sweeps: the pages of conf/sweep/, each a table or figure of the paper as the overrides of its runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from elmo_bench.configuration import pages
from elmo_bench.configuration.composing import by_hydra
from elmo_bench.system import places

BARE = "elmo={where:none}"  # the setting of a sweep that is its baseline


def with_arm(overrides: Sequence[str]) -> list[str]:
    """The overrides of a run of a sweep; a baseline also takes the page `arm=baseline`, if no other arm is named.

    For some tasks that page says more than that there is no ELMo, such as another dropout.
    """
    if BARE in overrides and not any(one.startswith("arm=") for one in overrides):
        return ["arm=baseline", *overrides]
    return list(overrides)


def varied(sweep: str) -> set[str]:
    """The keys that a sweep varies."""
    from omegaconf import OmegaConf

    page = pages.read(places.CONF / "sweep" / f"{sweep}.yaml")
    return {str(key).lstrip("+") for key in OmegaConf.select(page, "hydra.sweeper.params") or ()}


def points(
    sweep: str, overrides: Sequence[str] = (), seeds: Iterable[int] | None = None, instead: Sequence[str] = ()
) -> list[list[str]]:
    """The overrides of every run of a sweep, in Hydra's order: the last parameter varies fastest.

    Args:
        sweep: page of conf/sweep/.
        overrides: choose task and scale, to which the page may refer.
        seeds: instead of those on the page.
        instead: other values of keys that the page varies, as "arm=baseline,glove".
    """
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from omegaconf import OmegaConf

    cfg = by_hydra([f"+sweep={sweep}", *overrides], hydra=True)
    params: Any = OmegaConf.to_container(cfg.hydra.sweeper.params, resolve=True)
    for key, _, value in (one.lstrip("+").partition("=") for one in instead):
        params = {name: value if name.lstrip("+") == key else values for name, values in params.items()}
    if seeds is not None:
        params["seed"] = ",".join(map(str, seeds))
    parsed = OverridesParser.create().parse_overrides([f"{key}={value}" for key, value in params.items()])
    (batch,) = BasicSweeper.split_arguments(parsed, max_batch_size=None)
    return batch
