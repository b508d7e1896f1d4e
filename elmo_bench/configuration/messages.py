"""One-line messages for the errors of Hydra and OmegaConf, with suggestions."""

from __future__ import annotations

import re
import shlex
import traceback
from collections.abc import Iterator
from typing import Any

from omegaconf import DictConfig, OmegaConf

from elmo_bench.system import places
from elmo_bench.system.console import choices
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import files

THEIRS = ("hydra", "omegaconf", "yaml")  # packages whose errors are explained


def explain(error: BaseException) -> str | None:
    """One line for an error of Hydra, OmegaConf or their YAML, with the alternatives; None for any other error."""
    text = str(error) or str(error.__cause__ or "")  # a ConfigCompositionException has no message of its own
    if error.__class__.__name__ == "OverrideParseException":
        override = str(getattr(error, "override", ""))
        key, equals, value = override.partition("=")
        if equals and not override.isascii():
            quoted = shlex.quote(f'{key}="{value}"')
            return f"{override}: a value with letters outside ASCII needs double quotes: {quoted}"
        return f"{override}: {QUOTE if equals else 'arguments are written key=value, without spaces'}"
    if several := re.match(r"Ambiguous value for argument '(.*)'", text):
        key, _, values = several[1].partition("=")
        one = shlex.quote(f"{key}=[{values}]")
        return f"{several[1]}: several values are a sweep, for elmo-bench train -m; a list needs brackets: {one}"
    if several := re.match(r"Multiple values for (\w+)\.", text):
        return f"+{several[1]}=...: leave out the plus, {several[1]}=NAME"
    if known := next((message for part, message in MESSAGES.items() if part in text), None):
        return known
    if isinstance(error, UnicodeDecodeError):  # Hydra's error does not name the file
        for path in [path for folder in places.conf() for path in sorted(folder.rglob("*.yaml"))]:
            try:
                files.read_text(path)
            except UserError as wrong:
                return str(wrong)
        return None
    frames = list(traceback.walk_tb(error.__traceback__))
    origin = str(frames[-1][0].f_globals.get("__name__")) if frames else ""  # the module that has raised it
    page_is_wrong = isinstance(error, ValueError | OSError) and origin.partition(".")[0] in THEIRS
    if error.__class__.__module__.partition(".")[0] not in THEIRS and not page_is_wrong:
        return None
    if "UserError raised while resolving interpolation" in text:
        return text.partition(": ")[2].partition("\n")[0]
    if error.__class__.__name__ == "InstantiationException":
        return f"{_line(error)} (debug=true shows where)"
    options = getattr(error, "options", None)  # of a MissingConfigException
    if options is not None and (missing := re.search(r"[Cc]ould not find '([^']+)'", text)):
        group, _, name = missing[1].rpartition("/")
        is_group = group[-1:] != "/" and any((folder / group).is_dir() for folder in places.conf())
        if not is_group and not group.startswith("hydra"):
            group, _, name = missing[1].partition("/")  # the value is a path
        what = "configuration file" if group.endswith("s") else group or "configuration"
        own = f"; {OF_FILES[group]}" if "/" in name and group in OF_FILES else ""
        return f"{group}={name}: there is no such {what}; {choices(name, options)}{own}"
    if wrong := re.search(r"Could not override '([^']+)'", text):
        return _unknown_key(wrong[1], error)
    if wrong := re.search(r"Key '([^']+)' is not in struct\s+full_key: (\S+)", text):
        return _unknown_key(wrong[2], error)
    if wrong := re.search(r"Could not override '?([^'\s]+)'?\.?\s*No match in the defaults list", text):
        return f"{wrong[1]}: there is no such group of configuration files"
    return _line(error)


MESSAGES = {  # by a part of Hydra's or OmegaConf's own message, which does not name the key
    "Config group override must be": (  # task=3, logger=null
        "a configuration file is chosen by its name; callbacks=none and logger=none choose nothing; elmo-bench train "
        "--help lists the files of every group"
    ),
    "Unexpected type for root: NoneType": (
        "the block of this key is null: choose the block first, as in logger=wandb logger.wandb.project=x"
    ),
    "Only one of --run, --multirun, --cfg": (
        "--cfg shows the configuration of one run: leave out -m, and type one value for each key"
    ),
    "does not support sweep type": (
        "interval(...) is for a search: add sweeper=optuna; a sweep takes range(...), choice(...) or values"
    ),
}
OF_FILES = {  # how to choose files, by the group that was given a path
    "bilm": "for files, bilm=custom bilm.options=FILE bilm.weights=FILE, or bilm=transformers bilm.path=FOLDER",
    "vectors": "for a file, vectors=page task.words.path=FILE",
}
QUOTE = (
    "the value has a character that Hydra reads as syntax or does not know; quote it for Hydra and the "
    "shell, as in 'key=\"Zoë, 3=x\"'"
)


def _unknown_key(key: str, error: BaseException) -> str:
    """The message for an unknown key: where such a key exists, or the keys of its block."""
    inner = error if hasattr(error, "parent_node") else error.__cause__
    node = getattr(inner, "parent_node", None)
    if not isinstance(node, DictConfig) or not len(node):
        first = "its block is null or empty: choose the block first, as in logger=wandb logger.wandb.project=x"
        return f"{key}: there is no such key, for {first}; see conf/train.yaml and --cfg job"
    name = key.rpartition(".")[2]
    of_data = key.startswith("task.data.")
    paths = _paths(OmegaConf.to_container(node._get_root()))  # type: ignore[arg-type]
    elsewhere = [path for path in paths if path.rpartition(".")[2] == name and not path.startswith("hydra.")]
    if elsewhere and not of_data:
        return f"{key}: there is no such key; did you mean {' or '.join(elsewhere)}?"
    listed = choices(name, [str(each) for each in node if each != "hydra"])
    taker = "reader" if of_data else "class" if "_target_" in node else None
    adds = f"; +{key}=... adds one that the {taker} takes" if taker and not listed.startswith("did") else ""
    return f"{key}: there is no such key; {listed}{adds}"


def _paths(node: Any, prefix: str = "") -> Iterator[str]:
    """The dotted keys of all values in nested blocks."""
    for key, inner in node.items() if isinstance(node, dict) else ():
        yield f"{prefix}{key}"
        yield from _paths(inner, f"{prefix}{key}.")


def _line(error: BaseException) -> str:
    return " ".join((str(error) or str(error.__cause__)).split())
