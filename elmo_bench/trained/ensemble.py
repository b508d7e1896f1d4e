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
from operator import itemgetter
from typing import Any, Protocol

import pytorch_lightning as pl
import torch

from elmo_bench.configuration.schema import RunConfig
from elmo_bench.devices.ranks import Environment
from elmo_bench.identity.makers import Makers
from elmo_bench.metrics.items import Items
from elmo_bench.records import items
from elmo_bench.records.store import Record
from elmo_bench.running.callbacks import progress, quiet
from elmo_bench.running.fit import device_of
from elmo_bench.running.module import BenchModule, row_order
from elmo_bench.running.run import Prepared, prepare
from elmo_bench.system import machine
from elmo_bench.system.errors import UserError
from elmo_bench.system.exhaustion import saying
from elmo_bench.system.storage.integrity import load_checkpoint
from elmo_bench.task import Batch, Head, Prediction, Row
from elmo_bench.trained.ensemble_store import KEPT, Member

AGAIN = "train the run again with force=true"


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


def make(run: RunConfig, found: Sequence[Member]) -> tuple[Record, dict[str, Items]]:
    """Scores an ensemble on dev and test; returns its record and its items, unwritten.

    Args:
        run: the configuration of any member.
        found: the members.

    Raises:
        UserError: a checkpoint that is damaged or of another model; missing or malformed data.
    """
    quiet()
    prepared = prepare(run, Makers.of(run).make())
    ours = task_ensemble(run.task.reader["_target_"])
    opinions = [_opinions(run, prepared, ours, member) for member in found]
    scored, metrics = {}, {}
    for split in items.SPLITS:
        rows: Any = list(prepared.data.splits[split])
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
    _load(prepared.module, member)
    return {split: _of_split(run, prepared, ours, split) for split in items.SPLITS}


def _load(module: BenchModule, member: Member) -> None:
    """Gives the module the weights of a member. Raises `UserError` if the checkpoint is not of this model."""
    saved = load_checkpoint(member.checkpoint, AGAIN)
    vocabularies = {name: vocabulary.state() for name, vocabulary in module.vocabularies.items()}
    for key, value in (("vocabularies", vocabularies), ("bilm_sha256", module.bilm_sha256)):
        if saved.get(key) != value:
            what = "another biLM than the one here" if key == "bilm_sha256" else "other vocabularies than the data give"
            raise UserError(f"was trained with {what}; {AGAIN}", member.checkpoint)
    try:
        module.load_state_dict(saved["state_dict"])
    except RuntimeError as error:
        raise UserError(f"does not fit its model: {str(error).splitlines()[-1]}; {AGAIN}", member.checkpoint) from error


def _of_split(run: RunConfig, prepared: Prepared, ours: Ensemble, split: str) -> list[Any]:
    """The opinions of the member whose weights are loaded, in the order of a split's rows."""
    listener, bar = Listener(prepared.module, ours), progress(run.trainer.progress)
    trainer = pl.Trainer(
        accelerator=run.trainer.accelerator,
        devices=1,
        precision=run.trainer.precision,  # type: ignore[arg-type]
        logger=False,
        enable_progress_bar=bool(bar),
        enable_checkpointing=False,
        enable_model_summary=False,
        callbacks=bar,
        plugins=[Environment()],
    )
    score = trainer.validate if split == "dev" else trainer.test
    with saying(prepared.module.doing, "lower task.batch.batch_size"):
        score(listener, datamodule=prepared.data, verbose=False)
    order = row_order(trainer.val_dataloaders if split == "dev" else trainer.test_dataloaders).tolist()
    by_row = sorted(zip(order, listener.opinions, strict=True), key=itemgetter(0))
    return [opinion for _, opinion in by_row]


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
