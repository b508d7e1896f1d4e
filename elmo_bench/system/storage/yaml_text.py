"""Reading YAML like OmegaConf (no tags that run code, no repeated keys), within the limits of `limits`.

An alias costs the reader nothing, but OmegaConf copies its target: nine lines of aliases fill any memory. So the loader
counts the nodes of a document with all aliases expanded. Hydra uses the same loader.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import yaml
from omegaconf import DictConfig, OmegaConf, _utils
from omegaconf.errors import OmegaConfBaseException
from yaml.composer import Composer, ComposerError
from yaml.constructor import ConstructorError, SafeConstructor
from yaml.resolver import Resolver

from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.files import read_text

try:  # libyaml takes a tenth of the time; PyYAML may have been built without it
    from yaml.cyaml import CParser  # type: ignore[attr-defined]

    PARSERS: tuple[Any, ...] = (CParser,)
except ImportError:
    PARSERS = ()
BASE = _utils.get_yaml_loader()  # already has this parser if this module is imported again


class Loader(*(parser for parser in PARSERS if not issubclass(BASE, parser)), BASE):
    """OmegaConf's loader with libyaml, and limits on depth and on nodes with aliases expanded."""

    def __init__(self, stream: Any):
        super().__init__(stream)
        for part in (Composer, SafeConstructor, Resolver) if PARSERS else ():  # the parser needs no others
            part.__init__(self)
        self._depth = 0
        self._sizes: dict[Any, int] = {}  # of each complete node, with aliases expanded

    get_single_node, check_node, get_node = Composer.get_single_node, Composer.check_node, Composer.get_node

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        if self._depth > limits.LEVELS:  # before the composer, which recurs, goes down
            raise ComposerError(None, None, f"nested more than {limits.LEVELS} deep", event.start_mark)
        self._depth += 1
        node = super().compose_node(parent, index)
        self._depth -= 1
        if isinstance(event, yaml.AliasEvent):
            if node not in self._sizes:
                raise ComposerError(None, None, f"*{event.anchor} is inside its own target", event.start_mark)
            return node
        inner = () if isinstance(node, yaml.ScalarNode) else node.value
        if isinstance(node, yaml.MappingNode):
            inner = chain.from_iterable(inner)  # pairs
        self._sizes[node] = 1 + sum(map(self._sizes.__getitem__, inner))
        if self._sizes[node] > limits.NODES:
            problem = f"more than {limits.NODES:,} values, with aliases expanded"
            raise ComposerError(None, None, problem, event.start_mark)
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            value = super().construct_object(node, deep)
            if not isinstance(value, int) or value.bit_length() <= 64:
                return value
        except (ValueError, LookupError, AttributeError):  # of `!!bool x`, or of a number of 5,000 digits
            pass
        problem = f"{node.value[:40]} is not a valid {node.tag.rpartition(':')[2]}"
        raise ConstructorError(None, None, problem, node.start_mark)


_utils.get_yaml_loader = lambda: Loader  # for `OmegaConf.load`, which Hydra uses


def read(path: StrPath) -> DictConfig:
    """The keys and values of a YAML file, with unresolved interpolations."""
    text = read_text(path)
    if len(text) > limits.YAML:
        raise UserError(f"more than {limits.YAML >> 20} MiB of YAML; is this the right file?", path)
    try:
        made = yaml.load(text, Loader)
        if not isinstance(made, dict | None):
            raise UserError("expected YAML of the form `key: value`", path)
        return OmegaConf.create(made or {})
    except (yaml.YAMLError, OmegaConfBaseException) as error:
        mark = getattr(error, "problem_mark", None)
        why = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise UserError(f"not readable YAML ({why})", path, None if mark is None else mark.line + 1) from None
