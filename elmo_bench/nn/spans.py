"""Spans of words: all candidates of a text, their vectors, the best that do not cross, and their antecedents.

After Lee et al. 2017. The N words of a document are given without padding; candidate (s, k) is the k + 1 words from
word s on. A table over candidates is (N, K), K being the maximum width of a span; a cell whose span would leave its
sentence is not `inside`. The antecedents of a span are scored, and the loss is the marginal likelihood of all correct
antecedents.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from elmo_bench.nn.feedforward import FFNN
from elmo_bench.nn.numerics import outer, product
from elmo_bench.nn.packing import on_device


def candidates(lengths: Sequence[int], max_span_width: int) -> np.ndarray:
    """(N, K) bool: which spans lie inside one of the sentences of these lengths."""
    left = np.concatenate([np.arange(length, 0, -1) for length in lengths]) if len(lengths) else np.zeros(0, int)
    return left[:, None] > np.arange(max_span_width)


def best_without_crossing(scores: np.ndarray, inside: np.ndarray, keep: int) -> np.ndarray:
    """The spans kept by a greedy search: in order of decreasing score, each span that crosses none already kept.

    Two spans cross if they overlap and neither contains the other. With equal scores, the earlier, then the shorter
    span comes first.

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
    last, first = list(range(n)), list(range(n))  # of kept spans: farthest end from a word on, farthest start to it
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
        own_size: V, of a word before the encoder; attended heads are sums of these vectors.
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
        """(N, K, F): the width feature of each candidate, each with its own dropout mask."""
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


BLOCK = 4  # targets in one product on a CPU; more would not fit into the cache
DEVICE_BLOCK = 64  # elsewhere; fewer would be too many small operations
BOUNDS = (1, 2, 3, 4, 5, 8, 16, 32, 64)  # the smallest distance in each bin after the first


class Antecedents(nn.Module):
    """s(i, j) = s_m(i) + s_m(j) + s_a(i, j) for every span i and the nearest `max_antecedents` spans j before it.

    s_a is an FFNN over [g_i; g_j; g_i * g_j; same speaker, genre, distance], the distance counted in spans.

    Args:
        span_size: G, of g.
        n_genres: number of genres; the vectors of genres 0 and 1 (none, unknown) start at zero.
        feature_size: F, of each feature.
        max_antecedents: the most antecedents that a span is paired with.
        hidden: of the FFNN.
        dropout: in the FFNN and on the features.
        block: pairs scored at once; if there are more, each block is recomputed in the backward pass to save memory.
    """

    bounds: Tensor

    def __init__(
        self,
        span_size: int,
        n_genres: int,
        feature_size: int,
        max_antecedents: int,
        hidden: int,
        dropout: float,
        block: int,
    ):
        super().__init__()
        self.max_antecedents, self.block = max_antecedents, block
        self.speaker = nn.Embedding(2, feature_size)
        self.genre = nn.Embedding(n_genres, feature_size)
        self.distance = nn.Embedding(len(BOUNDS) + 1, feature_size)
        self.ffnn = FFNN([span_size, span_size, span_size, 3 * feature_size], hidden, dropout)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("bounds", torch.tensor(BOUNDS), persistent=False)  # of distances
        for feature in (self.speaker, self.genre, self.distance):
            nn.init.xavier_uniform_(feature.weight)
        nn.init.zeros_(self.genre.weight[:2].data)

    def forward(self, g: Tensor, mention: Tensor, speakers: Tensor, genre: Tensor) -> Tensor:
        """(S, G), (S,) s_m, (S,) ids, () id -> (S, 1 + R): 0 for no antecedent, then antecedents, the nearest first.

        R is `max_antecedents`, or less in a short document; cells without a span hold -inf.
        """
        n = len(g)
        target_weight, antecedent_weight, product_weight, _ = self.ffnn.weights()
        as_target = torch.addmm(self.ffnn.first.bias, g, target_weight.t())  # (S, H)
        shared = as_target, g @ antecedent_weight.t(), g, product_weight, mention, speakers, genre
        step = max(self.block // max(self.max_antecedents, 1), 1)  # targets of a block
        many = n > step and torch.is_grad_enabled()
        table = g.new_full((n, 1 + min(self.max_antecedents, max(n - 1, 0))), -torch.inf)
        table[:, 0] = 0
        scores = []
        for first in range(0, n, step):
            arguments = (first, min(first + step, n), *shared)
            scores.append(checkpoint(self._score, *arguments, use_reentrant=False) if many else self._score(*arguments))
        target, antecedent = pairs(n, self.max_antecedents, device=g.device)
        return table.index_put((target, target - antecedent), torch.cat(scores)) if scores else table

    def _score(
        self, first: int, last: int, as_target: Tensor, as_antecedent: Tensor, g: Tensor, product_weight: Tensor,
        mention: Tensor, speakers: Tensor, genre: Tensor,
    ) -> Tensor:  # fmt: skip
        """(P,) scores of the pairs of targets from `first` to before `last`."""
        target, antecedent = pairs(len(g), self.max_antecedents, first, last, g.device)
        shared = as_target, as_antecedent, g, product_weight
        spans = PairProduct.apply(*shared, self.max_antecedents, first, last)  # (P, H), with the bias
        features = self._features(target, antecedent, speakers, genre)  # (P, 3F)
        scores = self.ffnn(spans.addmm_(features, self.ffnn.weights()[3].t()))
        return scores + mention[target] + mention[antecedent]

    def _features(self, target: Tensor, antecedent: Tensor, speakers: Tensor, genre: Tensor) -> Tensor:
        """(P, 3F)."""
        same = (speakers[target] == speakers[antecedent]).long()
        distance = torch.bucketize(target - antecedent, self.bounds, right=True)
        genres = self.genre(genre).expand(len(target), -1)
        return self.dropout(torch.cat([self.speaker(same), genres, self.distance(distance)], dim=1))


def pairs(
    n: int, max_antecedents: int, first: int = 0, last: int | None = None, device: Any = None
) -> tuple[Tensor, Tensor]:
    """Targets and antecedents, both (P,), of targets from `first` to before `last`.

    Each target i is paired with the nearest `max_antecedents` spans before it, the farthest first.
    """
    last = n if last is None else last
    total = int(np.minimum(np.arange(first, last), max_antecedents).sum())  # P, without waiting for a GPU
    targets = torch.arange(first, last, device=device)
    counts = targets.clamp(max=max_antecedents)
    row = torch.arange(last - first, device=device).repeat_interleave(counts, output_size=total)  # (P,)
    target = targets[row]
    return target, target - counts.cumsum(0)[row] + torch.arange(total, device=device)


class PairProduct(torch.autograd.Function):
    """a[i] + b[j] + sum_d g_i[d] g_j[d] w[:, d] of all `pairs(n, max_antecedents, first, last)`.

    a, b (n, H), g (n, D) and w (H, D) -> (P, H). The elementwise products of all P pairs are never stored together:
    they are computed for one block of targets at a time, and again in the backward pass, for which only g and w are
    kept.
    """

    @staticmethod
    def forward(
        ctx: Any, a: Tensor, b: Tensor, g: Tensor, w: Tensor, max_antecedents: int, first: int, last: int
    ) -> Tensor:
        w = w.contiguous()  # part of a layer's weight
        ctx.save_for_backward(g, w)
        ctx.range = max_antecedents, first, last
        parts = []
        for targets, antecedents, places in _target_blocks(max_antecedents, first, last, g.device):
            products = g[targets].unsqueeze(1) * g[antecedents]  # (n, R, D)
            block = product(products.flatten(0, 1), w.t()).view(*products.shape[:2], -1)  # (n, R, H)
            block.add_(a[targets].unsqueeze(1)).add_(b[antecedents])
            parts.append(block.flatten(0, 1).index_select(0, places))
        return torch.cat(parts) if parts else g.new_zeros(0, len(w))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        (g, w), (max_antecedents, first, last), done = ctx.saved_tensors, ctx.range, 0
        to_a, to_b = (g.new_zeros(len(g), len(w)) for _ in range(2))
        to_g, to_w = torch.zeros_like(g), torch.zeros_like(w)
        for targets, antecedents, places in _target_blocks(max_antecedents, first, last, g.device):
            n, r = targets.stop - targets.start, antecedents.stop - antecedents.start
            part = gradients[0][done : done + len(places)]
            done += len(places)
            block = g.new_zeros(n * r, len(w)).index_copy_(0, places, part)  # (n R, H)
            by_pair = block.view(n, r, -1)
            to_a[targets] += by_pair.sum(1)
            to_b[antecedents] += by_pair.sum(0)
            products = g[targets].unsqueeze(1) * g[antecedents]  # (n, R, D)
            to_w += outer(block, products.flatten(0, 1))
            to_products = product(block, w).view_as(products)
            to_g[targets] += torch.mul(to_products, g[antecedents], out=products).sum(1)
            to_g[antecedents] += to_products.mul_(g[targets].unsqueeze(1)).sum(0)
        return to_a, to_b, to_g, to_w, None, None, None


def _target_blocks(max_antecedents: int, first: int, last: int, device: Any) -> Iterator[tuple[slice, slice, Tensor]]:
    """Targets (n), the antecedents of any of them (R), and which of all n R pairs count: (P,) indices."""
    size = BLOCK if device.type == "cpu" else DEVICE_BLOCK
    for start in range(first, last, size):
        end = min(start + size, last)
        lowest = max(start - max_antecedents, 0)
        i, j = np.arange(start, end)[:, None], np.arange(lowest, end)
        places = np.flatnonzero((j < i) & (j >= i - max_antecedents))  # on the CPU, without waiting for a GPU
        yield slice(start, end), slice(lowest, end), on_device(places, device)


def right_antecedents(clusters: Tensor, scores: Tensor) -> Tensor:
    """Which cells of the table of scores (S, 1 + R) are correct: (S, 1 + R) bool.

    Args:
        clusters: (S,) int64, the cluster of each span, -1 for a span in no cluster.
        scores: from `Antecedents`. The first cell is correct for a span without a correct antecedent in its row.
    """
    n, width = scores.shape
    place = torch.arange(n, device=scores.device).unsqueeze(1) - torch.arange(1, width, device=scores.device)
    right = (clusters[place.clamp(min=0)] == clusters.unsqueeze(1)) & (clusters.unsqueeze(1) >= 0) & (place >= 0)
    return torch.cat([~right.any(1, keepdim=True), right], dim=1)


def marginal_loss(scores: Tensor, right: Tensor) -> Tensor:
    """Negative log of the total probability of each span's correct antecedents, summed over the spans, in nats."""
    gold = scores.masked_fill(~right, -torch.inf)
    return (scores.logsumexp(1) - gold.logsumexp(1)).sum()


def link(scores: Tensor) -> list[list[int]]:
    """Clusters of two or more spans, each span linked to its best antecedent: (S, 1 + R) -> span numbers in order."""
    first, clusters = list(range(len(scores))), dict[int, list[int]]()
    for i, column in enumerate(scores.argmax(1).tolist()):
        first[i] = first[i - column]
        clusters.setdefault(first[i], []).append(i)
    return sorted((cluster for cluster in clusters.values() if len(cluster) > 1), key=itemgetter(1))
