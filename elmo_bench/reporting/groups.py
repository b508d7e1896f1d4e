"""Recorded runs in groups that differ in their seed alone, each with a name that tells it from the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from elmo_bench.experiment import run_names
from elmo_bench.experiment.store import Record, grouped

PAGES = {"baseline": (False, False), "text": (False, True), "elmo": (True, False), "elmo+text": (True, True)}


class Group(NamedTuple):
    """Runs that differ in their seed alone, by seed, and the name of their row."""

    records: list[Record]
    name: str

    @property
    def first(self) -> Record:
        return self.records[0]

    @property
    def bilm(self) -> str | None:
        """The name of the biLM; None for a baseline."""
        return self.first["bilm"]["name"]

    @property
    def has_elmo(self) -> bool:
        return has_elmo(self.first)

    @property
    def version(self) -> int:
        return version(self.first)


def has_elmo(record: Record) -> bool:
    """Whether ELMo is part of the model."""
    return record["config"]["elmo"]["where"] != "none"


def version(record: Record) -> int:
    """Of the task's computation."""
    return record["version"]


def arm_page(record: Record) -> tuple[bool, bool] | None:
    """Whether it has ELMo and vectors of the biLM's text, for a run of the main comparison; None for any other."""
    return None if record["variant"] else PAGES.get(record["arm"])


def in_groups(records: Iterable[Record]) -> list[Group]:
    """The groups of one task at one scale; runs of different versions of the task never share one.

    Groups that would have the same name say in what they differ; those of a version before the newest say so.
    """
    members = [each for group in grouped(records).values() for each in _by_version(group)]
    newest = max((version(group[0]) for group in members), default=0)
    same: dict[tuple, list[list[Record]]] = {}
    for group in members:
        same.setdefault((run_names.arm_of(group[0]), group[0]["bilm"]["name"], version(group[0])), []).append(group)
    found = []
    for (name, _, number), groups in same.items():
        older = f", older version {number}" if number < newest else ""
        for group, settings in zip(groups, distinctions(groups), strict=True):
            found.append(Group(group, "; ".join([name + older, *in_words(settings)])))
    return found


def _by_version(group: list[Record]) -> list[list[Record]]:
    numbers = sorted({version(record) for record in group})
    return [[record for record in group if version(record) == number] for number in numbers]


def distinctions(groups: Sequence[list[Record]]) -> list[dict[str, Any]]:
    """The settings in which groups of one arm differ: for each group its own values, by dotted key.

    Keys that all groups have with the same value are left out, and so is the seed. A group without a key that another
    has shows None.
    """
    settings = [_settings(group[0]) for group in groups]
    keys = sorted({key for each in settings for key in each})
    told = [key for key in keys if any(each.get(key) != settings[0].get(key) for each in settings)]
    return [{key: each.get(key) for key in told} for each in settings]


def other_changes(record: Record, baseline: Record) -> dict[str, Any]:
    """The settings of a run that differ from its baseline's besides ELMo, the biLM and the word vectors' source."""
    ours, theirs = (_settings(each) for each in (record, baseline))
    keys = [key for key in sorted({*ours, *theirs}) if key.split(".")[0] not in ("elmo", "bilm", "vectors")]
    return {key: ours.get(key) for key in keys if ours.get(key) != theirs.get(key)}


def in_words(settings: Mapping[str, Any], most: int = 4) -> list[str]:
    """Settings as key=value, a sha256 by its first eight digits; how many more there are after the first few."""
    shown = [f"{key}={_short(value)}" for key, value in list(settings.items())[:most]]
    return shown + ([f"{len(settings) - most} more settings"] if len(settings) > most else [])


def _settings(record: Record) -> dict[str, Any]:
    return {key: value for key, value in flat(record["settings"]).items() if key != "seed"}


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted key."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def _short(value: Any) -> str:
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    text = text.removeprefix("sha256:")
    is_digest = len(text) == 64 and set(text) <= set("0123456789abcdef")
    return text[:8] if is_digest else text
