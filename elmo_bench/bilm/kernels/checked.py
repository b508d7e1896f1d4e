"""The compiled functions, where a compiler can build them and they compute what torch computes.

`ELMO_BENCH_KERNELS=0` turns them off. With `precision=bf16` the factors of all products are rounded to bfloat16, 8
significant bits; sums, states and the functions between the products remain float32. With AMX they are several times as
fast; with AVX512-BF16 alone they need not be.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from itertools import chain
from typing import TypeVar

import torch
from torch import Tensor, nn

from elmo_bench.bilm.encoder import SkipInitialValues, TokenEncoder
from elmo_bench.bilm.kernels.encoder import CompiledEncoder, PlainEncoder
from elmo_bench.bilm.kernels.lstm import CompiledDirections, Directions, FrozenLSTM
from elmo_bench.bilm.lstm import ProjectedLSTM, State
from elmo_bench.bilm.options import ACTIVATIONS, Options
from elmo_bench.nn.kernels.library import Kernels, load
from elmo_bench.nn.packing import Packing
from elmo_bench.system.errors import UserError

PRECISIONS = ("fp32", "bf16")
M = TypeVar("M", bound=nn.Module)
# Numbers of filters, cells and outputs that do not fill whole vectors.
LSTM = {"dim": 40, "projection_dim": 24, "cell_clip": 0.5, "proj_clip": 0.2, "use_skip_connections": True}
CNN = {"embedding": {"dim": 8}, "filters": [[1, 8], [2, 70], [7, 20]], "n_highway": 1}
NEAR, NEAR_HALF = 1e-5, 0.02  # largest difference from torch that the check allows, in float32 and in bfloat16


@cache
def kernels(half: bool = False) -> Kernels | None:
    """The compiled functions; None without a compiler, where they are turned off, or if they compute other results.

    Args:
        half: those that multiply in bfloat16; None too where the processor or the compiler has no instructions for it.
    """
    found, near = load(half), NEAR_HALF if half else NEAR
    return found if found and all(difference < near for difference in differences(found)) else None


def granted(asked: str) -> str:
    """The precision to compute in: "bf16" if asked for and possible here; where it is not, one line on stderr says why.

    Raises:
        UserError: there is no such precision.
    """
    if asked not in PRECISIONS:
        raise UserError(f"precision is {asked!r}; known: {', '.join(PRECISIONS)}")
    if asked == "bf16" and kernels(half=True) is None:
        why = "no instructions for bfloat16 (AMX or AVX512-BF16), or no compiler that knows them"
        print(f"precision=bf16: {why}; computing in fp32", file=sys.stderr)
        return "fp32"
    return asked


def differences(kernels: Kernels) -> Iterator[float]:
    """The largest difference of each function from torch's results, on small random input."""
    draws = torch.Generator().manual_seed(0)  # torch's own generator may be that of a training in another thread

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draws).float()

    with torch.no_grad():
        for activation in ACTIVATIONS:
            options = Options.parse({"lstm": LSTM, "char_cnn": CNN | {"activation": activation}})
            encoder = _drawn(partial(TokenEncoder, options), 0.1, draws)
            ids, used = torch.randint(1, 262, (4, 50), generator=draws), torch.tensor([3, 6, 13, 50])
            ids[torch.arange(50) >= used[:, None]] = 261
            encoders = CompiledEncoder(encoder, kernels), PlainEncoder(encoder)
            yield _apart(*(way(ids.numpy(), used.numpy()) for way in encoders))
        sizes = [LSTM[key] for key in ("projection_dim", "dim", "projection_dim", "cell_clip", "proj_clip")]
        stacks = [[_drawn(partial(ProjectedLSTM, *sizes), 1.0, draws) for _ in range(2)] for _ in range(2)]
        token, packing = drawn(23, 24), Packing([4, 2, 2, 4, 3, 2, 2, 2, 2])
        starts = [[State(drawn(9, 24), drawn(9, 40)) for _ in each] for each in stacks]
        plain = Directions([map(FrozenLSTM, layers) for layers in stacks], True)
        ways = CompiledDirections(stacks, True, kernels), plain
        (layers, ends), (there, there_ends) = (way(token, packing, starts) for way in ways)
        yield _apart(layers, there)
        for states, others in zip(chain(*ends), chain(*there_ends), strict=True):
            yield from map(_apart, states, others)


def _drawn(make: Callable[[], M], deviation: float, draws: torch.Generator) -> M:
    """A module in float32, whatever torch's default is, with random parameters; `deviation` is that of its biases."""
    with torch.device("meta"), SkipInitialValues():
        module = make()
    parameters = {
        name: torch.empty(each.shape, dtype=torch.float32).normal_(
            std=deviation if each.dim() == 1 else each.shape[1:].numel() ** -0.5, generator=draws
        )
        for name, each in module.named_parameters()
    }
    # `to_empty` of a module on "meta" would import sympy, which takes a second.
    module.load_state_dict(parameters, assign=True)
    return module


def _apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())
