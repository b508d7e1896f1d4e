"""A trained module applied to new rows: its predictions, and a readable form of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytorch_lightning as pl
import torch

from elmo_bench.running.module import BenchModule
from elmo_bench.task import Batch, Describes, Prediction


class Answer(NamedTuple):
    """The model's answer for one row."""

    prediction: Prediction  # in the form of the metric and the official scorer
    described: dict[str, Any]  # in readable form


class Answers(pl.LightningModule):
    """Gives an `Answer` for each row of a batch to `Trainer.predict`."""

    def __init__(self, module: BenchModule):
        super().__init__()
        self.module = module

    def predict_step(self, batch: Batch, index: int = 0) -> list[Answer]:
        scores = self.module(batch)
        predictions = self.module.head.decode(scores, batch)
        return list(map(Answer, predictions, self._describe(predictions, scores, batch)))

    def _describe(self, predictions: list[Prediction], scores: Any, batch: Batch) -> list[dict[str, Any]]:
        if isinstance(self.module.head, Describes):
            return self.module.head.describe(predictions, scores, batch)
        return [one if isinstance(one, dict) else {"prediction": one} for one in predictions]

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return self.module.transfer_batch_to_device(batch, device, dataloader_idx)
