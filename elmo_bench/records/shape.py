"""The shape of a record on disk: its keys in their order, and the kind of value that each has."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

Kind = Any  # a type, a `Match`, a `Within`, [kind], {"key": kind, "key?": kind}, {str: kind}, or a tuple of such


class Match(NamedTuple):
    """A text of this pattern."""

    pattern: re.Pattern[str]


class Within(NamedTuple):
    """A number, whole or not, between two bounds."""

    kind: type
    low: float
    high: float = float("inf")


NAME = Match(re.compile(r"\w[\w.+-]{0,99}", re.ASCII))  # becomes a part of a path, and a mark on a page
ID = Match(re.compile(r"[0-9a-f]{16}"))
ARM = Match(re.compile("baseline|elmo"))
TEXT, FIGURE = (str, None), (float, {str: float}, None)  # a figure of the paper: one, or one for each metric
COUNT, POSITIVE = Within(int, 0), Within(int, 1)
NUMBER = Within(float, -1e12, 1e12)  # what can be drawn and squared
SCORES = {str: NUMBER}  # percent; a task of one's own may have a metric with other bounds
CONFIG = {  # what readers of records use of it
    "elmo": {"where": str},
    "scale": {"note": str, "bilm?": TEXT},
    "task": {
        "monitor": str,
        "paper?": ({"baseline?": FIGURE, "elmo?": FIGURE, "elmo_deviation?": (float, None)}, None),
        "batch?": {"batch_size?": (int, None)},
        "fit?": {"epochs?": (int, None)},
        "metric?": ({"_target_?": str}, None),
    },
    "fraction?": float,
    "trainer?": {"devices?": int},
    "bilm?": ({"_target_?": str, "seen?": [str]}, None),
    "vectors?": ({"source": str, "sets?": {str: {"name": str}}}, None),
}
RECORD = {
    "task": NAME, "scale": NAME, "arm": ARM, "variant": {"elmo?": (dict, None), "vectors?": str},
    "seed": COUNT, "version": COUNT, "run": ID, "group": ID,
    "metrics": {"dev": SCORES, "test": SCORES},
    "epoch": POSITIVE, "epochs": POSITIVE, "updates": COUNT, "selected_updates": COUNT,
    "layer_weights": {str: [[NUMBER]]}, "gamma": {str: [NUMBER]},
    "seconds": Within(float, 0), "device_seconds": float, "tokens_per_second": float,
    "preparing?": {str: Within(float, 0)},
    "peak_memory_mib?": COUNT, "device_peak_memory_mib?": COUNT, "parameters": COUNT,
    "bilm": {"name": TEXT, "sha256": TEXT, "parameters?": COUNT, "token_bytes?": COUNT},
    "data_sha256": str, "generated_sha256": {str: str},
    "machine": {"cpu": str, "cores": (int, None), "threads": int, "accelerator": str, "gpu?": str},
    "versions": {str: str}, "commit": TEXT, "dirty": (bool, None), "finished": str, "checkpoint": str,
    "history": {"epoch": [COUNT], "updates": [POSITIVE], str: [(NUMBER, None)]},
    "settings": {"seed": int, "scale": dict, "task": dict, "bilm?": dict},
    "config": CONFIG, "own_files?": {str: str},
    "word_vectors": (dict, None),
}  # fmt: skip
KEYS = tuple(key.removesuffix("?") for key in RECORD)
WORDS = {str: "text", int: "whole number", float: "number", bool: "truth value", dict: "object", list: "list"}


def fault(value: Any, kind: Kind, at: str = "") -> str | None:
    """The first part of a JSON value that is not of its kind, in words; None if all of it is.

    Args:
        kind: of an object the keys that it must have (`key?`: may have), and of any key (`str`); it may have others.
        at: dotted keys that lead to the value.
    """
    if isinstance(kind, tuple) and not isinstance(kind, Match | Within):
        faults = [fault(value, each, at) for each in kind]
        return None if None in faults else faults[0]
    if isinstance(kind, list | dict):
        return _of_container(value, kind, at)
    if isinstance(kind, Match):
        fits, words = isinstance(value, str) and kind.pattern.fullmatch(value), f"no {kind.pattern.pattern}"
    elif isinstance(kind, Within):
        fits, words = _is(value, kind.kind) and kind.low <= value <= kind.high, f"no {WORDS[kind.kind]} in bounds"
    else:
        fits, words = _is(value, kind), f"no {WORDS.get(kind, 'null')}"
    return None if fits else f"{at} is {words}"


def _is(value: Any, kind: type | None) -> bool:
    if kind is None or isinstance(value, bool):
        return value is None if kind is None else kind is bool
    return isinstance(value, int | float if kind is float else kind)


def _of_container(value: Any, kind: list | dict, at: str) -> str | None:
    if not isinstance(value, type(kind)):
        return f"{at} is no {WORDS[type(kind)]}"
    if isinstance(kind, list):
        parts = [(value[i], kind[0], f"{at}.{i}") for i in range(len(value))]
    else:
        named = {key.removesuffix("?"): each for key, each in kind.items() if isinstance(key, str)}
        if lacking := [key for key in kind if key not in value and isinstance(key, str) and not key.endswith("?")]:
            return f"{at or 'it'} lacks {lacking[0]}"
        kinds = {key: named.get(key, kind.get(str)) for key in value}
        parts = [(value[key], each, f"{at}.{key}".lstrip(".")) for key, each in kinds.items() if each is not None]
    return next(filter(None, (fault(*part) for part in parts)), None)
