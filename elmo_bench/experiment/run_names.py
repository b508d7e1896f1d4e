"""What a run is called: its arm, and what it changes of the pages of its task, scale and biLM."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from elmo_bench.experiment import configuration
from elmo_bench.experiment.identity import differences, relative, relevant
from elmo_bench.experiment.records import Record
from elmo_bench.system import places

NAMED = ("seed", "bilm.name", "bilm.options", "bilm.weights")  # what a report has other columns for


def variant(cfg: DictConfig) -> dict[str, Any]:
    """What differs from the pages of the same task, scale and biLM: dotted keys and their values."""
    pages = [f"task={cfg.task.name}", f"scale={cfg.scale.name}"]
    if (places.CONF / "bilm" / f"{cfg.bilm.name}.yaml").is_file():
        pages.append(f"bilm={cfg.bilm.name}")
    if cfg.vectors.source != "page":
        pages.append(f"vectors={cfg.vectors.source}")
    mine, theirs = (
        relevant(OmegaConf.to_container(each, resolve=False))  # type: ignore[arg-type]  # a value shows once, where it is set
        for each in (cfg, configuration.compose(pages))
    )
    if cfg.elmo.where == "none":  # the other switches and the biLM are idle
        theirs["elmo"] = {"where": None}
        theirs.pop("bilm", None)
    changes = {key: relative(value) for key, value in differences(mine, theirs).items() if key not in NAMED}
    return changes | ({} if cfg.vectors.source == "page" else {"vectors": cfg.vectors.source})


def is_default(changes: dict[str, Any]) -> bool:
    """The task's page as it stands, or its baseline."""
    return changes in ({}, {"elmo.where": "none"})


def label(changes: dict[str, Any], where: str) -> str:
    """An arm in words: "baseline", "+ELMo (input)", "+ELMo (input; layers=last)"."""
    rest = [f"{key.removeprefix('elmo.')}={value}" for key, value in changes.items() if key != "elmo.where"]
    if where == "none":
        return "baseline" + (f" ({', '.join(rest)})" if rest else "")
    return f"+ELMo ({'; '.join([where, *([', '.join(rest)] if rest else [])])})"


def arm(record: Record) -> str:
    """The arm of a recorded run."""
    return label(record["variant"], record["config"]["elmo"]["where"])
