"""Spans of words: all candidates of a text, their vectors, and the best that do not cross (Lee et al. 2017).

The N words of a document are given without padding; candidate (s, k) is the k + 1 words from word s on. A table over
candidates is (N, K), K being the most words of a span; a cell whose span would leave its sentence is not `inside`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from elmo_bench.nn.feedforward import FFNN
from elmo_bench.nn.packing import on_device


def candidates(lengths: Sequence[int], max_span_width: int) -> np.ndarray:
    """(N, K) bool: which spans lie inside one of the sentences of these lengths."""
    left = np.concatenate([np.arange(length, 0, -1) for length in lengths]) if len(lengths) else np.zeros(0, int)
    return left[:, None] > np.arange(max_span_width)


def best_without_crossing(scores: np.ndarray, inside: np.ndarray, keep: int) -> np.ndarray:
    """The spans that a greedy search keeps: in order of falling score, each that crosses none already kept.

    Two spans cross if they overlap and neither contains the other. Of equal scores the earlier, then the shorter span
    comes first.

    Args:
        scores: (N, K).
        inside: (N, K) bool, the candidates.
        keep: the most spans to keep.

    Returns:
        Their flat indices s * K + k, sorted: by first, then by last word.
    """
    flat = np.flatnonzero(inside)
    order = flat[np.argsort(-scores.ravel()[flat], kind="stable")].tolist()
    n, widest = inside.shape
    last, first = list(range(n)), list(range(n))  # of the spans kept: farthest end from a word on, farthest start to it
    kept: list[int] = []
    for place in order:
        if len(kept) == keep:
            break
        start, k = divmod(place, widest)
        end = start + k
        crosses = k and (max(last[start + 1 : end + 1]) > end or min(first[start:end]) < start)
        if not crosses:
            kept.append(place)
            last[start], first[end] = max(last[start], end), min(first[end], start)
    return np.array(sorted(kept), dtype=np.int64)


class Spans(nn.Module):
    """Vectors and mention scores of spans: [first; last; width; attended head], scored by an FFNN.

    Args:
        encoded_size: E, of a word after the encoder.
        own_size: V, of a word before it; the attended heads are made of these vectors.
        max_span_width: K, the words of the longest span.
        width_size: F, of the span width feature.
        hidden: of the FFNN.
        dropout: in the FFNN and on the width feature.
        block: words whose spans are scored at once; if there are more, each block is recomputed in the backward pass
            to save memory.
    """

    def __init__(
        self,
        encoded_size: int,
        own_size: int,
        max_span_width: int,
        width_size: int,
        hidden: int,
        dropout: float,
        block: int,
    ):
        super().__init__()
        self.max_span_width, self.block = max_span_width, block
        self.attention = nn.Linear(encoded_size, 1)
        self.width = nn.Embedding(max_span_width, width_size)
        self.ffnn = FFNN([encoded_size, encoded_size, width_size, own_size], hidden, dropout)
        self.dropout = nn.Dropout(dropout)
        self.output_size = sum(self.ffnn.parts)
        nn.init.xavier_uniform_(self.width.weight)
        nn.init.xavier_uniform_(self.attention.weight)

    def widths(self, inside: np.ndarray) -> Tensor:
        """(N, K, F): the width feature of each candidate, each with dropout of its own."""
        return self.dropout(self.width.weight.expand(*inside.shape, -1))

    def forward(self, h: Tensor, own: Tensor, widths: Tensor, inside: np.ndarray) -> Tensor:
        """(N, E), (N, V), (N, K, F), (N, K) bool -> mention scores (N, K), -inf where there is no candidate.

        The first layer multiplies words instead of spans: an attended head is a weighted sum of words, and so is its
        product.
        """
        first, last, width, head = self.ffnn.weights()
        as_first = torch.addmm(self.ffnn.first.bias, h, first.t())  # (N, H)
        shared = as_first, h @ last.t(), own @ head.t(), self.attention(h).squeeze(1)
        many = len(h) > self.block and torch.is_grad_enabled()
        scores = []
        for start in range(0, len(h), self.block):
            places = on_device(np.stack(inside[start : start + self.block].nonzero()), h.device)
            starts, k = places.unbind()  # (P,), (P,)
            arguments = starts + start, k, *shared, widths, width
            scores.append(checkpoint(self._score, *arguments, use_reentrant=False) if many else self._score(*arguments))
        table = h.new_full((inside.size,), -torch.inf)
        places = on_device(np.flatnonzero(inside), h.device)
        return table.index_copy(0, places, torch.cat([*scores, h.new_zeros(0)])).view(inside.shape)

    def _score(
        self, starts: Tensor, k: Tensor, first: Tensor, last: Tensor, own: Tensor, logits: Tensor, widths: Tensor,
        width: Tensor,
    ) -> Tensor:  # fmt: skip
        """(P,) scores of the spans, from the products of the words with the first layer."""
        heads = self._attend(starts, k, logits, own)
        chosen = widths.flatten(0, 1).index_select(0, starts * widths.shape[1] + k)  # (P, F)
        words = first.index_select(0, starts).add_(last.index_select(0, starts + k)).add_(heads)  # (P, H)
        return self.ffnn(words.addmm_(chosen, width.t()))

    def _attend(self, starts: Tensor, k: Tensor, logits: Tensor, own: Tensor) -> Tensor:
        """(P, V): the words (N, V) of each span, weighted by the softmax of their logits (N,) within it."""
        places = torch.arange(self.max_span_width, device=k.device)  # (K,)
        words = (starts.unsqueeze(1) + places).clamp(max=len(own) - 1)  # (P, K)
        weights = logits[words].masked_fill(places > k.unsqueeze(1), -torch.inf).softmax(1)  # (P, K)
        return F.embedding_bag(words, own, per_sample_weights=weights, mode="sum")

    def vectors(self, h: Tensor, own: Tensor, widths: Tensor, places: Tensor) -> Tensor:
        """(P, 2E + F + V) of the candidates at these flat indices s * K + k."""
        starts, k = places // self.max_span_width, places % self.max_span_width
        heads = self._attend(starts, k, self.attention(h).squeeze(1), own)
        return torch.cat([h[starts], h[starts + k], widths[starts, k], heads], dim=1)
