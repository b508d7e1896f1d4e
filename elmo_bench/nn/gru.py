"""A bidirectional GRU over sentences of different lengths."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elmo_bench.nn.compiled import loopable
from elmo_bench.nn.directions import Directions, looped
from elmo_bench.nn.lstm import reverse
from elmo_bench.nn.precision import wide
from elmo_bench.nn.recurrent import GRU, both_directions


class BiGRU(nn.Module):
    """One layer, both directions, each sentence on its own: padding is never read.

    The reset gate is applied after the recurrent product, as in cuDNN. On a CPU, where torch has no kernel for a GRU
    and records some twenty operations a step and direction, `BothWays` computes it instead.

    Args:
        input_size: D.
        hidden_size: H, per direction.
        deviation: standard deviation of the initial weights, drawn from a normal distribution truncated at two
            deviations, with zero biases (Clark and Gardner 2018); None: torch's own initialisation.
    """

    def __init__(self, input_size: int, hidden_size: int, deviation: float | None = None):
        super().__init__()
        self.forward_gru = nn.GRU(input_size, hidden_size, batch_first=True)
        self.backward_gru = nn.GRU(input_size, hidden_size, batch_first=True)
        self.output_size = 2 * hidden_size
        if deviation is not None:
            for weight in self.parameters():
                if weight.dim() == 2:
                    nn.init.trunc_normal_(weight, std=deviation, a=-2 * deviation, b=2 * deviation)
                else:
                    nn.init.zeros_(weight)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """(B, T, D), mask (B, T) bool with the words first -> (B, T, 2H), zeros at padding."""
        if (kernels := loopable(x)) is not None:
            return both_directions(GRU, kernels, [(x, mask)], [self.forward_gru, self.backward_gru])[0]
        if looped(x):
            with torch.autocast("cpu", enabled=False):  # a loop of small products, which 16 bits slow down
                y: Tensor = BothWays.apply(wide(x), Directions.of(mask), *self._weights())  # type: ignore[assignment]
            return y * mask.unsqueeze(2)
        ahead, _ = self.forward_gru(x)  # (B, T, H)
        back, _ = self.backward_gru(reverse(x, mask))
        return torch.cat([ahead, reverse(back, mask)], dim=-1) * mask.unsqueeze(2)

    def _weights(self) -> tuple[Tensor, ...]:
        """W (6H, D) and its bias (6H,), R (2, 3H, H) and its bias (2, 3H); the forward direction's first."""

        def of(name: str) -> list[Tensor]:
            return [getattr(gru, f"{name}_l0") for gru in (self.forward_gru, self.backward_gru)]

        weight, bias = torch.cat(of("weight_ih")), torch.cat(of("bias_ih"))
        return weight, bias, torch.stack(of("weight_hh")), torch.stack(of("bias_hh"))


class BothWays(torch.autograd.Function):
    """A GRU of both directions: (B, T, D), their order and weights (see `BiGRU`) -> (B, T, 2H).

    r, z = sigmoid(W x + R h), n = tanh(W_n x + r * R_n h), h' = n + z * (h - n), with a bias at each product. The
    input's product for all steps is one, and so is that of each weight's gradients.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, directions: Directions, weight: Tensor, bias: Tensor, recurrent: Tensor, own: Tensor
    ) -> Tensor:
        gates = directions.by_step(nn.functional.linear(x, weight, bias))  # (T, 2, B, 3H)
        states = _run(gates, recurrent.mT.contiguous(), own[:, None])  # (T + 1, 2, B, H)
        ctx.save_for_backward(x, *directions, weight, recurrent, own, gates, states)
        return directions.by_sentence(states[1:])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        x, order, inverse, weight, recurrent, own, gates, states = ctx.saved_tensors
        directions, size = Directions(order, inverse), recurrent.shape[2]
        before = states[:-1].transpose(0, 1).flatten(1, 2)  # (2, T * B, H)
        d = _factors(gates, states, _new(before, recurrent, own, gates.shape))  # (T, 2, B, 4H): R_n h, r, z, n
        _multiply(d, directions.by_step(gradients[0]), gates[..., size : 2 * size], recurrent)
        of_x = directions.by_sentence(d[..., size:])  # (B, T, 6H): r, z, n of each direction
        of_h = d[..., : 3 * size].transpose(0, 1).flatten(1, 2)  # (2, T * B, 3H): n, r, z
        d_weight = of_x.flatten(0, 1).t() @ x.flatten(0, 1)
        d_recurrent, d_own = of_h.mT @ before, of_h.sum(1)
        d_recurrent, d_own = d_recurrent.roll(-size, dims=1), d_own.roll(-size, dims=1)  # r, z, n
        return of_x @ weight, None, d_weight, of_x.sum((0, 1)), d_recurrent, d_own


def _run(gates: Tensor, across: Tensor, own: Tensor) -> Tensor:
    """Turns the input's products (T, 2, B, 3H) into the gates r, z, n; returns the states before each step and after.

    Args:
        gates: overwritten.
        across: (2, H, 3H), the recurrent weights.
        own: (2, 1, 3H), their bias.
    """
    size = across.shape[1]
    states = gates.new_zeros(gates.shape[0] + 1, *gates.shape[1:3], size)  # (T + 1, 2, B, H)
    product = torch.empty_like(gates[0])  # (2, B, 3H)
    of_rz, of_n = product.split([2 * size, size], dim=2)
    rz, n = gates.split([2 * size, size], dim=3)
    parts = (states, states[1:], rz, *rz.chunk(2, dim=3), n)
    for h, h_next, both, r, z, new in zip(*(part.unbind() for part in parts), strict=False):
        torch.baddbmm(own, h, across, out=product)
        both.add_(of_rz).sigmoid_()
        new.addcmul_(r, of_n).tanh_()
        torch.lerp(new, h, z, out=h_next)
    return states


def _new(before: Tensor, recurrent: Tensor, own: Tensor, shape: torch.Size) -> Tensor:
    """R_n h of all steps, (T, 2, B, H): one product here is cheaper than keeping those of the steps."""
    size = recurrent.shape[2]
    product = torch.baddbmm(own[:, None, 2 * size :], before, recurrent[:, 2 * size :].mT)  # (2, T * B, H)
    return product.view(2, shape[0], shape[2], size).transpose(0, 1)


def _factors(gates: Tensor, states: Tensor, of_n: Tensor) -> Tensor:
    """What turns gradients of the states into those of the pre-activations, (T, 2, B, 4H), without temporary tensors.

    Those of z and n are multiples of the state's; those of R_n h and r are multiples of the one of n.
    """
    r, z, n = gates.chunk(3, dim=3)
    factors = gates.new_empty(*r.shape[:3], 4 * r.shape[3])
    through_n, through_r, to_z, to_n = factors.chunk(4, dim=3)
    through_n.copy_(r)
    torch.mul(of_n, r, out=through_r)
    through_r.addcmul_(through_r, r, value=-1)  # R_n h * r * (1 - r)
    torch.sub(states[:-1], n, out=to_z).mul_(z)
    to_z.addcmul_(to_z, z, value=-1)  # (h - n) * z * (1 - z)
    torch.mul(n, n, out=to_n).neg_().add_(1)
    to_n.addcmul_(to_n, z, value=-1)  # (1 - z) * (1 - n * n)
    return factors


def _multiply(d: Tensor, d_states: Tensor, update: Tensor, recurrent: Tensor) -> None:
    """Turns the factors `d` into gradients, from the last step to the first.

    Args:
        d: (T, 2, B, 4H), overwritten.
        d_states: (T, 2, B, H), gradients of the outputs; overwritten by those of the states.
        update: (T, 2, B, H), the gate z.
        recurrent: (2, 3H, H).
    """
    size = recurrent.shape[2]
    down, quarters = recurrent.roll(size, dims=1), d.unflatten(3, (4, size))  # both n, r, z
    through_n, zn = quarters.split(2, dim=3)
    parts = d_states, update, d[..., : 3 * size], through_n, zn, zn[..., 1:, :]
    later: tuple[Tensor, ...] = ()
    for d_h, z, products, of_n, of_state, n in zip(*(reversed(part.unbind()) for part in parts), strict=True):
        if later:
            d_h.addcmul_(*later[:2]).baddbmm_(later[2], down)
        of_state.mul_(d_h.unsqueeze(2))
        of_n.mul_(n)
        later = d_h, z, products
