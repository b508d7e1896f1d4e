"""Several processes on one training, each with its share of the rows (data parallelism over torch.distributed).

Started by `torchrun --nproc-per-node=N -m elmo_bench.pretrain ...`: NCCL where there are GPUs, gloo on CPUs. All
processes know the whole text and draw the same negatives, so that the touched rows of the softmax are the same
everywhere and gradients can be averaged without sparse tensors.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor

from elmo_bench.system.errors import UserError


@dataclass(frozen=True)
class Group:
    """This process among all; alone unless torchrun started it."""

    rank: int = 0
    size: int = 1

    @classmethod
    def join(cls, device: torch.device) -> Group:
        """Joins the processes that torchrun started with this one."""
        if int(os.environ.get("WORLD_SIZE", "1")) == 1:
            return cls()
        if not dist.is_initialized():
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        return cls(dist.get_rank(), dist.get_world_size())

    @property
    def first(self) -> bool:
        """Whether this process writes checkpoints and logs."""
        return self.rank == 0

    def share(self, rows: int) -> slice:
        """This process's rows of a batch. Raises `UserError` where they do not divide."""
        if rows % self.size:
            raise UserError(f"recipe.rows={rows} cannot be shared evenly by {self.size} processes")
        each = rows // self.size
        return slice(self.rank * each, (self.rank + 1) * each)

    def average(self, tensors: Sequence[Tensor]) -> None:
        """Replaces each tensor by its mean over the processes, in one message."""
        if self.size == 1:
            return
        flat = torch.cat([tensor.reshape(-1) for tensor in tensors])
        dist.all_reduce(flat)
        flat /= self.size
        for tensor, part in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def gather(self, tensor: Tensor) -> Tensor:
        """All processes' tensors, one after another along the first dimension."""
        if self.size == 1:
            return tensor
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts)

    def agree(self, decision: bool) -> bool:
        """The first process's decision, told to all."""
        if self.size == 1:
            return decision
        told = [decision]
        dist.broadcast_object_list(told)
        return told[0]

    def wait(self) -> None:
        """Until every process is here."""
        if self.size > 1:
            dist.barrier()


def choose_device(name: str = "auto") -> torch.device:
    """`auto`: this process's GPU where there is one; or cpu, cuda, cuda:N.

    Raises:
        UserError: no such device here.
    """
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"device={name}: expected auto, cpu or cuda") from None
    if device.type == "cuda":
        if not torch.cuda.is_available():
            raise UserError(f"device={name}: there is no GPU here")
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", device.index or 0)))
        torch.cuda.set_device(device)
    return device
