"""The one query: which runs have given settings and, of what their task's configuration says, change nothing else.

Tables, findings, pictures, gains and the groups of W&B all find their runs by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from elmo_bench.configuration import pages, tables
from elmo_bench.configuration.tables import Setting
from elmo_bench.records.record import Started

ELMO = ("elmo", "bilm")  # blocks that a baseline does not have
CHOSEN = ("vectors", "bilm")  # what users choose for both arms
CONTEXT_FREE: Setting = {"elmo.layers": 0}  # the controls of conf/sweep/context.yaml
UNTRAINED: Setting = {"bilm": "untrained"}


def fits(run: Started, setting: Setting) -> bool:
    """Whether a run has a setting, and all else as its task's configuration has it.

    A setting has values of `arm` (+ELMo, unless it says baseline), `vectors`, `bilm` and other dotted keys.
    """
    wanted = normal(setting, run.scale)
    if run.arm != wanted.pop("arm", "elmo") or not run.variant.keys() <= wanted.keys():
        return False
    return all(value(run, key) == each for key, each in wanted.items())


def normal(setting: Setting, scale: str) -> Setting:
    """A setting without the keys that change nothing: `arm=elmo`, the scale's own biLM, ELMo's keys of a baseline."""
    baseline = setting.get("arm") == "baseline" or setting.get("elmo.where") == "none"
    kept = {key: each for key, each in setting.items() if not (baseline and key.partition(".")[0] in ELMO)}
    if kept.get("arm") == "elmo" or baseline:
        kept.pop("arm", None)
    if "bilm" in kept and kept["bilm"] == pages.written("scale", scale, "bilm"):
        del kept["bilm"]
    return kept | ({"arm": "baseline"} if baseline else {})


def in_words(setting: Setting) -> str:
    """A setting as the head of a column: "+ELMo" for the task's configuration itself, else what one types."""
    if setting == {"arm": "baseline"}:
        return "baseline"
    return " ".join(f"{key}={value}" for key, value in setting.items()) or "+ELMo"


def value(run: Started, key: str) -> Any:
    """The value that a run has of a dotted key; None if it has none."""
    if key in run.variant:
        return run.variant[key]
    if key == "vectors":
        return run.vectors
    if key == "fraction":
        return run.fraction
    found: Any = run.config
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def rest(run: Started, *settings: Setting) -> dict[str, Any]:
    """What a run changes of its task's configuration besides the keys of these settings."""
    named = {key for setting in settings for key in setting}
    return {key: each for key, each in run.variant.items() if key not in named}


def table_of(run: Started) -> str:
    """The name of the first table in which a run stands, Table 1 first; "others" for a run in none.

    Any source of layers and any word vectors may stand in Table 1, which compares two runs that have the same.
    """
    for sweep in tables.sweeps():
        if any(fits(run, setting) for setting in tables.table(sweep).settings):
            return sweep
    return "others" if rest(run, dict.fromkeys(CHOSEN)) else "table1"


def is_main(run: Started) -> bool:
    """Whether it is of the paper's comparison: its task's configuration, with any pre-trained word vectors and biLM."""
    return _is_plain(run) and run.variant.get("vectors") != "random"


def is_control(run: Started) -> bool:
    """Whether it is of the same comparison without pre-trained word vectors."""
    return _is_plain(run) and run.variant.get("vectors") == "random"


def is_context_control(run: Started) -> bool:
    """Whether it is a control of the paper's comparison: ELMo without context, or of an untrained biLM."""
    return fits(run, CONTEXT_FREE) or fits(run, UNTRAINED)


def _is_plain(run: Started) -> bool:
    pretrained = run.from_bilm and run.variant.get("bilm") not in ("untrained", "tuned")
    return pretrained and not rest(run, dict.fromkeys(CHOSEN))
