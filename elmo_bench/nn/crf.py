"""A linear-chain conditional random field with hard constraints (Lafferty et al. 2001; paper, section 4, NER)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elmo_bench.nn.viterbi import viterbi
from elmo_bench.text.tags import Constraints

SAFE_SPREAD = 100.0  # nats a step; see `_log_partition`
FORBIDDEN = -1e9  # stands for -inf where gradients flow


class CRF(nn.Module):
    """Scores of tag sequences: emissions plus transitions, normalised over the sequences that the constraints allow.

    Sequences that break a constraint have probability zero in training as in decoding, so no probability mass is spent
    on what Viterbi can never return (Wei et al. 2021 find this better than constraints at decoding only). Forbidden
    transitions therefore receive no gradient.

    Args:
        n_tags: K.
        constraints: what may start, follow and end; None allows everything.
        ends: learn a score for each tag at the start and at the end of a sentence.
    """

    start_allowed: Tensor
    pairs_allowed: Tensor
    end_allowed: Tensor

    def __init__(self, n_tags: int, constraints: Constraints | None = None, ends: bool = False):
        super().__init__()
        self.transitions = nn.Parameter(torch.empty(n_tags, n_tags).uniform_(-0.1, 0.1))  # (K, K) [from, to]
        self.start = nn.Parameter(torch.empty(n_tags).uniform_(-0.1, 0.1)) if ends else None
        self.end = nn.Parameter(torch.empty(n_tags).uniform_(-0.1, 0.1)) if ends else None
        allowed = constraints or Constraints([True] * n_tags, [[True] * n_tags] * n_tags, [True] * n_tags)
        for name, table in zip(("start", "pairs", "end"), allowed, strict=True):
            self.register_buffer(f"{name}_allowed", torch.tensor(table, dtype=torch.bool), persistent=False)

    def forward(self, emissions: Tensor, tags: Tensor, mask: Tensor) -> Tensor:
        """Negative log likelihood of each sentence.

        Args:
            emissions: (B, T, K) unnormalised scores; masked positions are not read.
            tags: (B, T) int64, a sequence that the constraints allow; masked positions may hold anything from 0 to K-1.
            mask: (B, T) bool, true on words, which come first; at least one in every sentence.

        Returns:
            (B,) in nats, in the dtype of the emissions but never in 16 bits; at least 0 up to rounding.
        """
        wide = torch.where(mask.unsqueeze(2), emissions.double(), 0.0)  # (B, T, K)
        start, pairs, end = (table.double() for table in self._tables())
        loss = _log_partition(wide, start, pairs, end, mask) - _score(wide, tags, start, pairs, end, mask)
        return loss.to(torch.promote_types(emissions.dtype, torch.float32))  # (B,)

    def decode(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """The best sequence that the constraints allow, for each sentence; arguments as in `forward`."""
        start, pairs, end = (table.masked_fill(table == FORBIDDEN, -torch.inf) for table in self._tables())
        return viterbi(emissions.float(), start, pairs, end, mask)

    def _tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """Scores (K,), (K, K), (K,) with FORBIDDEN where the constraints say so."""
        zeros = self.transitions.new_zeros(len(self.transitions))
        start = zeros if self.start is None else self.start
        end = zeros if self.end is None else self.end
        return (
            start.masked_fill(~self.start_allowed, FORBIDDEN),
            self.transitions.masked_fill(~self.pairs_allowed, FORBIDDEN),
            end.masked_fill(~self.end_allowed, FORBIDDEN),
        )


def _score(emissions: Tensor, tags: Tensor, start: Tensor, pairs: Tensor, end: Tensor, mask: Tensor) -> Tensor:
    """The score (B,) of the given sequences."""
    emitted = emissions.gather(2, tags.unsqueeze(2)).squeeze(2)  # (B, T)
    moved = pairs[tags[:, :-1], tags[:, 1:]]  # (B, T-1)
    last = tags.gather(1, mask.sum(1, keepdim=True) - 1).squeeze(1)  # (B,)
    zero = emissions.new_zeros(())
    total = torch.where(mask, emitted, zero).sum(1) + torch.where(mask[:, 1:], moved, zero).sum(1)
    return total + start[tags[:, 0]] + end[last]


def _log_partition(emissions: Tensor, start: Tensor, pairs: Tensor, end: Tensor, mask: Tensor) -> Tensor:
    """The log of the sum over all allowed sequences, (B,), in double precision.

    In exponential space a step is one matrix product. What underflows there (below e^-700 of the sentence's best) can
    only matter if the best cannot catch up with it: with B/I/O/E/S any tag leads to any other in two steps, so as long
    as no step's scores lie more than SAFE_SPREAD apart, the lost part is below e^-400 of the sum. Beyond, in log space.
    """
    with torch.no_grad():
        low, high = torch.aminmax(emissions, dim=2)  # (B, T) each
        moves = torch.cat([start, pairs.flatten(), end])
        moves = moves[moves > FORBIDDEN]
        spread = (high - low).max() + 2 * moves.abs().max()
    steps = _exponential_steps if spread <= SAFE_SPREAD else _logarithmic_steps
    return steps(emissions, start, pairs, end, mask)


def _exponential_steps(emissions: Tensor, start: Tensor, pairs: Tensor, end: Tensor, mask: Tensor) -> Tensor:
    """Steps past a sentence's end do not count."""
    return _ExponentialSteps.apply(emissions, start, pairs, end, mask)  # type: ignore[return-value]


class _ExponentialSteps(torch.autograd.Function):
    """The forward algorithm on probabilities scaled to sum to 1 at every step.

    The gradients are the expected counts of the forward-backward algorithm (Rabiner 1989, sections III.A and V.A), in
    fewer operations than autograd would take.
    """

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, start: Tensor, pairs: Tensor, end: Tensor, mask: Tensor) -> Tensor:
        peak = emissions.amax(2)  # (B, T)
        weights = (emissions - peak.unsqueeze(2)).exp().transpose(0, 1).contiguous()  # (T, B, K)
        moves, ending = pairs.exp(), end.exp()  # (K, K), (K,)
        alphas, totals = torch.empty_like(weights), weights.new_empty(*weights.shape[:2], 1)
        torch.mul(start.exp(), weights[0], out=alphas[0])
        for step, (alpha, weight, total) in enumerate(zip(alphas, weights, totals, strict=True)):
            if step:
                torch.mm(alphas[step - 1], moves, out=alpha).mul_(weight)
            alpha.div_(torch.sum(alpha, 1, keepdim=True, out=total))
        last, sentences = mask.sum(1) - 1, torch.arange(len(mask), device=mask.device)  # (B,) each
        reached = alphas[last, sentences] @ ending  # (B,)
        ctx.save_for_backward(weights.div_(totals), moves, ending, alphas, last, sentences, reached)
        scale = totals.squeeze(2).t().log() + peak  # (B, T)
        return torch.where(mask, scale, 0).sum(1) + reached.log()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        weights, moves, ending, alphas, last, sentences, reached = ctx.saved_tensors
        betas, moved = torch.zeros_like(alphas), torch.empty_like(alphas)  # (T, B, K)
        betas[last, sentences] = ending * (gradients[0] / reached).unsqueeze(1)
        back = moves.t().contiguous()
        for step in range(len(alphas) - 1, 0, -1):  # of a sentence that ends earlier, zeros come
            torch.mul(weights[step], betas[step], out=moved[step])
            betas[step - 1].addmm_(moved[step], back)
        d = alphas * betas  # (T, B, K) how probable each tag is, times the sentence's gradient
        d_pairs = moves * (alphas[:-1].flatten(0, 1).t() @ moved[1:].flatten(0, 1))
        return d.transpose(0, 1), d[0].sum(0), d_pairs, d[last, sentences].sum(0), None


def _logarithmic_steps(emissions: Tensor, start: Tensor, pairs: Tensor, end: Tensor, mask: Tensor) -> Tensor:
    """The same for scores of any size, several times slower."""
    alpha = start + emissions[:, 0]  # (B, K)
    for step in range(1, emissions.shape[1]):
        following = torch.logsumexp(alpha.unsqueeze(2) + pairs, dim=1) + emissions[:, step]  # (B, K)
        alpha = torch.where(mask[:, step].unsqueeze(1), following, alpha)
    return torch.logsumexp(alpha + end, dim=1)
