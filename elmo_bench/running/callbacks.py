"""Extensions of Lightning's trainer: checkpoints between epochs, written atomically; averages; fewer messages."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from hydra.utils import instantiate
from pytorch_lightning.callbacks import Checkpoint, EMAWeightAveraging
from pytorch_lightning.plugins.io import TorchCheckpointIO
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from elmo_bench.records import items
from elmo_bench.running import unfinished
from elmo_bench.system.console import tell
from elmo_bench.system.storage.files import write_text
from elmo_bench.system.storage.integrity import load_checkpoint, save_checkpoint

MODEL = "the model alone"
LIGHTNINGS = "pytorch_lightning.callbacks.EMAWeightAveraging"
FOR_RESUMING = ("optimizer_states", "lr_schedulers", "loops", "callbacks", "current_model_state", "averaging_state")


class KeepBest(Checkpoint):
    """After every epoch writes `last.ckpt` (to resume from); if the epoch is the best so far, first `best.ckpt`.

    The best epoch's per-example results of dev are written with `best.ckpt`. If the process dies before `last.ckpt` is
    written, the resumed run repeats the epoch and writes the same files. After testing, it writes the test predictions.

    Attributes:
        score, epoch: the best score on dev, and its epoch, from 1.
    """

    def __init__(self, folder: Path):
        self.folder, self.best, self.last = folder, folder / unfinished.BEST, folder / unfinished.LAST
        self.score: float | None = None
        self.epoch = 0

    def setup(self, trainer: pl.Trainer, pl_module: Any, stage: str) -> None:
        """In all loggers epochs count from 1, as in records; Lightning counts from 0. A test is of the best one."""

        def log(metrics: Any, step: int | None = None) -> None:
            epoch = self.epoch if trainer.testing else trainer.current_epoch + 1
            counted: Any = metrics and {**metrics, "epoch": epoch}
            type(connector).log_metrics(connector, counted, step)

        connector = trainer._logger_connector
        connector.log_metrics = log

    def on_train_epoch_end(self, trainer: pl.Trainer, module: Any) -> None:
        newest = module.history[-1]
        score = newest["dev"][module.monitor]
        if trainer.is_global_zero:
            tell(f"epoch {newest['epoch']} of at most {trainer.max_epochs}, dev {module.monitor} {score:.2f}")
        if self.score is None or score > self.score:
            self.score, self.epoch = score, newest["epoch"]
            trainer.save_checkpoint(self.best, storage_options=MODEL)  # Lightning's weights_only loses the averages
            if trainer.is_global_zero:
                items.write(self.folder / items.DEV, {"dev": module.dev_items})
        trainer.save_checkpoint(self.last)

    def on_test_end(self, trainer: pl.Trainer, module: Any) -> None:
        if trainer.is_global_zero:
            write_text(self.folder / items.PREDICTIONS, "".join(f"{line}\n" for line in module.test_predictions))

    def state_dict(self) -> dict[str, Any]:
        return {"score": self.score, "selected": self.epoch, "run": self.folder.name}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        self.score = state_dict["score"]
        self.epoch = state_dict.get("selected") or state_dict["epoch"] + 1  # as earlier versions counted


class AtomicCheckpoints(TorchCheckpointIO):
    """Writes checkpoints atomically, so that a kill leaves the old or the new file; verifies checkpoints it reads."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None) -> None:
        """`storage_options=MODEL` leaves out the parts needed only for resuming."""
        if storage_options == MODEL:
            checkpoint = {key: value for key, value in checkpoint.items() if key not in FOR_RESUMING}
        save_checkpoint(checkpoint, Path(path))

    def load_checkpoint(self, path: Any, *_: Any, **__: Any) -> dict[str, Any]:
        """Compares every part with its checksum first; on the CPU, nothing in the file is executed."""
        return load_checkpoint(path, unfinished.REMEDY)


# Averages of the weights.


def averaging(block: Mapping[str, Any], device: str) -> pl.Callback:
    """The callback that a task names; `Averages` in place of Lightning's exponential moving average."""
    ours = {"_target_": f"{__name__}.Averages"} if block.get("_target_") == LIGHTNINGS else {}
    return instantiate({**block, **ours}, device=device)


class Averages(EMAWeightAveraging):
    """Lightning's callback, with the same numbers: three operations for all weights together (`multi_avg_fn`)."""

    def __init__(self, *arguments: Any, decay: float = 0.999, **options: Any):
        super().__init__(*arguments, decay=decay, **options)
        self._kwargs |= {"avg_fn": None, "multi_avg_fn": moving(decay)}

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        super().setup(trainer, pl_module, stage)
        if self._average_model is not None:
            self._average_model.__class__ = Averaged


class Averaged(AveragedModel):
    """Avoids a wait for the GPU: torch's version reads its counter in every update to see whether it is the first."""

    begun = False

    def update_parameters(self, model: nn.Module) -> None:
        if not self.begun or not self.use_buffers or self.multi_avg_fn is None:
            super().update_parameters(model)
            self.begun = True
            return
        own, new = (list(chain(each.parameters(), each.buffers())) for each in (self.module, model))
        with torch.no_grad():
            self.multi_avg_fn(own, [part.to(mine.device) for part, mine in zip(new, own, strict=True)], self.n_averaged)
        self.n_averaged += 1


def moving(decay: float) -> Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]:
    """Averages become decay * average + (1 - decay) * weight, bit for bit as `get_ema_avg_fn` computes it."""

    @torch.no_grad()
    def update(averages: Sequence[Tensor], weights: Sequence[Tensor], _: Any) -> None:
        pairs = [pair for pair in zip(averages, weights, strict=True) if pair[0].is_floating_point()]
        own, new = ([part.detach() for part in side] for side in zip(*pairs, strict=True))
        torch._foreach_mul_(own, decay)  # type: ignore[attr-defined]
        torch._foreach_add_(own, torch._foreach_mul(new, 1 - decay))  # type: ignore[attr-defined]

    return update


def quiet() -> None:
    """Silences Lightning's start-up messages; warnings, a profiler's report and a model's summary are still shown."""
    logging.getLogger("pytorch_lightning").setLevel(logging.WARNING)
    for name in ("profilers", "callbacks.model_summary"):
        logging.getLogger(f"pytorch_lightning.{name}").setLevel(logging.INFO)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    for message, category in (
        (r".*The `srun` command is available on your system but is not used.*", Warning),  # a login node of a cluster
        (r".*LeafSpec.*", Warning),  # torch 2.13 about Lightning's use of torch's pytree
        (r".*does not have many workers.*", Warning),  # batches are small, and collating in the process is as fast
        (r".*`weights_only` was not set.*", Warning),
        (r".*Found \d+ module\(s\) in eval mode.*", Warning),  # a frozen part
        (r".*number of training batches .* is smaller than the logging interval.*", Warning),
        (r".*You have overridden `transfer_batch_to_device` in `LightningModule`.*", Warning),  # intended
        (r".*It is recommended to use `self.log\(.*sync_dist=True.*", Warning),  # all ranks log the same numbers
        (r".*Checkpoint directory .* exists and is not empty.*", Warning),
    ):
        warnings.filterwarnings("ignore", message, category)
