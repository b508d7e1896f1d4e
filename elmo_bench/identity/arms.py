"""Arms (the named configurations of conf/arm/) and variants (what else a run changes)."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import RunConfig, TunedConfig
from elmo_bench.identity.identity import PLACES, differences, relative
from elmo_bench.identity.settings import relevant
from elmo_bench.system import places

# In other columns of a report.
NAMED = ("seed", "bilm._target_", "bilm.options", "bilm.weights", "bilm.path", "bilm.like")
# Where data and vectors lie; their content tells runs apart, by its digests in the settings.
LIES = re.compile(r"task\.reader\.data\.(root|folder|train|dev|test)|vectors\.sets\..+\.(table|words)")


def names() -> list[str]:
    """The names of all arms."""
    return sorted(path.stem for path in (places.CONF / "arm").glob("*.yaml"))


def placed(run: RunConfig) -> tuple[str, dict[str, Any]]:
    """The arm of a run, and its variant: what differs from that arm's page, as dotted keys and values.

    The arm is the one that the configuration names, unless switches on the command line (`elmo.where=none`) make the
    run closer to another arm. A run with ELMo never counts as one without, nor the other way round. Where a scale
    leaves the word vectors to the user (`asks_for_vectors`), they distinguish no arms.
    """
    free = {"vectors"} if run.scale.asks_for_vectors else set()

    def distance(arm: str) -> tuple[int, int]:
        changed = candidates[arm].keys() - free
        return len(changed & {"elmo.where", "vectors", "bilm"}), len(changed)

    candidates = {run.arm: variant(run, run.arm)}
    if distance(run.arm)[0]:
        alike = [arm for arm in [run.arm, *run.scale.pair, *names()] if _page_of(run, arm).baseline == run.baseline]
        candidates = {arm: variant(run, arm) for arm in alike or [run.arm]}
    nearest = min(candidates, key=distance)
    return nearest, candidates[nearest]


def variant(run: RunConfig, arm: str) -> dict[str, Any]:
    """What differs from the page of an arm at the same task, scale and biLM."""
    page = _page_of(run, arm)
    ours, theirs = (relative(relevant(each)) for each in (run, page))
    changes = differences(ours, theirs)
    if _vectors(run) != _vectors(page):
        changes = {key: value for key, value in changes.items() if not _decided_by_vectors(key, run)}
        changes["vectors"] = _vectors(run)
    if run.baseline != page.baseline:
        changes = {key: value for key, value in changes.items() if key.split(".")[0] not in ("elmo", "bilm")}
        changes["elmo.where"] = run.elmo.where
    elif not run.baseline and _own_arm(run) != _own_arm(page):
        changes["bilm"] = run.bilm.name
    return {key: value for key, value in changes.items() if key not in NAMED and not LIES.fullmatch(key)}


def _own_arm(run: RunConfig) -> str | None:
    """The arm that a kind of biLM has of its own: a control without training, a biLM tuned on the task's text."""
    if isinstance(run.bilm, TunedConfig):
        return "tuned"
    return "untrained" if run.bilm.name == "untrained" else None


def _page_of(run: RunConfig, arm: str) -> RunConfig:
    """What the page of an arm gives at the same task, scale and biLM."""
    roots = tuple(getattr(run, place) for place in PLACES)
    return _page(places.CONF, run.task.name, run.scale.name, arm, _bilm_page(run), roots)


def _vectors(run: RunConfig) -> str:
    """The name of its word vectors: of the choice, or of the file `task.words.path`; "random" if there are none."""
    path = (run.task.words or {}).get("path") if run.vectors.source == "page" else None
    if path is not None:
        return Path(path).name
    return "random" if run.vectors.source == "page" else run.vectors.label


def _decided_by_vectors(key: str, run: RunConfig) -> bool:
    """Whether the choice of word vectors decides a key."""
    trained = run.vectors.source == "random" and key == "task.words.trainable"
    return trained or key in ("task.words.size", "task.words.path") or key.split(".")[0] == "vectors"


def _bilm_page(run: RunConfig) -> str | None:
    """The page of the run's biLM, unless the arm's own page chooses one."""
    if run.baseline or _own_arm(run) or not (places.CONF / "bilm" / f"{run.bilm.name}.yaml").is_file():
        return None
    return run.bilm.name


@cache
def _page(conf: Path, task: str, scale: str, arm: str, bilm: str | None, roots: tuple[str | None, ...]) -> RunConfig:
    """The configuration that an arm's page gives, from the pages in `conf`."""
    chosen = [f"task={task}", f"scale={scale}", f"arm={arm}"]
    if bilm is not None and arm not in ("untrained", "tuned"):
        chosen.append(f"bilm={bilm}")
    cfg = pages.compose(chosen)
    for place, root in zip(PLACES, roots, strict=True):
        cfg[place] = root
    return schema.typed(cfg)
