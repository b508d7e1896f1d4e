"""The records of seed ensembles: results/ensembles/SCALE/TASK/ID.json, and their items beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from omegaconf import DictConfig

from elmo_bench.configuration import schema
from elmo_bench.identity.identity import Identity
from elmo_bench.metrics.items import Items
from elmo_bench.records import items, store
from elmo_bench.records.store import Record, dumps
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import write_bytes
from elmo_bench.system.storage.hashing import fingerprint
from elmo_bench.system.storage.integrity import read_sealed, sealed

AGAIN = "remove it, or make it again with `elmo-bench ensemble ... force=true`"
KEPT = ("task", "scale", "arm", "variant", "version", "group", "bilm", "data_sha256")  # of the members' records


class Member(NamedTuple):
    """A recorded run and its checkpoint."""

    record: Record
    checkpoint: Path


def place(results_root: str | Path, members: Sequence[Record]) -> Path:
    """The path of an ensemble's record; its name follows from those of its members."""
    folder = Path(results_root) / "ensembles" / members[0]["scale"] / members[0]["task"]
    return folder / f"{fingerprint(sorted(record['run'] for record in members))}.json"


def members(cfgs: Sequence[DictConfig], command: str) -> list[Member]:
    """The recorded runs of these configurations, which differ only in their seed.

    Args:
        command: the overrides that choose them besides the seed, for messages.

    Raises:
        UserError: a run has no record or no checkpoint (the command that makes them is named); runs on other data, or
            with another biLM or version of the task.
    """
    records = [_finished(cfg) for cfg in cfgs]
    if unrecorded := [cfg.seed for cfg, record in zip(cfgs, records, strict=True) if record is None]:
        raise UserError(f"no recorded run of {_train(unrecorded, command)}")
    found = [
        Member(record, Path(cfg.results_root) / record["checkpoint"])
        for cfg, record in zip(cfgs, records, strict=True)
        if record is not None
    ]
    if gone := [member.record["seed"] for member in found if not member.checkpoint.is_file()]:
        raise UserError(f"recorded, but without its checkpoint: {_train(gone, f'{command} force=true')}")
    for member in found[1:]:
        for key in KEPT:
            if member.record.get(key) != found[0].record.get(key):
                raise UserError(
                    f"the runs of seeds {found[0].record['seed']} and {member.record['seed']} differ in {key}"
                )
    return found


def _finished(cfg: DictConfig) -> Record | None:
    run = schema.typed(cfg)
    path = store.place(run.results_root, run.scale.name, run.task.name, Identity(run).run)
    return store.read(path) if path.is_file() else None


def _train(seeds: Sequence[int], command: str) -> str:
    named = ", ".join(map(str, seeds))
    several = "-m " if len(seeds) > 1 else ""
    return f"seed {named}; train it with: elmo-bench train {several}{command} seed={named.replace(' ', '')}"


def read(path: Path) -> Record:
    """The record of an ensemble. Raises `UserError` if it is damaged, or something else."""
    record = read_sealed(path, "ensemble", AGAIN)
    if missing := [key for key in (*KEPT, "method", "seeds", "runs", "metrics") if key not in record]:
        raise UserError(f"not the record of an ensemble: it lacks {', '.join(missing)}; {AGAIN}", path)
    return record


def write(path: Path, record: Record, scored: Mapping[str, Items]) -> None:
    """Writes the record of an ensemble after its items, each atomically."""
    write_bytes(items.path_of(path), items.packed(scored))
    write_bytes(path, sealed(dumps(record)).encode())
