"""From the `bilm:` block of a configuration to a source of layers, or its cache."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import COMMON, LayersConfig
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.layers.source import LayersSource
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal.console import choices

# Keys that say how its files are made: arguments only of a source that takes them.
MAKING = "like", "seed", "parent", "tuning"


def open_source(
    block: Any,
    device: str = "cpu",
    cache_root: str | PathLike[str] | None = None,
    cached: bool = False,
    check_sha256: str | None = None,
) -> LayersSource | ActivationCache:
    """Builds the source that a `bilm:` block names.

    Args:
        block: a mapping or a typed block: `_target_` is the dotted name of the source's class; keys not in `COMMON` are
            its arguments.
        device: where the source computes; a cache is not moved with the model.
        cache_root: contains the cache in its folder `activations`.
        cached: read the layers from a cache if the source is cacheable.
        check_sha256: the required digest of the source.
    """
    settings = block.plain() if isinstance(block, LayersConfig) else dict(block)
    arguments = own_arguments(settings)
    source = source_class(settings["_target_"])(**arguments)
    if check_sha256 is not None and source.sha256 != check_sha256:
        named = " ".join(f"bilm.{key}={value}" for key, value in arguments.items())
        raise UserError(f"{named}: not the weights that the model was trained with (sha256 {check_sha256})")
    if source.module is not None:
        source.module.to(device)
    if not cached or not source.cacheable or source.sha256 is None:
        return source
    if cache_root is None:
        raise ValueError("a cache needs cache_root")
    return ActivationCache(source, Path(cache_root) / "activations")


def source_class(target: Any) -> Any:
    """The class of a dotted name. Raises `UserError` if there is none."""
    try:
        cls = pkgutil.resolve_name(target)
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise UserError(f"bilm._target_={target}: there is no such class ({error})") from error
    if not inspect.isclass(cls):
        raise UserError(f"bilm._target_={target}: not a class")
    return cls


def own_arguments(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that a block gives its source, checked against the source's signature."""
    taken = inspect.signature(source_class(settings.get("_target_"))).parameters
    unused = {*COMMON, *(key for key in MAKING if key not in taken)}
    given = {key: value for key, value in settings.items() if key not in unused}
    for key in given:
        if key not in taken:
            raise UserError(f"bilm.{key}: {settings['_target_']} takes no such argument; {choices(key, list(taken))}")
    needed = [key for key, each in taken.items() if each.default is each.empty and each.kind != each.VAR_KEYWORD]
    if lacking := [key for key in needed if given.get(key) is None]:
        raise UserError(
            f"bilm={settings.get('name')} names no files: give {' '.join(f'bilm.{key}=...' for key in lacking)}, "
            "or set elmo.where=none"
        )
    return given
