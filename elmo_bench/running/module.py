"""The only LightningModule: trains and scores a `Model`, which is a representation and a task's head."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from itertools import chain
from operator import itemgetter
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.precision import Precision
from pytorch_lightning.utilities.enums import GradClipAlgorithmType
from torch import Tensor, nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

from elmo_bench.embedding.representation import Model, Representation
from elmo_bench.metrics.items import Items
from elmo_bench.nn.numerics import Fault, Watch, all_finite, clip, gradient_norm
from elmo_bench.records.items import rehearse_metric
from elmo_bench.running.ranks import gathered
from elmo_bench.system import code
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.task import Batch, Head, Metric, Prediction
from elmo_bench.text.vocabulary import Vocabulary

LOWER = "lower task.optimizer.lr or task.clip.value"  # for numbers that are not finite
SMALLER = "lower task.batch.batch_size, or bound the tokens of a batch by task.batch.token_budget"  # for lack of memory


class BenchModule(Model, pl.LightningModule):
    """Trains and scores the model of any task; never subclassed.

    All randomness of an epoch is determined by (seed, epoch), and checkpoints are written only between epochs, so a
    resumed run gives exactly the same result as an uninterrupted one.

    Args:
        representation, head: the parts of `Model`.
        metric: makes a new instance of the official metric.
        optimizer: makes an optimizer for the parameters; None for a model that only predicts.
        monitor: the metric on the development set that selects the epoch; larger is better.
        schedule: makes a learning-rate scheduler for the optimizer; `interval` is "epoch" or "step".
        penalty: lambda of equation (1)'s regularisation.
        seed: of the run.
        vocabularies: of the reader; saved in the checkpoint.
        bilm_sha256: of the biLM's weights; saved in the checkpoint.
        config: plain containers, saved in the checkpoint and by the loggers.

    Attributes:
        history: a dict for every completed epoch: updates, loss, metrics, layer weights, gamma, seconds, tokens.
        tested: the metrics of the last pass over the test set.
        dev_items, test_items: the per-example results of the last pass over each split, in the order of its rows.
        test_predictions: a JSON value for each row of the test set, in the same order.
        size: of the current batch, in words.
    """

    def __init__(
        self,
        representation: Representation,
        head: Head,
        metric: Callable[[], Metric],
        optimizer: Callable[..., torch.optim.Optimizer] | None,
        monitor: str,
        schedule: Callable[[torch.optim.Optimizer], Any] | None = None,
        interval: str = "epoch",
        penalty: float = 0.0,
        seed: int = 0,
        vocabularies: dict[str, Vocabulary] | None = None,
        bilm_sha256: str | None = None,
        config: dict[str, Any] | None = None,
    ):
        super().__init__(representation, head)
        self.save_hyperparameters({"config": config or {}})
        self.make_metric, self.make_optimizer, self.make_schedule = metric, optimizer, schedule
        self.monitor, self.interval, self.penalty, self.seed = monitor, interval, penalty, seed
        self.vocabularies, self.bilm_sha256 = vocabularies or {}, bilm_sha256
        self.history: list[dict[str, Any]] = []
        self.tested: dict[str, float] = {}
        self.dev_items: Items | None = None
        self.test_items: Items | None = None
        self.test_predictions: list[str] = []
        self.schedule = None
        self._schedule_state: dict | None = None
        self._metric: Metric | None = None
        self._dev: dict[str, float] = {}
        self._losses: list[Tensor] = []
        self._watch = Watch()
        self.size = "no batch yet"

    @property
    def leaves_unused(self) -> bool:
        """Whether a batch may leave a parameter without gradient, such as the head's, or those of an unused layer."""
        elmo = self.representation.elmo
        return getattr(self.head, "leaves_unused", False) or (elmo is not None and elmo.bilm is not None)

    @classmethod
    def load_from_checkpoint(cls, checkpoint_path: Any, map_location: Any = "cpu", *_: Any, **options: Any) -> Any:
        """The module of a checkpoint, as from Lightning's method, for testing or further training.

        It is built from its hyperparameters, the run's configuration. Nothing in the file is executed.

        Args:
            checkpoint_path: or any other argument of `elmo_bench.load`; `options` likewise.
            map_location: the device of the module.
        """
        ours = {key: value for key, value in options.items() if key not in ("hparams_file", "strict", "weights_only")}
        return resolve_name(code.INTERFACE["load"])(checkpoint_path, **ours).module().to(map_location)

    # One batch.

    def training_step(self, batch: Batch, index: int) -> Tensor:
        loss = self(batch).loss
        self._losses.append(loss.detach())
        self._tokens += sum(sum(text.lengths) for text in batch.texts.values())
        if self.trainer.world_size == 1:  # a rank must not stop alone; gradients are averaged over all ranks
            self._stop_at(self._watch.add(index + 1, "loss", loss))
        elmo = self.representation.elmo
        return loss if elmo is None or not self.penalty else loss + self.penalty * elmo.penalty()

    def on_before_optimizer_step(self, optimizer: torch.optim.Optimizer) -> None:
        if _scales(self.trainer):
            return  # 16-mixed: the scaler itself finds overflowing gradients, and skips their step
        self._norm = gradient_norm(_parameters(optimizer))
        self._stop_at(self._watch.add(len(self._losses), "gradient", self._norm))

    def on_validation_start(self) -> None:
        """A model is neither scored nor saved after an epoch with a fault."""
        self._stop_at(self._watch.look())
        if not all_finite(p for p in self.parameters() if p.requires_grad):
            self._stop_at(Fault(len(self._losses), "weight", math.nan))

    def _stop_at(self, fault: Fault | None) -> None:
        if fault is not None:
            epoch, rate = self.current_epoch, self._optimizer.param_groups[0]["lr"]
            kept = f"best.ckpt and last.ckpt are from epoch {epoch} or before" if epoch else "there is no earlier one"
            raise UserError(
                f"epoch {epoch + 1}, batch {fault.step}: the {fault.what} is {fault.value} at learning rate {rate:g}; "
                f"nothing of this epoch is kept ({kept}); {LOWER}"
            )

    def doing(self) -> str:
        """The current work and the size of its batch, for messages."""
        return f"{'training on' if self.training else 'scoring'} {self.size}"

    def predict_step(self, batch: Batch, index: int = 0) -> list[Prediction]:
        return self.head.decode(self(batch), batch)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        """Moves the tensors; a GPU copies pinned tensors while it computes."""
        self.size = batch.size
        return batch.each(lambda part: part.to(device, non_blocking=True))

    # The official metric over a whole split.

    def on_validation_epoch_start(self) -> None:
        self._metric = self.make_metric()
        self._predictions: list[str] = []  # of the test set, as JSON text to save memory
        self._share: list[Prediction] = []  # of this rank, if there are several
        self._trained = time.perf_counter()
        self._mixes = self.layer_weights()  # here Lightning has swapped in the averaged weights

    on_test_epoch_start = on_validation_epoch_start

    def validation_step(self, batch: Batch, index: int) -> None:
        assert self._metric is not None
        predictions = self.predict_step(batch)
        if self.trainer.sanity_checking:
            rehearse_metric(self.make_metric, predictions, batch.rows)
        elif self.trainer.world_size == 1:
            self._metric.update(predictions, batch.rows)
        else:
            self._share += predictions
        if self.trainer.testing:
            self._predictions += [json_text.dumps(prediction, ensure_ascii=False) for prediction in predictions]

    test_step = validation_step

    def on_validation_epoch_end(self) -> None:
        if self.trainer.sanity_checking:
            return
        self._dev, self.dev_items = self._compute("dev", self._order(self.trainer.val_dataloaders))

    def on_test_epoch_end(self) -> None:
        order = self._order(self.trainer.test_dataloaders)
        self.tested, self.test_items = self._compute("test", order)
        predictions = chain.from_iterable(gathered(self._predictions))
        by_row = sorted(zip(order.tolist(), predictions, strict=True), key=itemgetter(0))
        self.test_predictions = [prediction for _, prediction in by_row]

    def _order(self, loader: Any) -> np.ndarray:
        """(rows,) int64: the row numbers of a split in the order of scoring, rank after rank."""
        own = np.fromiter(chain.from_iterable(loader.batch_sampler), dtype=np.int64)
        return np.concatenate(gathered(own))

    def _compute(self, split: str, order: np.ndarray) -> tuple[dict[str, float], Items]:
        """The metrics and per-example results of a pass over these rows in order; the same on every rank."""
        assert self._metric is not None
        if self.trainer.world_size > 1:
            rows = self.trainer.datamodule.splits[split].select(order)  # type: ignore[attr-defined]
            self._metric.update(list(chain.from_iterable(gathered(self._share))), list(rows))
        scores = {name: float(value) for name, value in self._metric.compute().items()}
        for name, value in scores.items():
            if not math.isfinite(value):
                raise UserError(f"{split}/{name} is {value}: not a score; nothing of this epoch is kept; {LOWER}")
        self.log_dict({f"{split}/{name}": value for name, value in scores.items()}, batch_size=1)
        items = self._metric.items().in_row_order(order)
        self._metric = None
        return scores, items

    # Epochs.

    def on_train_epoch_start(self) -> None:
        """Seeds the generators from (seed, epoch), so that no random state has to be saved for resuming."""
        seed = (
            self.seed * 1_000_003 + self.current_epoch + self.global_rank * 2_000_000_011
        )  # so that nearby seeds differ in all numbers
        pl.seed_everything(seed % 2**32, verbose=False)
        self._losses = []
        self._tokens, self._updates = 0, self.global_step
        self._trained = self._mixes = None  # if dev is not scored
        self._started = time.perf_counter(), device_seconds(self.device)

    def on_train_batch_end(self, *_: Any) -> None:
        if self.global_step > self._updates:  # several batches may accumulate gradients for one update
            self._updates = self.global_step
            self._advance("step")

    def on_train_epoch_end(self) -> None:
        """Updates history, layer weights and schedule before the checkpoint is written."""
        wall, device = self._started
        s, gamma = self._mixes or self.layer_weights()
        losses = gathered(float(torch.stack(self._losses).mean()))
        for loss in losses:
            if not math.isfinite(loss):
                self._stop_at(Fault(len(self._losses), "mean loss", loss))
        self.history.append({
            "epoch": self.current_epoch + 1,
            "updates": self.global_step,
            "loss": sum(losses) / len(losses),
            "learning_rate": self._optimizer.param_groups[0]["lr"],
            "dev": self._dev,
            "layer_weights": s,
            "gamma": gamma,
            "tokens": sum(gathered(self._tokens)),
            "training_seconds": round((self._trained or time.perf_counter()) - wall, 3),
            "seconds": round(time.perf_counter() - wall, 3),
            "device_seconds": round(device_seconds(self.device) - device, 3),
        })  # fmt: skip
        logged = {f"elmo/{place}/s{j}": value for place in s for j, value in enumerate(s[place])}
        logged |= {f"elmo/{place}/gamma": value for place, value in gamma.items()}
        logged |= {"train/loss": self.history[-1]["loss"], "train/learning_rate": self.history[-1]["learning_rate"]}
        self.log_dict(logged, batch_size=1)
        self._advance("epoch")

    def layer_weights(self) -> tuple[dict[str, list[float]], dict[str, float]]:
        """s_j and gamma of equation (1), by place."""
        mixes = {} if self.representation.elmo is None else self.representation.elmo.mix
        s = {place: [round(float(value), 6) for value in mix.s.detach()] for place, mix in mixes.items()}
        return s, {place: round(float(mix.gamma.detach()), 6) for place, mix in mixes.items()}

    # Optimizer and schedule. We step the schedule ourselves: Lightning steps a schedule that depends on a metric only
    # after the epoch's checkpoint is written, so a resumed run would miss that step.

    def configure_optimizers(self) -> torch.optim.Optimizer:
        assert self.make_optimizer is not None
        try:
            trained = [p for p in self.parameters() if p.requires_grad]
            self._optimizer = self.make_optimizer(trained, **self._fused())
            self.schedule = None if self.make_schedule is None else self.make_schedule(self._optimizer)
        except (TypeError, ValueError) as error:  # wrong arguments in the task's configuration or on the command line
            raise UserError(f"task.optimizer or task.schedule: {error}") from error
        if self.schedule is not None and self._schedule_state is not None:
            self.schedule.load_state_dict(self._schedule_state)
        return self._optimizer

    def _fused(self) -> dict[str, bool | None]:
        """Uses the fused version of an optimizer: on a CPU torch uses it only if asked.

        Not with 16-mixed, where the scaler makes it undo the scaling in the step, after the gradients are clipped.
        """
        options = inspect.signature(self.make_optimizer).parameters  # type: ignore[arg-type]
        if _scales(self._trainer):
            return {"fused": None} if "fused" in options else {}
        undecided = all(name in options and options[name].default is None for name in ("fused", "foreach"))
        return {"fused": True} if undecided and self.device.type == "cpu" else {}

    def configure_gradient_clipping(
        self, optimizer: Any, gradient_clip_val: float | None = None, gradient_clip_algorithm: Any = None
    ) -> None:
        """Lightning's clipping, with the norm computed before; also for a fused optimizer with bf16-mixed.

        Lightning refuses such an optimizer with both bf16-mixed and 16-mixed. With 16-mixed it would undo the scaling
        of the gradients itself, after they are clipped; with bf16-mixed there is no scaling.
        """
        plugin, scaled = self.trainer.precision_plugin, _scales(self.trainer)
        if gradient_clip_val and not scaled and gradient_clip_algorithm != GradClipAlgorithmType.VALUE:
            clip(_parameters(optimizer), self._norm, gradient_clip_val)
        elif gradient_clip_val and not scaled:
            Precision.clip_gradients(plugin, optimizer, gradient_clip_val, gradient_clip_algorithm)
        else:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    def _advance(self, interval: str) -> None:
        if self.schedule is None or self.interval != interval:
            return
        if isinstance(self.schedule, ReduceLROnPlateau):
            self.schedule.step(self._dev[self.monitor] if self._dev else -self.history[-1]["loss"])
        else:
            self.schedule.step()

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["history"] = self.history
        checkpoint["vocabularies"] = {name: vocabulary.state() for name, vocabulary in self.vocabularies.items()}
        checkpoint["bilm_sha256"] = self.bilm_sha256
        checkpoint["schedule"] = None if self.schedule is None else self.schedule.state_dict()
        checkpoint["stopped"] = self.trainer.should_stop

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.history = checkpoint["history"]
        self._schedule_state = checkpoint["schedule"]
        if checkpoint["stopped"]:  # killed after its last epoch, before its record: train no further
            self.trainer.should_stop = True


def _parameters(optimizer: torch.optim.Optimizer) -> list[nn.Parameter]:
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _scales(trainer: pl.Trainer | None) -> bool:
    """Whether the precision scales gradients (16-mixed). None if a step is measured by itself."""
    return trainer is not None and getattr(trainer.precision_plugin, "scaler", None) is not None


def device_seconds(device: torch.device) -> float:
    """Seconds of computing: summed over all cores on a CPU; wall-clock time, after synchronizing, on a GPU."""
    if device.type == "cpu":
        return time.process_time()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()
