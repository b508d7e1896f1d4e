"""Moving index arithmetic to a device."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor


def on_device(array: np.ndarray, device: torch.device | str | None) -> Tensor:
    """An array as a tensor on a device, without waiting for a GPU to finish what it is computing."""
    return torch.from_numpy(array).to(device, non_blocking=True)
