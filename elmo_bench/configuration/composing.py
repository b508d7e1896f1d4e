"""Composing the configurations of many runs: a choice of pages that runs share is composed once."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from omegaconf import DictConfig

from elmo_bench.configuration import pages
from elmo_bench.system import places


class Composer:
    """Does what `pages.compose` does, several times as fast for runs that share their choices of pages.

    Hydra composes each choice of pages once; of it, every run gets a copy, to which Hydra applies the run's values.
    """

    def __init__(self) -> None:
        self.chosen: dict[tuple[str, ...], DictConfig] = {}
        self.parsed: dict[str, Override] = {}
        self.parser = OverridesParser.create()

    def compose(self, run: Sequence[str]) -> DictConfig:
        """The configuration of a run, given its overrides. Raises the errors of `pages.compose`."""
        overrides = [self._parse(text) for text in run]
        values = [override for override in overrides if _is_value(override)]
        choices = tuple(text for text, override in zip(run, overrides, strict=True) if not _is_value(override))
        if choices not in self.chosen:
            self.chosen[choices] = pages.compose(choices)
        cfg = copy.deepcopy(self.chosen[choices])
        ConfigLoaderImpl._apply_overrides_to_config(values, cfg)
        return cfg

    def _parse(self, text: str) -> Override:
        if text not in self.parsed:
            self.parsed[text] = self.parser.parse_overrides([text])[0]
        return self.parsed[text]


def compose_all(runs: Iterable[Sequence[str]]) -> list[DictConfig]:
    """The configurations of several runs, given their overrides.

    Raises:
        The errors of `pages.compose`, for the first run that has one.
    """
    composer = Composer()
    return [composer.compose(run) for run in runs]


def _is_value(override: Override) -> bool:
    """Whether an override sets a key of the composed pages and neither chooses a page nor concerns Hydra itself."""
    key = override.key_or_group
    if override.is_sweep_override() or override.package is not None or key.partition(".")[0] == "hydra":
        return False
    return isinstance(override.value(), dict) or "." in key or not (places.CONF / key).is_dir()
