"""Antecedent scores of spans, and the marginal likelihood of all correct antecedents (Lee et al. 2017)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from elmo_bench.nn.compiled import usable
from elmo_bench.nn.dropout import Dropout
from elmo_bench.nn.feedforward import FFNN
from elmo_bench.nn.pairs import PairProduct, pairs

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
        self.dropout = Dropout(dropout)
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
        spans = PairProduct.apply(*shared, self.max_antecedents, first, last, usable(g))  # (P, H), with the bias
        features = self._features(target, antecedent, speakers, genre)  # (P, 3F)
        scores = self.ffnn(spans.addmm_(features, self.ffnn.weights()[3].t()))
        return scores + mention[target] + mention[antecedent]

    def _features(self, target: Tensor, antecedent: Tensor, speakers: Tensor, genre: Tensor) -> Tensor:
        """(P, 3F)."""
        same = (speakers[target] == speakers[antecedent]).long()
        distance = torch.bucketize(target - antecedent, self.bounds, right=True)
        genres = self.genre(genre).expand(len(target), -1)
        return self.dropout(torch.cat([self.speaker(same), genres, self.distance(distance)], dim=1))


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
    clusters: list[list[int]] = []
    cluster_of: dict[int, int] = {}
    for i, column in enumerate(scores.argmax(1).tolist()):
        if not column:
            continue
        antecedent = i - column
        if antecedent not in cluster_of:
            cluster_of[antecedent] = len(clusters)
            clusters.append([antecedent])
        cluster_of[i] = cluster_of[antecedent]
        clusters[cluster_of[i]].append(i)
    return clusters
