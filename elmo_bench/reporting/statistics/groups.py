"""Groups of recorded runs that differ only in their seed, each with a distinct name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from elmo_bench.configuration.tables import Setting
from elmo_bench.identity.identity import flat
from elmo_bench.records.query import fits
from elmo_bench.records.record import Record
from elmo_bench.records.run_names import label_of
from elmo_bench.records.store import grouped
from elmo_bench.system.errors import UserError, as_typed


class Group(NamedTuple):
    """Runs that differ only in their seed, sorted by seed, and the name of their row.

    `among` are all runs of the task at the scale, whose seeds tell how far a score varies.
    """

    records: list[Record]
    name: str
    among: Sequence[Record] = ()

    @property
    def first(self) -> Record:
        return self.records[0]


def candidates(records: Iterable[Record], setting: Setting) -> list[Group]:
    """The groups of one task at one scale that have a setting and change nothing else (`query`)."""
    all_of = list(records)
    return in_groups((record for record in all_of if fits(record, setting)), all_of)


def of_setting_by_bilm(records: Sequence[Record], setting: Setting) -> list[Group]:
    """The runs of a setting, of most `weight` if there are several, then those of each other seed of its biLM."""
    of_each = [candidates(records, {**setting, **change}) for change in _bilm_seeds(records)]
    found = [max(groups, key=weight, default=None) for groups in of_each]
    return [each for each in found if each and found[0] and same_inputs(each.first, found[0].first)]


def compared(records: Sequence[Record], more: Setting, less: Setting) -> tuple[Group, Group] | None:
    """The runs of two settings of one task at one scale, on the same data.

    They also have the same biLM and the same files of word vectors, unless these are compared. Of several such pairs it
    is that of `weight_of_pair`.
    """
    named = {key.partition(".")[0] for key in (*more, *less)}
    pairs = [
        (one, other)
        for one, other in product(candidates(records, more), candidates(records, less))
        if same_inputs(one.first, other.first, "vectors" in named)
        and ("bilm" in named or len({one.first.weights, other.first.weights} - {None}) < 2)
    ]
    return max(pairs, key=weight_of_pair, default=None)


def of_bilms(records: Sequence[Record], more: Setting, less: Setting) -> list[tuple[Group, Group]]:
    """The pair of `compared`, then for each other seed of its biLM the pair of that."""
    found = [compared(records, {**more, **change}, {**less, **change}) for change in _bilm_seeds(records)]
    return [pair for pair in found if pair and found[0] and same_inputs(pair[0].first, found[0][0].first)]


def _bilm_seeds(records: Sequence[Record]) -> list[Setting]:
    """What changes the seed of the biLM: first nothing."""
    seeds = sorted({record.variant["bilm.seed"] for record in records if "bilm.seed" in record.variant})
    return [{}, *({"bilm.seed": seed} for seed in seeds)]


def machines(groups: Sequence[Group]) -> list[str]:
    """On what kinds of machine these groups were run, with which torch, if not all on one; at most one sentence."""
    kinds = [sorted({_kind(record) for record in group.records}) for group in groups]
    if len({kind for of_group in kinds for kind in of_group}) < 2:
        return []
    return ["runs on " + " against runs on ".join(map(" and ".join, kinds))]


def _kind(record: Record) -> str:
    return f"{record.machine.get('accelerator')}, torch {record.versions.get('torch', '').partition('+')[0]}"


def same_inputs(one: Record, other: Record, any_vectors: bool = False) -> bool:
    """Whether two runs have the same data and, unless they may have any, the same files of word vectors."""
    return one.data_sha256 == other.data_sha256 and (any_vectors or one.vector_files == other.vector_files)


def weight(group: Group) -> tuple[bool, bool, int, str, str]:
    """Sorts groups: last those on the scale's own data, then without a change, with most seeds, the newest."""
    newest = max(record.finished for record in group.records)
    return not group.first.own_data, not group.first.variant, len(group.records), newest, group.first.group


def weight_of_pair(pair: tuple[Group, Group]) -> tuple:
    """The same for the groups of a comparison, by the one with fewer seeds."""
    one, other = map(weight, pair)
    return (*min(one[:2], other[:2]), *sorted((one[2:], other[2:])))


def in_groups(records: Iterable[Record], among: Sequence[Record] | None = None) -> list[Group]:
    """The groups of one task at one scale; runs with another biLM or other data are in another group.

    If groups would have the same name, it includes how they differ.

    Args:
        records: of the groups.
        among: all of the task at the scale; None: there are no others.

    Raises:
        UserError: runs of one group have different metrics or layers: one of their records is wrong.
    """
    members = [each for group in grouped(records).values() for each in _alike(group)]
    others = [record for group in members for record in group] if among is None else among
    same: dict[tuple, list[list[Record]]] = {}
    for group in members:
        same.setdefault((label_of(group[0]), group[0].bilm_name), []).append(group)
    named = []
    for (name, _), groups in same.items():
        for group, settings, files in zip(groups, distinctions(groups), _files(groups), strict=True):
            words = in_words(settings)
            unsaid = [file for file in files if file.rpartition(" ")[2] not in "; ".join(words)]
            named.append(Group(group, "; ".join([name, *words, *unsaid]), others))
    return named


def _alike(group: list[Record]) -> list[list[Record]]:
    """The runs of a group, apart by biLM and data, with the same metrics and layers, as a table averages them."""
    parts: dict[tuple, list[Record]] = {}
    for record in group:
        part = parts.setdefault((str(record.weights), record.data_sha256), [])
        part.append(record)
        if _columns(record) != _columns(part[0]):
            raise UserError(
                f"the records {part[0].run} and {record.run} ({record.task}, scale {record.scale}) differ "
                "only in their seed, but have other metrics or layers; restore or remove the wrong one"
            )
    return [parts[key] for key in sorted(parts)]


def _columns(record: Record) -> tuple:
    """The names of the metrics, and how many layers are weighted at each place."""
    layers = {place: len(rows[0]) for place, rows in record.layer_weights.items()}
    return layers, *({*record.metrics[split]} for split in ("dev", "test"))


def _files(groups: Sequence[list[Record]]) -> list[list[str]]:
    """How the files of groups of one arm differ: "biLM 1a2b3c4d", "data 5e6f7a8b"."""
    digests = {
        "biLM": [group[0].weights for group in groups],
        "data": [group[0].data_sha256 for group in groups],
    }
    different = {kind: values for kind, values in digests.items() if len(set(values)) > 1}
    return [[f"{kind} {short(values[i])}" for kind, values in different.items()] for i in range(len(groups))]


def distinctions(groups: Sequence[list[Record]]) -> list[dict[str, Any]]:
    """The settings in which groups of one arm differ: for each group its own values, by dotted key.

    The seed and keys with the same value in all groups are left out. The value is None for a group without the key.
    """
    settings = [flat(group[0].settings) for group in groups]
    keys = sorted({key for each in settings for key in each} - {"seed"})
    different = [key for key in keys if any(each.get(key) != settings[0].get(key) for each in settings)]
    return [{key: each.get(key) for key in different} for each in settings]


def other_changes(record: Record, baseline: Record) -> dict[str, Any]:
    """The settings of a run that differ from its baseline's besides ELMo, the biLM and the word vectors' source."""
    ours, _ = distinctions([[record], [baseline]])
    return {key: value for key, value in ours.items() if key.split(".")[0] not in ("elmo", "bilm", "vectors")}


def in_words(settings: Mapping[str, Any], most: int = 4) -> list[str]:
    """Settings as key=value, a sha256 cut to eight digits; after `most` of them, only the number of the rest."""
    shown = [f"{key}={short(value)}" for key, value in list(settings.items())[:most]]
    return shown + ([f"{len(settings) - most} more settings"] if len(settings) > most else [])


def short(value: Any) -> str:
    """A value in words, a sha256 cut to eight digits."""
    text = as_typed(value).removeprefix("sha256:")
    is_digest = len(text) == 64 and set(text) <= set("0123456789abcdef")
    return text[:8] if is_digest else text
