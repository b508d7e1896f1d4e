"""Training in several processes, each with its share of the rows (data parallelism over torch.distributed).

Started by `torchrun --no-python --nproc-per-node=N elmo-bench pretrain ...`: NCCL on GPUs, gloo on CPUs. All processes
read the whole text and draw the same negatives, so that they all touch the same rows of the softmax, and gradients can
be averaged without sparse tensors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from elmo_bench.nn.numerics import allow_tf32
from elmo_bench.system.errors import UserError
from elmo_bench.system.machine import unseen_gpu

MESSAGE = 1 << 20  # gradients are sent once they have this many numbers, because each message has a fixed cost


@dataclass(frozen=True)
class ProcessGroup:
    """This process's rank in the group; a group of one unless started by torchrun."""

    rank: int = 0
    size: int = 1
    _ready: list[Tensor] = field(default_factory=list)  # gradients not sent yet
    _sent: list[tuple[Tensor, list[Tensor], Any]] = field(default_factory=list)  # messages: values, gradients, work

    @classmethod
    def join(cls, device: torch.device) -> ProcessGroup:
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
        """This process's rows of a batch. Raises `UserError` if they cannot be shared evenly."""
        if rows % self.size:
            raise UserError(f"recipe.rows={rows} cannot be shared evenly by {self.size} processes")
        each = rows // self.size
        return slice(self.rank * each, (self.rank + 1) * each)

    def average_during_backward(self, leaves: Iterable[Tensor]) -> None:
        """From now on, gradients of these leaves are averaged during the backward pass, as soon as they are computed.

        `DistributedDataParallel` does so for one module's `forward`; here several modules and rows of a table are used.
        """
        if self.size > 1:
            for leaf in leaves:
                leaf.register_post_accumulate_grad_hook(self._collect)

    def _collect(self, leaf: Tensor) -> None:
        assert leaf.grad is not None
        self._ready.append(leaf.grad)
        if sum(gradient.numel() for gradient in self._ready) >= MESSAGE:
            self._send()

    def _send(self) -> None:
        flat = torch.cat([gradient.reshape(-1) for gradient in self._ready])
        self._sent.append((flat, [*self._ready], dist.all_reduce(flat, async_op=True)))
        self._ready.clear()

    def received(self) -> None:
        """Waits until each gradient of this backward pass is its mean over the processes."""
        if self._ready:
            self._send()
        for flat, gradients, work in self._sent:
            work.wait()
            flat /= self.size
            parts = flat.split([gradient.numel() for gradient in gradients])
            for gradient, part in zip(gradients, parts, strict=True):
                gradient.copy_(part.view_as(gradient))
        self._sent.clear()

    def mean(self, tensor: Tensor) -> Tensor:
        """The mean of a tensor over the processes."""
        if self.size > 1:
            dist.all_reduce(tensor := tensor.clone())
        return tensor / self.size

    def gather(self, tensor: Tensor, dim: int = 0) -> Tensor:
        """The tensors of all processes, concatenated along a dimension."""
        if self.size == 1:
            return tensor
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts, dim)

    def agree(self, decision: bool) -> bool:
        """The first process's decision, broadcast to all."""
        if self.size == 1:
            return decision
        decided = [decision]
        dist.broadcast_object_list(decided)
        return decided[0]

    def wait(self) -> None:
        """Waits until every process has called this."""
        if self.size > 1:
            dist.barrier()


def leave() -> None:
    """Ends a process of a group after its work: gloo's threads may abort it during the interpreter's shutdown."""
    if dist.is_initialized():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def choose_device(name: str = "auto") -> torch.device:
    """The device of this process: `auto` (a GPU if there is one), cpu, cuda or cuda:N."""
    if name == "auto":
        if why := unseen_gpu():
            raise UserError(f"device=auto: {why}, or choose device=cpu")
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f"device={name}: expected auto, cpu or cuda") from None
    if device.type == "cuda":
        if not torch.cuda.is_available():
            why = unseen_gpu() or f"there is no GPU here (torch {torch.__version__} finds none)"
            raise UserError(f"device={name}: {why}")
        device = torch.device("cuda", int(os.environ.get("LOCAL_RANK", device.index or 0)))
        torch.cuda.set_device(device)
        allow_tf32(False)  # convolutions too compute in float32
    return device
