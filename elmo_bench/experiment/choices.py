"""The values that a run's switches may have, checked before anything is read or built (nothing heavy is imported)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_bench.system.errors import UserError

ELMO = {
    "where": ("none", "input", "output", "both"),
    "words": ("beside", "instead"),
    "finetune": ("none", "joint"),
    "layer_norm": (False, "off", "paper", "token"),
    "gamma": (True, False),
}
STATES = ("zero", "warm", "carry")
KEYS = {  # of the blocks that this code reads: an added key would do nothing, and be part of the run's identity
    "elmo": {*ELMO, "layers", "lambda", "dropout", "projection"},
    "bilm": {"name", "options", "weights", "state", "tuned", "cache", "source", "prepare"},
    "vectors": {
        *("source", "text", "root", "size", "lower", "window", "negative", "sample", "alpha", "min_count", "epochs"),
        *("passes", "seed"),
    },
    "trainer": {"accelerator", "devices", "threads", "progress", "precision", "limit_batches"},
}


def check_run(cfg: Mapping[str, Any]) -> None:
    """Raises `UserError` where a value of a run's configuration cannot be meant."""
    for block, known in KEYS.items():
        for key in cfg[block]:
            if key not in known:
                raise UserError(f"{block}.{key}: there is no such key; there is {', '.join(sorted(known))}")
    whole(cfg["seed"], "seed", least=0)
    for key in ("force", "debug"):
        one_of(cfg[key], key, (True, False))
    if cfg["trainer"]["threads"] is not None:
        whole(cfg["trainer"]["threads"], "trainer.threads", least=1)
    check_vectors(cfg["vectors"], cfg["task"])
    check_elmo(cfg["elmo"], cfg["bilm"])


def check_elmo(elmo: Mapping[str, Any], bilm: Mapping[str, Any]) -> None:
    """Raises `UserError` where the `elmo:` and `bilm:` blocks of a configuration cannot be meant."""
    for key, choices in ELMO.items():
        one_of(elmo[key], f"elmo.{key}", choices)
    number(elmo["dropout"], "elmo.dropout", least=0, below=1)
    number(elmo["lambda"], "elmo.lambda", least=0)
    if elmo["projection"] is not None:
        whole(elmo["projection"], "elmo.projection", least=1)
    if elmo["where"] == "none":
        return
    if bilm["options"] is None or bilm["weights"] is None:
        raise UserError(
            f"bilm={bilm['name']} names no files: give bilm.options=FILE bilm.weights=FILE, or set elmo.where=none"
        )
    one_of(bilm["state"], "bilm.state", STATES)


def check_vectors(vectors: Mapping[str, Any], task: Mapping[str, Any]) -> None:
    """Raises `UserError` where the `vectors:` block of a configuration cannot be meant."""
    one_of(vectors["source"], "vectors.source", ("page", "text"))
    if vectors["source"] == "page":
        return
    words = task.get("words")
    if words is None or "size" not in words:
        raise UserError(f"vectors=text: the page of task={task['name']} has no word vectors with a size")
    if words.get("path") is not None:
        raise UserError("vectors=text and task.words.path: vectors from the text or from a file, not both")
    for key in ("size", "window", "negative", "min_count", "epochs"):
        whole(vectors[key], f"vectors.{key}", least=1)
    whole(vectors["seed"], "vectors.seed", least=0)
    for key in ("sample", "alpha"):
        number(vectors[key], f"vectors.{key}", least=0)


def one_of(value: Any, name: str, choices: tuple) -> None:
    """Raises `UserError` for any other value (1 is not true)."""
    if not any(value == choice and type(value) is type(choice) for choice in choices):
        raise UserError(f"{name}={show(value)}: there is {', '.join(map(show, choices))}")


def whole(value: Any, name: str, least: int, most: int = 2**31 - 1) -> None:
    """Raises `UserError` unless the value is a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise UserError(f"{name}={show(value)}: a whole number from {least} to {most} is needed")


def number(value: Any, name: str, least: float, below: float = float("inf")) -> None:
    """Raises `UserError` unless the value is a number, at least `least` and smaller than `below`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value < below:
        bound = "" if below == float("inf") else f" and below {below}"
        raise UserError(f"{name}={show(value)}: a number of {least} or more{bound} is needed")


def show(value: Any) -> str:
    """As it is written in a configuration."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
