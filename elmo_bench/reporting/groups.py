"""Groups of recorded runs that differ only in their seed, each with a distinct name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from elmo_bench.configuration import pages
from elmo_bench.experiment import run_names
from elmo_bench.experiment.store import Record, grouped

PAGES = {"baseline": (False, False), "text": (False, True), "elmo": (True, False), "elmo+text": (True, True)}


class Group(NamedTuple):
    """Runs that differ only in their seed, sorted by seed, and the name of their row."""

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
    """The version of the task's computation."""
    return record["version"]


def newest_version(records: Sequence[Record]) -> int:
    """The newest version of a task: that of its page, or of a later record; 0 without records."""
    return max([pages.version(records[0]["task"]), *map(version, records)]) if records else 0


def arm_page(record: Record) -> tuple[bool, bool] | None:
    """For a run of the main comparison: whether it has ELMo, and vectors of the biLM's text. None for other runs."""
    return None if record["variant"] else PAGES.get(record["arm"])


def in_groups(records: Iterable[Record]) -> list[Group]:
    """The groups of one task at one scale; runs of different versions of the task are never in one group.

    If groups would have the same name, it includes how they differ; the name also marks versions before the newest.
    """
    members = [each for group in grouped(records).values() for each in _by_version(group)]
    newest = newest_version([group[0] for group in members])
    same: dict[tuple, list[list[Record]]] = {}
    for group in members:
        same.setdefault((run_names.arm_of(group[0]), group[0]["bilm"]["name"], version(group[0])), []).append(group)
    named = []
    for (name, _, number), groups in same.items():
        older = f", older version {number}" if number < newest else ""
        for group, settings in zip(groups, distinctions(groups), strict=True):
            named.append(Group(group, "; ".join([name + older, *in_words(settings)])))
    return named


def _by_version(group: list[Record]) -> list[list[Record]]:
    numbers = sorted({version(record) for record in group})
    return [[record for record in group if version(record) == number] for number in numbers]


def distinctions(groups: Sequence[list[Record]]) -> list[dict[str, Any]]:
    """The settings in which groups of one arm differ: for each group its own values, by dotted key.

    The seed and keys with the same value in all groups are left out. The value is None for a group without the key.
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
    """Settings as key=value, a sha256 cut to eight digits; after `most` of them, only the number of the rest."""
    shown = [f"{key}={_short(value)}" for key, value in list(settings.items())[:most]]
    return shown + ([f"{len(settings) - most} more settings"] if len(settings) > most else [])


def _settings(record: Record) -> dict[str, Any]:
    return {key: value for key, value in flat(record["settings"]).items() if key != "seed"}


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings by dotted key."""
    by_key: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping) and value:
            by_key |= flat(value, f"{prefix}{key}.")
        else:
            by_key[f"{prefix}{key}"] = value
    return by_key


def _short(value: Any) -> str:
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    text = text.removeprefix("sha256:")
    is_digest = len(text) == 64 and set(text) <= set("0123456789abcdef")
    return text[:8] if is_digest else text
