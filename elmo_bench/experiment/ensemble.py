"""A seed ensemble: the recorded runs of an arm, which differ only in their seed, as one model.

Each run's checkpoint scores dev and test; the module `ensemble` of a task says how the scores become one answer for a
row. It has two functions and METHOD, a few words: `opinions(head, scores, batch)` gives what one member makes of each
row of a batch, and `agreed(members, head, rows)` the answers, from the opinions of each member on all rows. A task
without such a module votes: the answer of most members, and of equals that of the first.
"""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pytorch_lightning as pl
import torch
from omegaconf import DictConfig

from elmo_bench.configuration import schema
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.experiment import items
from elmo_bench.experiment.callbacks import progress, quiet
from elmo_bench.experiment.fit import device_of
from elmo_bench.experiment.launch import finished
from elmo_bench.experiment.makers import Makers
from elmo_bench.experiment.module import BenchModule, row_order
from elmo_bench.experiment.run import Prepared, prepare
from elmo_bench.experiment.store import Record, dumps
from elmo_bench.metrics.items import Items
from elmo_bench.system import machine
from elmo_bench.system.errors import UserError
from elmo_bench.system.exhaustion import saying
from elmo_bench.system.files import write_bytes
from elmo_bench.system.hashing import fingerprint
from elmo_bench.system.integrity import load_checkpoint, sealed
from elmo_bench.task import Batch, Head, Prediction, Row

KEPT = ("task", "scale", "arm", "variant", "version", "group", "bilm", "data_sha256")  # of the members' records


class Ensemble(Protocol):
    """A task's module `ensemble`."""

    METHOD: str

    def opinions(self, head: Any, scores: Any, batch: Batch) -> list[Any]: ...

    def agreed(self, members: Sequence[Sequence[Any]], head: Any, rows: Sequence[Row]) -> list[Prediction]: ...


class Votes:
    """The answer of most members, for a task that says nothing else."""

    METHOD = "votes"

    def opinions(self, head: Head, scores: Any, batch: Batch) -> list[Prediction]:
        return head.decode(scores, batch)

    def agreed(self, members: Sequence[Sequence[Prediction]], head: Head, rows: Sequence[Row]) -> list[Prediction]:
        """The most frequent answer of each row."""
        texts = [[json.dumps(answer, sort_keys=True) for answer in member] for member in members]
        return [json.loads(Counter(answers).most_common(1)[0][0]) for answers in zip(*texts, strict=True)]


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
    records = [finished(cfg) for cfg in cfgs]
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


def _train(seeds: Sequence[int], command: str) -> str:
    named = ", ".join(map(str, seeds))
    several = "-m " if len(seeds) > 1 else ""
    return f"seed {named}; train it with: elmo-bench train {several}{command} seed={named.replace(' ', '')}"


def make(cfgs: Sequence[DictConfig], found: Sequence[Member]) -> tuple[Record, dict[str, Items]]:
    """Scores an ensemble on dev and test; returns its record and its items, unwritten.

    Raises:
        UserError: a checkpoint that is damaged or of another model; missing or malformed data.
    """
    quiet()
    run = schema.typed(cfgs[0])
    prepared = prepare(run, Makers.of(run).make())
    ours = task_ensemble(run.task.reader["_target_"])
    opinions = [_opinions(run, prepared, ours, member) for member in found]
    scored, metrics = {}, {}
    for split in items.SPLITS:
        rows = list(prepared.data.splits[split])
        metric = prepared.module.make_metric()
        metric.update(ours.agreed([each[split] for each in opinions], prepared.module.head, rows), rows)
        scored[split], metrics[split] = metric.items(), metric.compute()
    circumstances = machine.circumstances(device_of(run.trainer.accelerator))
    return _record([member.record for member in found], metrics, ours.METHOD) | circumstances, scored


def task_ensemble(reader: str) -> Ensemble:
    """The module `ensemble` beside a task's reader, or votes.

    Args:
        reader: the dotted name of the reader's class.
    """
    name = reader.rsplit(".", 2)[0] + ".ensemble"
    there = "." in reader.rsplit(".", 1)[0] and importlib.util.find_spec(name) is not None
    return import_module(name) if there else Votes()  # type: ignore[return-value]


def _opinions(run: RunConfig, prepared: Prepared, ours: Ensemble, member: Member) -> dict[str, list[Any]]:
    """What one member makes of the rows of dev and test, in the order of the rows."""
    saved = load_checkpoint(member.checkpoint, "train the run again with force=true")
    state = {name: vocabulary.state() for name, vocabulary in prepared.module.vocabularies.items()}
    if saved.get("vocabularies") != state:
        raise UserError(
            "has another vocabulary than the data give; train the run again with force=true", member.checkpoint
        )
    try:
        prepared.module.load_state_dict(saved["state_dict"])
    except RuntimeError as error:
        raise UserError(f"does not fit its model: {str(error).splitlines()[-1]}", member.checkpoint) from error
    found = {}
    for split in items.SPLITS:
        listener, bar = Listener(prepared.module, ours), progress(run.trainer.progress)
        trainer = pl.Trainer(
            accelerator=run.trainer.accelerator, devices=1, precision=run.trainer.precision, logger=False,
            enable_progress_bar=bool(bar), enable_checkpointing=False, enable_model_summary=False, callbacks=bar,
        )  # fmt: skip
        apply, loaders = (trainer.validate, "val_dataloaders") if split == "dev" else (trainer.test, "test_dataloaders")
        with saying(prepared.module.doing, "lower task.batch.batch_size"):
            apply(listener, datamodule=prepared.data, verbose=False)
        by_row = zip(row_order(getattr(trainer, loaders)).tolist(), listener.opinions, strict=True)
        found[split] = [opinion for _, opinion in sorted(by_row, key=lambda pair: pair[0])]
    return found


class Listener(pl.LightningModule):
    """Collects the opinions of a member, batch after batch."""

    def __init__(self, module: BenchModule, ours: Ensemble):
        super().__init__()
        self.module, self.ours = module, ours
        self.opinions: list[Any] = []

    def validation_step(self, batch: Batch, index: int) -> None:
        self.opinions += self.ours.opinions(self.module.head, self.module(batch), batch)

    test_step = validation_step

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return self.module.transfer_batch_to_device(batch, device, dataloader_idx)


def _record(found: Sequence[Record], metrics: dict[str, dict[str, float]], method: str) -> Record:
    return {
        **{key: found[0].get(key) for key in KEPT},
        "method": method,
        "seeds": [record["seed"] for record in found],
        "runs": [record["run"] for record in found],
        "metrics": metrics,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def read(path: Path) -> Record:
    """The record of an ensemble. Raises `UserError` if it is damaged, or something else."""
    record = read_sealed(path, "ensemble", AGAIN)
    if missing := [key for key in (*KEPT, "method", "seeds", "runs", "metrics") if key not in record]:
        raise UserError(f"not the record of an ensemble: it lacks {', '.join(missing)}; {AGAIN}", path)
    return record


def write(path: Path, record: Record, scored: dict[str, Items]) -> None:
    """Writes the record of an ensemble after its items, each atomically."""
    write_bytes(items.path_of(path), items.packed(scored))
    write_bytes(path, sealed(dumps(record)).encode())
