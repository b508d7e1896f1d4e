"""Both directions of a recurrent layer side by side, so that every step of its loop over time serves both."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Directions(NamedTuple):
    """The order of a batch's words in both directions, of which the backward one reads each sentence from its end.

    Padding stays behind the last word in both, where it is read too late to matter.
    """

    order: Tensor  # (T * 2 * B,) rows of (B * T * 2), as the loop reads them
    inverse: Tensor  # (B * T * 2,) rows of (T * 2 * B)

    @classmethod
    def of(cls, mask: Tensor) -> Directions:
        """mask (B, T) bool with the words first."""
        rows, steps = mask.shape
        place = torch.arange(steps, device=mask.device).expand_as(mask)  # (B, T)
        mirrored = torch.where(mask, mask.sum(1, keepdim=True) - 1 - place, place)  # (B, T), its own inverse
        both = torch.stack([place, mirrored], dim=2)  # (B, T, 2)
        row, direction = torch.arange(rows, device=mask.device)[:, None, None], torch.arange(2, device=mask.device)
        order = ((row * steps + both) * 2 + direction).permute(1, 2, 0)  # (T, 2, B)
        inverse = (both * 2 + direction) * rows + row  # (B, T, 2)
        return cls(order.flatten(), inverse.flatten())

    def by_step(self, x: Tensor) -> Tensor:
        """(B, T, 2n), the forward direction's numbers before the backward one's -> (T, 2, B, n)."""
        return x.reshape(len(self.order), -1).index_select(0, self.order).view(x.shape[1], 2, x.shape[0], -1)

    def by_sentence(self, x: Tensor) -> Tensor:
        """The inverse: (T, 2, B, n) -> (B, T, 2n)."""
        return x.reshape(len(self.inverse), -1).index_select(0, self.inverse).view(x.shape[2], x.shape[0], -1)


def looped(x: Tensor) -> bool:
    """Whether such a loop is the way to compute: on a CPU."""
    return x.device.type == "cpu"
