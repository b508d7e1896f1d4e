"""Equation (1) of the paper: a task-specific weighted average of the biLM's layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from elmo_bench.nn.numerics import wide
from elmo_bench.system.errors import UserError

EPSILON = 1e-12


class ScalarMix(nn.Module):
    """ELMo_k = gamma * sum_j s_j h_{k,j} with s = softmax(w) (section 3.2).

    Args:
        n_layers: L + 1, including the token layer.
        layers: "all" learns w, starting at 0 (the mean of the layers); "last" or a layer's number uses only that
            layer; a list of numbers, one per layer, is used as s.
        gamma: true learns gamma, starting at 1; false fixes it at 1.
        layer_norm: false; "paper" gives each layer the mean 0 and variance 1 over all unmasked tokens and dimensions
            of the batch, as the released code did (a sentence's vector then depends on its batch); "token" normalises
            each vector separately. Neither has affine terms.
    """

    def __init__(
        self,
        n_layers: int,
        layers: str | int | Sequence[float] = "all",
        gamma: bool = True,
        layer_norm: str | bool | None = False,
    ):
        super().__init__()
        if layer_norm not in (False, None, "off", "paper", "token"):
            raise UserError(f"elmo.layer_norm={layer_norm}: choose from false, paper, token")
        self.fixed: Tensor
        self.layer_norm = layer_norm if layer_norm in ("paper", "token") else None
        only = only_layer(layers, n_layers)
        self.read = slice(None) if only is None else slice(only, only + 1)  # the layers in use
        if layers == "all":
            self.w = nn.Parameter(torch.zeros(n_layers))
        else:
            self.w = None
            self.register_buffer("fixed", torch.tensor(_fixed(layers, n_layers)), persistent=False)
        self.gamma = nn.Parameter(torch.ones(())) if gamma else torch.ones(())

    @property
    def s(self) -> Tensor:
        """The weights of the layers, (L + 1,)."""
        return self.fixed if self.w is None else self.w.softmax(dim=0)

    def penalty(self) -> Tensor:
        """sum_j w_j^2 before the softmax, to be multiplied by lambda; 0 if none are learnt. Gamma is not penalised."""
        return self.s.new_zeros(()) if self.w is None else self.w.square().sum()

    def forward(self, layers: Tensor, mask: Tensor) -> Tensor:
        """Mixes the layers of a padded batch.

        Args:
            layers: (B, L + 1, T, W), the biLM's layers.
            mask: (B, T) bool, true on words.

        Returns:
            (B, T, W), zero on padding.
        """
        return self.mixed(self.normalised(layers, mask), mask)

    def normalised(self, layers: Tensor, mask: Tensor) -> Tensor:
        """The layers in use, (B, J, T, W), normalised: the same for all mixes with these options.

        In float32 also under autocast: the paper's normalisation sums over a whole batch, and it is no slower, because
        the layers are read only once.
        """
        with torch.autocast(layers.device.type, enabled=False):
            layers = wide(layers)
            if layers.shape[1] > 1:  # otherwise the cache has stored only the layer in use
                layers = layers[:, self.read]
            if self.layer_norm == "paper":
                words = mask[:, None, :, None]  # (B, 1, T, 1)
                n = mask.sum().clamp(min=1) * layers.shape[-1]
                mean = (layers * words).sum(dim=(0, 2, 3), keepdim=True) / n  # (1, J, 1, 1)
                variance = ((layers - mean) * words).square().sum(dim=(0, 2, 3), keepdim=True) / n
                return (layers - mean) * torch.rsqrt(variance + EPSILON)
            if self.layer_norm == "token":
                return nn.functional.layer_norm(layers, layers.shape[-1:], eps=EPSILON)
            return layers

    def mixed(self, layers: Tensor, mask: Tensor) -> Tensor:
        """`forward` of layers that are `normalised` already."""
        with torch.autocast(layers.device.type, enabled=False):
            weights = (self.gamma * self.s[self.read]).to(layers.dtype)  # (J,)
            mixed = torch.bmm(weights.expand(len(layers), 1, -1), layers.flatten(2))  # (B, 1, T W): without a copy
            return mixed.view(len(layers), *layers.shape[2:]) * mask[..., None]


def only_layer(layers: str | int | Sequence[float], n_layers: int) -> int | None:
    """The only layer that `elmo.layers` uses; None if it uses several."""
    if layers == "all":
        return None
    read = [j for j, s in enumerate(_fixed(layers, n_layers)) if s != 0]
    return read[0] if len(read) == 1 else None


def _fixed(layers: str | int | Sequence[float], n_layers: int) -> list[float]:
    if layers == "last":
        layers = n_layers - 1
    if isinstance(layers, bool) or not isinstance(layers, (int, list, tuple)):
        raise UserError(f"elmo.layers={layers}: choose all, last, a layer from 0 to {n_layers - 1}, a list of weights")
    if isinstance(layers, int):
        if not 0 <= layers < n_layers:
            raise UserError(f"elmo.layers={layers}: the biLM's layers are 0 (tokens) to {n_layers - 1}")
        return [float(j == layers) for j in range(n_layers)]
    if len(layers) != n_layers:
        raise UserError(f"elmo.layers={list(layers)}: {n_layers} weights are needed, one per layer of the biLM")
    return [float(weight) for weight in layers]
