"""The parts of the coreference model against plain definitions, one span and one pair at a time."""

import numpy as np
import pytest
import torch
from torch import Tensor

from elmo_bench.nn import encoders
from elmo_bench.nn import spans as pairs_module
from elmo_bench.nn.encoders import CoupledBiLSTM
from elmo_bench.nn.feedforward import FFNN
from elmo_bench.nn.spans import (
    Antecedents,
    PairProduct,
    best_without_crossing,
    candidates,
    link,
    marginal_loss,
    pairs,
    right_antecedents,
)
from tests.fakes import for_each

# The encoder.


def by_steps(lstm: CoupledBiLSTM, sentence: Tensor, kept: Tensor | None = None) -> Tensor:
    """The definition, one sentence (T, D), a word at a time; kept (2, H) is the mask of its hidden state."""
    sides = []
    for direction in range(2):
        weight, bias = lstm.input.weight.chunk(2)[direction], lstm.input.bias.chunk(2)[direction]
        c, h = lstm.initial[direction, :, 0]
        states = []
        for x in sentence if direction == 0 else sentence.flip(0):
            h = h if kept is None else h * kept[direction]
            i, j, o = (weight @ x + bias + h @ lstm.recurrent[direction]).chunk(3)
            c = (1 - i.sigmoid()) * c + i.sigmoid() * j.tanh()
            h = c.tanh() * o.sigmoid()
            states.append(h)
        sides.append(torch.stack(states if direction == 0 else states[::-1]))
    return torch.cat(sides, dim=1)


def test_the_encoder_equals_its_definition_on_each_sentence():
    torch.manual_seed(1)
    lstm, lengths = CoupledBiLSTM(4, 3), [3, 1, 6, 3]
    x = torch.randn(13, 4)
    h = lstm(x, lengths)
    expected = torch.cat([by_steps(lstm, sentence) for sentence in x.split(lengths)])
    assert torch.allclose(h, expected, atol=1e-6)
    ours, theirs = (torch.autograd.grad(each.square().sum(), list(lstm.parameters())) for each in (h, expected))
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_a_sequence_keeps_one_mask_of_its_hidden_state(monkeypatch):
    torch.manual_seed(2)
    lstm, lengths = CoupledBiLSTM(4, 3, dropout=0.5), [2, 5, 3]
    masks = []
    dropout = encoders.F.dropout
    monkeypatch.setattr(encoders.F, "dropout", lambda *a, **k: masks.append(dropout(*a, **k)) or masks[-1])
    x = torch.randn(10, 4)
    h = lstm(x, lengths)
    (mask,) = masks  # (2, B, H), sentences longest first
    assert set(mask.unique().tolist()) == {0.0, 2.0}
    rows = [2, 0, 1]
    sentences = zip(x.split(lengths), rows, strict=True)
    assert torch.allclose(h, torch.cat([by_steps(lstm, s, mask[:, row]) for s, row in sentences]), atol=1e-6)
    assert torch.equal(lstm.eval()(x, lengths), lstm(x, lengths))


def test_recurrent_blocks_start_orthonormal():
    lstm = CoupledBiLSTM(4, 6)
    for block in lstm.recurrent.detach().reshape(2, 6, 3, 6).permute(0, 2, 1, 3).flatten(0, 1):
        assert torch.allclose(block @ block.t(), torch.eye(6), atol=1e-5)


# Pruning.


def greedy(scores: np.ndarray, inside: np.ndarray, keep: int) -> list[int]:
    """The definition: by falling score, each span that crosses none taken before, until there are enough."""
    widest = scores.shape[1]
    order = sorted((-scores[s, k], s * widest + k) for s, k in zip(*np.nonzero(inside), strict=True))
    kept = []
    for _, place in order:
        start, end = int(place // widest), int(place // widest + place % widest)
        if len(kept) < keep and not any(a < start <= b < end or start < a <= end < b for a, b in kept):
            kept.append((start, end))
    return sorted(start * widest + end - start for start, end in kept)


def test_pruning_equals_greedy_search():
    rng = np.random.default_rng(1)
    crossed = 0
    for _ in range(400):
        lengths, widest = rng.integers(1, 9, rng.integers(1, 6)).tolist(), int(rng.integers(1, 12))
        inside = candidates(lengths, widest)
        scores = rng.integers(0, rng.choice([3, 1000]), inside.shape).astype(float)  # often equal
        keep = int(rng.integers(0, 20))
        kept = best_without_crossing(scores, inside, keep).tolist()
        assert kept == greedy(scores, inside, keep)
        crossed += kept != sorted(np.argsort(np.where(inside, -scores, np.inf), axis=None, kind="stable")[:keep])
    assert crossed > 100


def test_candidates_stay_inside_their_sentence():
    assert candidates([2, 1], 3).tolist() == [[True, True, False], [True, False, False], [True, False, False]]
    assert candidates([], 3).shape == (0, 3)


# Mention scores.


def score_of(ffnn: FFNN, joined: Tensor) -> Tensor:
    """The FFNN on its whole input, without dropout."""
    return ffnn.score(ffnn.second(ffnn.first(joined).relu()).relu()).squeeze(-1)


# Antecedents.


@pytest.mark.slow
@for_each("block", "2 100")
def test_pair_products_equal_their_definition_and_its_gradient(block, monkeypatch):
    monkeypatch.setattr(pairs_module, "BLOCK", block)
    torch.manual_seed(4)
    sizes = (7, 3), (7, 3), (7, 4), (3, 4)
    a, b, g, w = tensors = [torch.randn(*size, dtype=torch.double, requires_grad=True) for size in sizes]
    for numbers in ((2, 0, 7), (10, 0, 7), (3, 2, 6)):  # of antecedents, of the first target and behind the last
        target, antecedent = pairs(7, *numbers)
        expected = a[target] + b[antecedent] + (g[target] * g[antecedent]) @ w.t()
        assert torch.allclose(PairProduct.apply(*tensors, *numbers), expected)
        assert torch.autograd.gradcheck(PairProduct.apply, (*tensors, *numbers))  # type: ignore[arg-type]


BINS = [0, 1, 2, 3, 4, 5, 5, 5, *[6] * 8, *[7] * 16, *[8] * 32, *[9] * 100]  # by distance


@pytest.mark.slow
@for_each("block", "1000 25")
def test_antecedent_scores_equal_their_definition(block):
    torch.manual_seed(5)
    module = Antecedents(6, n_genres=4, feature_size=2, max_antecedents=70, hidden=5, dropout=0.0, block=block)
    g, mention = torch.randn(80, 6, requires_grad=True), torch.randn(80, requires_grad=True)
    speakers, genre = torch.randint(3, (80,)), torch.tensor(3)
    scores = module(g, mention, speakers, genre)
    assert scores.shape == (80, 71)
    i, j = torch.tensor([(i, j) for i in range(80) for j in range(max(i - 70, 0), i)]).T
    same, distance = (speakers[i] == speakers[j]).long(), torch.tensor(BINS)[i - j]
    features = module.speaker.weight[same], module.genre.weight[[3] * len(i)], module.distance.weight[distance]
    joined = torch.cat([g[i], g[j], g[i] * g[j], *features], dim=1)
    expected = torch.full((80, 71), -torch.inf)
    expected[:, 0] = 0
    expected[i, i - j] = mention[i] + mention[j] + score_of(module.ffnn, joined)
    assert torch.equal(scores == -torch.inf, expected == -torch.inf)
    assert torch.allclose(scores, expected, atol=1e-5)
    clusters = torch.randint(-1, 4, (80,))
    losses = [marginal_loss(table, right_antecedents(clusters, table)) for table in (scores, expected)]
    ours, theirs = (torch.autograd.grad(loss, [g, mention, *module.parameters()]) for loss in losses)
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-5)


def test_the_marginal_likelihood_sums_over_all_right_antecedents():
    torch.manual_seed(6)
    n, max_antecedents = 9, 4
    scores = torch.randn(n, 1 + max_antecedents, dtype=torch.double)
    for i in range(n):
        scores[i, 1 + i :] = -torch.inf
    clusters = torch.tensor([0, -1, 0, 1, -1, 0, 1, 1, 0])
    right = right_antecedents(clusters, scores)
    loss = 0.0
    for i in range(n):
        gold = [i - j for j in range(max(i - max_antecedents, 0), i) if clusters[i] == clusters[j] >= 0] or [0]
        assert right[i].nonzero().flatten().tolist() == sorted(gold)
        p = scores[i].softmax(0)
        loss -= float(p[gold].sum().log())
    assert float(marginal_loss(scores, right)) == pytest.approx(loss)


def test_linking_follows_the_best_antecedents():
    scores = torch.full((6, 4), -torch.inf)
    scores[:, 0] = 0
    scores[2, 2] = scores[3, 3] = scores[5, 2] = 1.0  # 2 -> 0, 3 -> 0, 5 -> 3; 1 and 4 alone
    assert link(scores) == [[0, 2, 3, 5]]
    scores[4, 3] = 0.5
    assert link(scores) == [[0, 2, 3, 5], [1, 4]]
    assert link(scores[:1, :1]) == []
