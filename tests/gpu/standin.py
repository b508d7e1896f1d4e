"""A stand-in for a GPU on a CPU, which counts how often the host would wait for it, and how.

Tensors on it compute on the CPU and say that they are on a GPU, so that the code takes its way of a GPU. The host waits
where it asks for a number of such a tensor, where a shape depends on its numbers, and where it copies from memory that
is not pinned, or does not say `non_blocking`. A copy to the host is one that is written `.cpu()`: where torch groups
gradients by device, it moves numbers to the device that it sees, which is the CPU.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

M = TypeVar("M", bound=nn.Module)
DEVICE = torch.device("cuda", 0)
ASKED = {"item", "tolist", "numpy", "cpu", "__bool__", "__int__", "__float__", "__index__"}
SHAPED = {"nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "repeat_interleave", "bincount"}


class There(torch.Tensor):
    """A tensor on the stand-in."""

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]


class StandIn(TorchFunctionMode):
    """In its block, what is moved to `DEVICE` or made there is on the stand-in.

    Attributes:
        waits: how often the host waited, by what it waited for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[str] = Counter()
        self.pinned: list[Tensor] = []  # kept, so that an id stays one tensor's

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs, name = dict(kwargs or {}), getattr(func, "__name__", "")
        if name == "__get__" and func in PROPERTIES and isinstance(args[0], There):
            return PROPERTIES[func]
        if func is torch.device:
            return func(*args, **kwargs)
        if name == "pin_memory":
            self.pinned.append(args[0].view_as(args[0]))
            return self.pinned[-1]
        there = any(isinstance(each, There) for each in _tensors(args, kwargs))
        device, args = _device(args, kwargs)
        self._note(name, args, kwargs, there, device)
        out = func(*args, **kwargs)
        if isinstance(out, Tensor) and any(out is arg for arg in args) and name in ("to", "cpu"):
            out = out.view_as(out)  # nothing was moved: another tensor for the other side
        return tree_map(_onto, out) if (there and name not in ASKED) or device == DEVICE else out

    def _note(self, name: str, args: Any, kwargs: Any, there: bool, device: torch.device | None) -> None:
        """Counts a wait."""
        if there and name in ASKED | SHAPED and "output_size" not in kwargs:
            self.waits[name] += 1
        elif there and name in ("__getitem__", "__setitem__", "index_put", "index_put_"):
            index = args[1] if isinstance(args[1], tuple | list) else (args[1],)
            self.waits["a mask as index"] += any(isinstance(i, Tensor) and i.dtype == torch.bool for i in index)
        elif device == DEVICE and not there and name in ("to", "cuda", "tensor", "as_tensor"):
            quick = kwargs.get("non_blocking") and any(args[0] is pinned for pinned in self.pinned)
            self.waits["copy to the device"] += not quick


PROPERTIES: dict[Any, Any] = {Tensor.device.__get__: DEVICE, Tensor.is_cuda.__get__: True}  # type: ignore[attr-defined]


def on_it(module: M) -> M:
    """The module with its parameters and buffers on the stand-in."""
    for part in module.modules():
        for parameter in part._parameters.values():
            if parameter is not None:
                _onto(parameter)._is_param = True
        tree_map(_onto, part._buffers)
    vars(module)["_device"] = DEVICE  # Lightning's
    return module


def waits(work: Callable[[], Any]) -> int:
    """How often a call, whose module is `on_it`, waits."""
    with StandIn() as stand_in:
        work()
    return stand_in.waits.total()


def _onto(value: Any) -> Any:
    if isinstance(value, Tensor):
        value.__class__ = There
    return value


def _tensors(args: Any, kwargs: Any) -> list[Any]:
    found: list[Any] = []
    tree_map(found.append, (args, kwargs))
    return found


def _device(args: Any, kwargs: dict[str, Any]) -> tuple[torch.device | None, Any]:
    """The device that a call names, and its arguments without a GPU in them; `kwargs` is changed."""
    named = kwargs.get("device")
    named = next((arg for arg in args if isinstance(arg, torch.device)), None) if named is None else torch.device(named)
    if named is None or named.type != DEVICE.type:
        return named, args
    if "device" in kwargs:
        kwargs["device"] = torch.device("cpu")
    return DEVICE, tuple(torch.device("cpu") if isinstance(arg, torch.device) else arg for arg in args)
