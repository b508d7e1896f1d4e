"""A linear-chain conditional random field with hard constraints (Lafferty et al. 2001; paper, section 4, NER)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from elmo_bench.text.tags import Constraints

SAFE_SPREAD = 100.0  # nats a step; see `_exponential_steps`
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
            tags: (B, T) int64, an allowed sequence; masked positions may have any value from 0 to K-1.
            mask: (B, T) bool, true on words, which come first; at least one in every sentence.

        Returns:
            (B,) in nats, in the dtype of the emissions but never in 16 bits; at least 0 up to rounding.
        """
        wide = torch.where(mask.unsqueeze(2), emissions.double(), 0.0)  # (B, T, K)
        start, pairs, end = (table.double() for table in self._tables())
        with torch.no_grad():
            low, high = torch.aminmax(wide, dim=2)  # (B, T) each
            moves = torch.cat([start, pairs.flatten(), end])
            moves = torch.where(moves > FORBIDDEN, moves.abs(), 0.0)
            spread = (high - low).max() + 2 * moves.max()  # its value is needed here: the only wait for a GPU
        steps = _exponential_steps if spread <= SAFE_SPREAD else _logarithmic_steps
        loss = steps(wide, start, pairs, end, mask) - _score(wide, tags, start, pairs, end, mask)
        return loss.to(torch.promote_types(emissions.dtype, torch.float32))  # (B,)

    def decode(self, emissions: Tensor, mask: Tensor) -> list[list[int]]:
        """The best sequence that the constraints allow, for each sentence; arguments as in `forward`."""
        start, pairs, end = (table.masked_fill(table == FORBIDDEN, -torch.inf) for table in self._tables())
        return viterbi(emissions.float(), start, pairs, end, mask)

    def _tables(self) -> tuple[Tensor, Tensor, Tensor]:
        """Scores (K,), (K, K), (K,), FORBIDDEN where the constraints do not allow a tag or transition."""
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


def _exponential_steps(emissions: Tensor, start: Tensor, pairs: Tensor, end: Tensor, mask: Tensor) -> Tensor:
    """The log of the sum over all allowed sequences, (B,), in double precision.

    The forward algorithm on probabilities, which every step scales to sum to 1 (Rabiner 1989, section V.A), so that a
    step is one matrix product. A path that underflows (below e^-700 of the sentence's best) matters only if the best
    path cannot catch up with it: with B/I/O/E/S any tag leads to any other in two steps, so as long as no step's scores
    differ by more than SAFE_SPREAD, the lost part is below e^-400 of the sum.
    """
    peak = emissions.amax(2)  # (B, T)
    weights, moves = (emissions - peak.unsqueeze(2)).exp(), pairs.exp()  # (B, T, K), (K, K)
    totals, alpha = [], start.exp().expand(len(mask), -1)  # (B, K)
    for step, (weight, here) in enumerate(zip(weights.unbind(1), mask.unsqueeze(2).unbind(1), strict=True)):
        following = (alpha @ moves if step else alpha) * weight
        total = following.sum(1, keepdim=True)  # (B, 1)
        alpha = torch.where(here, following / total, alpha)
        totals.append(total)
    scales = torch.cat(totals, dim=1).log() + peak  # (B, T)
    return torch.where(mask, scales, 0.0).sum(1) + (alpha @ end.exp()).log()


def _logarithmic_steps(emissions: Tensor, start: Tensor, pairs: Tensor, end: Tensor, mask: Tensor) -> Tensor:
    """The same in log space, for scores of any size and several times slower."""
    alpha = start + emissions[:, 0]  # (B, K)
    for step in range(1, emissions.shape[1]):
        following = torch.logsumexp(alpha.unsqueeze(2) + pairs, dim=1) + emissions[:, step]  # (B, K)
        alpha = torch.where(mask[:, step].unsqueeze(1), following, alpha)
    return torch.logsumexp(alpha + end, dim=1)


@torch.no_grad()
def viterbi(emissions: Tensor, start: Tensor, pairs: Tensor, end: Tensor, mask: Tensor) -> list[list[int]]:
    """The highest-scoring tag sequence of each sentence; -inf in a table forbids a tag or a transition.

    Args:
        emissions: (B, T, K), finite.
        start, pairs, end: (K,), (K, K) [from, to], (K,) scores.
        mask: (B, T) bool, true on words, which come first; at least one in every sentence.

    Returns:
        B lists, as long as the sentences. If the tables allow no sequence at all, the result is arbitrary.
    """
    last = mask.sum(1) - 1  # (B,)
    score = start + emissions[:, 0]  # (B, K)
    scores, pointers = [score], []
    for step in range(1, emissions.shape[1]):
        best, pointer = (score.unsqueeze(2) + pairs).max(1)  # (B, K), (B, K)
        score = best + emissions[:, step]
        scores.append(score)
        pointers.append(pointer)
    rows = torch.arange(len(last), device=last.device)
    final = torch.stack(scores, 1)[rows, last] + end  # (B, K)
    tag = closing = final.argmax(1)  # (B,)
    path = []
    for step in range(emissions.shape[1] - 1, -1, -1):
        if step < len(pointers):
            tag = pointers[step].gather(1, tag.unsqueeze(1)).squeeze(1)
        tag = torch.where(step >= last, closing, tag)
        path.append(tag)
    best_path = torch.stack(path[::-1], 1).tolist()  # B x T
    return [tags[: n + 1] for tags, n in zip(best_path, last.tolist(), strict=True)]
