"""Averages of the weights as Lightning keeps them, in a few operations that a GPU is not waited for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import pytorch_lightning as pl
import torch
from hydra.utils import instantiate
from pytorch_lightning.callbacks import EMAWeightAveraging
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

LIGHTNINGS = "pytorch_lightning.callbacks.EMAWeightAveraging"


def averaging(block: Mapping[str, Any], device: str) -> pl.Callback:
    """The callback that a task's page names; `Averages` in the place of Lightning's exponential moving average."""
    ours = {"_target_": f"{__name__}.Averages"} if block.get("_target_") == LIGHTNINGS else {}
    return instantiate({**block, **ours}, device=device)


class Averages(EMAWeightAveraging):
    """Lightning's, with the same numbers: three operations for all weights (`multi_avg_fn`) instead of for each."""

    def __init__(self, *arguments: Any, decay: float = 0.999, **options: Any):
        super().__init__(*arguments, decay=decay, **options)
        self._kwargs |= {"avg_fn": None, "multi_avg_fn": moving(decay)}

    def setup(self, trainer: pl.Trainer, pl_module: pl.LightningModule, stage: str) -> None:
        super().setup(trainer, pl_module, stage)
        if self._average_model is not None:
            self._average_model.__class__ = Averaged


class Averaged(AveragedModel):
    """Torch's asks its counter in every update whether it is the first, for which a GPU is waited for."""

    begun = False

    def update_parameters(self, model: nn.Module) -> None:
        if not self.begun or not self.use_buffers:
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
        torch._foreach_mul_(own, decay)
        torch._foreach_add_(own, torch._foreach_mul(new, 1 - decay))

    return update
