"""The CRF against brute force and an independent implementation; Viterbi; constraints."""

from itertools import pairwise, product
from typing import Any

import pytest
import torch
from torch import Tensor
from torchcrf import CRF as Oracle

from elmo_bench.nn import crf as crf_module
from elmo_bench.nn.crf import CRF
from elmo_bench.text.tags import Constraints, constraints, labels
from tests.fakes import for_each, masks

BIOES = labels(["LOC", "PER"], "bioes")  # 9
IOB2 = labels(["LOC", "PER"], "iob2")  # 5


def batch(lengths: list[int], n_tags: int, size: float = 2.0, dtype=torch.float64) -> tuple[Tensor, Tensor]:
    emissions = size * torch.randn(len(lengths), max(lengths), n_tags, dtype=dtype)
    return emissions.requires_grad_(), masks(*lengths)


def paths(crf: CRF, emissions: Tensor, allowed: Constraints | None) -> dict[tuple[int, ...], Tensor]:
    """The score of every allowed tag sequence of one sentence (T, K), by definition."""
    scores = {}
    for path in product(range(emissions.shape[1]), repeat=len(emissions)):
        pairs = list(pairwise(path))
        if allowed and not (
            allowed.start[path[0]] and allowed.end[path[-1]] and all(allowed.pairs[i][j] for i, j in pairs)
        ):
            continue
        score = sum((emissions[t, tag] for t, tag in enumerate(path)), torch.zeros((), dtype=emissions.dtype))
        score = score + sum(crf.transitions[i, j] for i, j in pairs)
        if crf.start is not None and crf.end is not None:
            score = score + crf.start[path[0]] + crf.end[path[-1]]
        scores[path] = score
    return scores


def gradients(loss: Tensor, crf: torch.nn.Module, emissions: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss, [emissions, *crf.parameters()], retain_graph=True))


@pytest.mark.slow
@for_each("ends", "true false")
@pytest.mark.parametrize(
    "names, scheme", [(BIOES, "bioes"), (IOB2, "iob2"), (IOB2, None)], ids=["bioes", "iob2", "free"]
)
def test_loss_gradients_and_viterbi_equal_the_sum_over_all_paths(monkeypatch, names, scheme, ends):
    torch.manual_seed(0)
    allowed = constraints(names, scheme) if scheme else None
    crf = CRF(len(names), allowed, ends).double()
    lengths = [3, 1, 4]
    emissions, mask = batch(lengths, len(names))
    tags, expected, best = torch.zeros(3, 4, dtype=torch.int64), [], []
    for i, length in enumerate(lengths):
        scores = paths(crf, emissions[i, :length], allowed)
        gold = list(scores)[len(scores) // 3]
        tags[i, :length] = torch.tensor(gold)
        expected.append(torch.stack(list(scores.values())).logsumexp(0) - scores[gold])
        best.append(list(max(scores, key=lambda path: float(scores[path].detach()))))
    wanted = gradients(torch.stack(expected).sum(), crf, emissions)
    for spread in (crf_module.SAFE_SPREAD, -1.0):  # exponential and logarithmic steps
        monkeypatch.setattr(crf_module, "SAFE_SPREAD", spread)
        losses = crf(emissions, tags, mask)
        assert torch.allclose(losses, torch.stack(expected), atol=1e-10)
        torch.testing.assert_close(gradients(losses.sum(), crf, emissions), wanted, atol=1e-10, rtol=1e-5)
    assert crf.decode(emissions, mask) == best


def test_equals_pytorch_crf_without_constraints():
    torch.manual_seed(1)
    oracle: Any = Oracle(17, batch_first=True)
    crf = CRF(17, ends=True)
    names = {"start": "start_transitions", "end": "end_transitions", "transitions": "transitions"}
    crf.load_state_dict({ours: oracle.state_dict()[theirs] for ours, theirs in names.items()})
    emissions, mask = batch([40, 1, 17, 39, 25], 17, dtype=torch.float32)
    tags = torch.randint(17, mask.shape)
    losses, theirs = crf(emissions, tags, mask), -oracle(emissions, tags, mask, reduction="none")
    assert torch.allclose(losses, theirs, rtol=1e-5)
    ours, wanted = (
        torch.autograd.grad(loss.sum(), [emissions, *(getattr(model, name) for name in parameters)])
        for loss, model, parameters in ((losses, crf, names), (theirs, oracle, names.values()))
    )
    torch.testing.assert_close(ours, wanted, atol=1e-4, rtol=1e-5)
    assert crf.decode(emissions, mask) == oracle.decode(emissions, mask)


@for_each("size", "1.0 30.0 1000.0 1000000.0")
def test_hard_constraints_never_underflow(monkeypatch, size):
    """A valid but very unlikely sentence has the loss that log space in high precision gives; nothing is nan or inf."""
    torch.manual_seed(2)
    crf = CRF(len(BIOES), constraints(BIOES, "bioes"), ends=True)
    emissions, mask = batch([50, 50, 2], len(BIOES), size, torch.float32)
    tags = torch.tensor([[BIOES.index("S-PER")] * 50] * 3)
    losses = crf(emissions, tags, mask)
    losses.sum().backward()
    assert (losses >= -1e-3).all()
    assert all(bool(x.grad.isfinite().all()) for x in [emissions, *crf.parameters()])
    monkeypatch.setattr(crf_module, "SAFE_SPREAD", -1.0)
    assert torch.allclose(losses, crf(emissions, tags, mask), rtol=1e-6)


def test_the_safe_spread_is_safe():
    """Just below the limit the exponential steps agree with log space on the hardest inputs: two-valued scores."""
    torch.manual_seed(3)
    crf = CRF(len(BIOES), constraints(BIOES, "bioes")).double()
    crf.transitions.data.zero_()
    emissions, mask = batch([60] * 8, len(BIOES))
    extreme = (emissions > 0).double() * (crf_module.SAFE_SPREAD - 1e-6)
    start, pairs, end = (table.double() for table in crf._tables())
    exponential = crf_module._exponential_steps(extreme, start, pairs, end, mask)
    logarithmic = crf_module._logarithmic_steps(extreme, start, pairs, end, mask)
    assert torch.allclose(exponential, logarithmic, rtol=1e-12)


def test_padding_and_its_content_change_nothing():
    torch.manual_seed(5)
    crf = CRF(len(BIOES), constraints(BIOES, "bioes"))
    emissions, mask = batch([4, 2], len(BIOES), dtype=torch.float32)
    tags = torch.zeros(2, 4, dtype=torch.int64)
    padded = torch.cat([emissions.detach(), 1e5 * torch.randn(2, 3, len(BIOES))], 1)
    padded[1, 2:4] = torch.nan
    padded.requires_grad_()
    longer = torch.cat([mask, torch.zeros(2, 3, dtype=torch.bool)], 1)
    filled = torch.cat([tags, torch.full((2, 3), 5)], 1)
    assert torch.allclose(crf(emissions, tags, mask), crf(padded, filled, longer), atol=1e-6)
    assert torch.autograd.grad(crf(padded, filled, longer).sum(), padded)[0].isfinite().all()
    assert crf.decode(emissions, mask) == crf.decode(padded, longer)
