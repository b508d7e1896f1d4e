"""Groups of recorded runs that differ only in their seed, each with a distinct name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from elmo_bench.configuration import pages
from elmo_bench.records import run_names
from elmo_bench.records.store import Record, grouped
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text

BILM = "elmo_bench.layers.bilm.BilmLayers"  # the source of layers that is ELMo


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
    def sha256(self) -> str | None:
        """`weights` of its runs."""
        return weights(self.first)

    @property
    def data(self) -> str | None:
        return data(self.first)


def has_elmo(record: Record) -> bool:
    """Whether ELMo is part of the model."""
    return record["config"]["elmo"]["where"] != "none"


def weights(record: Record) -> str | None:
    """The digest of the biLM's weights; None for a baseline.

    Of a biLM that a run makes itself, as at mini, it is the digest of the recipe, as in the run's identity: on another
    processor the same training rounds otherwise, and runs on both are seeds of one arm.
    """
    recipe = record["settings"].get("bilm", {}).get("recipe")
    if recipe is None:
        return record["bilm"]["sha256"]
    return hashlib.sha256(json_text.dumps(recipe, sort_keys=True).encode()).hexdigest()


def data(record: Record) -> str | None:
    """The digest of the data; None in a record without one."""
    return record.get("data_sha256")


def fraction(record: Record) -> float:
    """The share of the training data that the run was trained on."""
    return record["config"].get("fraction", 1.0)


def vectors(record: Record) -> str:
    """The name of the static word vectors; "random" for those that are trained with the model alone."""
    if "vectors" in record["variant"]:
        return record["variant"]["vectors"]
    block: Any = record["config"].get("vectors") or {"source": "page"}
    sets = block["sets"].values() if block["source"] == "sets" else ()
    return "+".join(each["name"] for each in sets) or ("random" if block["source"] == "page" else block["source"])


def from_bilm(record: Record) -> bool:
    """Whether its layers, if it has any, are those of a biLM, and not of another source such as a Transformer."""
    return not has_elmo(record) or (record["config"].get("bilm") or {}).get("_target_", BILM) == BILM


def has_seen(record: Record) -> bool:
    """Whether its source of layers was trained on data of its task, as the page of the source says (`bilm.seen`)."""
    return has_elmo(record) and record["task"] in (record["config"].get("bilm") or {}).get("seen", ())


def is_pair(record: Record) -> bool:
    """Whether it is of the paper's comparison: an arm of its scale's pair, as its page has it but for the vectors."""
    if not from_bilm(record):
        return False
    bare = record["variant"].get("vectors") == "random"
    return record["arm"] in pages.pair(record["scale"]) and not record["variant"].keys() - {"vectors"} and not bare


def is_control(record: Record) -> bool:
    """Whether it is of the same comparison without pre-trained word vectors."""
    plain = from_bilm(record) and record["arm"] in ("baseline", "elmo") and not record["variant"].keys() - {"vectors"}
    return plain and not is_pair(record) and vectors(record) == "random"


def in_groups(records: Iterable[Record]) -> list[Group]:
    """The groups of one task at one scale; runs with another biLM or other data are in another group.

    If groups would have the same name, it includes how they differ.

    Raises:
        UserError: runs of one group have different metrics or layers: one of their records is wrong.
    """
    members = [each for group in grouped(records).values() for each in _alike(group)]
    same: dict[tuple, list[list[Record]]] = {}
    for group in members:
        same.setdefault((run_names.arm_of(group[0]), group[0]["bilm"]["name"]), []).append(group)
    named = []
    for (name, _), groups in same.items():
        for group, settings, files in zip(groups, distinctions(groups), _files(groups), strict=True):
            words = in_words(settings)
            unsaid = [file for file in files if file.rpartition(" ")[2] not in "; ".join(words)]
            named.append(Group(group, "; ".join([name, *words, *unsaid])))
    return named


def _alike(group: list[Record]) -> list[list[Record]]:
    """The runs of a group, apart by biLM and data."""
    parts: dict[tuple, list[Record]] = {}
    for record in group:
        parts.setdefault((str(weights(record)), str(data(record))), []).append(record)
    for part in parts.values():
        _check(part)
    return [parts[key] for key in sorted(parts)]


def _check(group: list[Record]) -> None:
    """Raises `UserError` if runs that a table averages do not have the same metrics and layers."""
    for record in group[1:]:
        if _columns(record) != _columns(group[0]):
            raise UserError(
                f"the records {group[0]['run']} and {record['run']} ({record['task']}, scale {record['scale']}) differ "
                "only in their seed, but have other metrics or layers; restore or remove the wrong one"
            )


def _columns(record: Record) -> tuple:
    """The names of the metrics, and how many layers are weighted at each place."""
    layers = {place: len(rows[0]) for place, rows in record["layer_weights"].items()}
    return layers, *({*record["metrics"][split]} for split in ("dev", "test"))


def _files(groups: Sequence[list[Record]]) -> list[list[str]]:
    """How the files of groups of one arm differ: "biLM 1a2b3c4d", "data 5e6f7a8b"."""
    digests = {
        "biLM": [weights(group[0]) for group in groups],
        "data": [data(group[0]) for group in groups],
    }
    told = {kind: values for kind, values in digests.items() if len(set(values)) > 1}
    return [[f"{kind} {short(values[i])}" for kind, values in told.items()] for i in range(len(groups))]


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
    shown = [f"{key}={short(value)}" for key, value in list(settings.items())[:most]]
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


def short(value: Any) -> str:
    """A value in words, a sha256 cut to eight digits."""
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    text = text.removeprefix("sha256:")
    is_digest = len(text) == 64 and set(text) <= set("0123456789abcdef")
    return text[:8] if is_digest else text
