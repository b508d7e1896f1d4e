"""One update of a pretraining: its batch, loss and gradients by the whole softmax, in bfloat16, dropout."""

import json
import random
from unittest.mock import Mock

import numpy as np
import pytest
import torch
import torch.distributed as dist

from elmo_bench.bilm.corpus import Corpus, most_frequent
from elmo_bench.bilm.lm import BidirectionalLM, Negatives, WordTypes, chunks, log_expected, sampled_nll
from elmo_bench.bilm.model import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.bilm.pretraining import parallel, step
from elmo_bench.nn.recurrent import _WithGradientOf
from tests.fakes import cases

pytestmark = pytest.mark.slow

ROWS, STEPS, VOCABULARY, NEGATIVES = 6, 5, 40, 12
OPTIONS = Options.parse(
    json.loads("""
{"lstm": {"dim": 12, "projection_dim": 8, "n_layers": 2, "cell_clip": 0.4, "proj_clip": 0.2,
          "use_skip_connections": true},
 "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 4], [2, 8], [3, 12], [5, 9]], "n_highway": 2}}
""")
)


@pytest.fixture
def corpus() -> Corpus:
    """Sentences of words of all lengths, among them some that fill the 50 ids and more."""
    draw = random.Random(0)
    words = [
        "".join(draw.choices("abcdeé", k=n)) for n in [*range(1, 12), 40, 44, 46, 47, 48, 49, 60] for _ in range(4)
    ]
    types = ["<S>", "</S>", *dict.fromkeys(words)]
    lengths = [draw.randint(1, 9) for _ in range(90)]
    tokens = np.array([draw.randrange(2, len(types)) for _ in range(sum(lengths))], dtype=np.int32)
    return Corpus(types, tokens, np.cumsum(lengths))


def language_model(dtype=torch.float32) -> BidirectionalLM:
    torch.manual_seed(0)
    lm = BidirectionalLM(BiLM(OPTIONS), VOCABULARY, dtype)
    torch.nn.init.normal_(lm.softmax_bias.weight)
    for layers in lm.bilm.directions:
        for layer in layers.children():  # type: ignore[union-attr]
            torch.nn.init.normal_(layer.bias, std=0.3)  # type: ignore[union-attr]
    return lm


def pairs(corpus: Corpus):
    streams = corpus.streams(most_frequent(corpus.counts, VOCABULARY))
    return zip(*(chunks(stream, ROWS, STEPS) for stream in streams), strict=True)


def plain(lm: BidirectionalLM, corpus: Corpus, updates: int):
    """Losses, gradients of the last update and states, from vocabulary ids in the whole tables of the softmax."""
    types, states, losses = WordTypes(corpus.types, lm.bilm.encoder), lm.bilm.zeros(ROWS), []
    for update, pair in zip(range(updates), pairs(corpus), strict=False):
        lm.zero_grad()
        drawn = Negatives.draw(NEGATIVES, VOCABULARY, np.random.default_rng((7, update)))
        outputs, each = lm.outputs(types.distinct(*(chunk.inputs for chunk in pair)), states, lm.dtype), []
        for h, chunk in zip(outputs, pair, strict=True):
            expected = log_expected(chunk.targets, VOCABULARY, drawn.tries)
            rows = lm.softmax.weight, lm.softmax_bias.weight.squeeze(-1)
            each.append(sampled_nll(h, *rows, chunk.targets, expected, drawn.ids, drawn.log_expected))
        loss = (each[0] + each[1]) / 2
        loss.backward()
        losses.append(loss.item())
    return losses, {name: p.grad.to_dense() for name, p in lm.named_parameters() if p.grad is not None}, states


def trained(lm: BidirectionalLM, corpus: Corpus, updates: int):
    """The same by the step of a training, which reads the rows of its batch alone."""
    states, losses, found = lm.bilm.zeros(ROWS), [], {}
    batcher = step.Batcher(WordTypes(corpus.types, lm.bilm.encoder), VOCABULARY, NEGATIVES, seed=7)
    for update, pair in zip(range(updates), pairs(corpus), strict=False):
        lm.zero_grad()
        batch = batcher.make(pair, update)
        rows = step.touched(lm, batch)
        loss = step.loss(lm, batch, rows, states)
        loss.backward()
        losses.append(loss.item())
        found = {name: p.grad for name, p in lm.named_parameters() if p.grad is not None}
        for name, table, row in zip(("softmax", "softmax_bias"), (lm.softmax, lm.softmax_bias), rows, strict=True):
            assert row.grad is not None
            found[f"{name}.weight"] = torch.zeros_like(table.weight).index_copy_(0, batch.ids, row.grad)
    return losses, found, states


def assert_equal(a, b, rtol: float) -> None:
    """Losses, gradients and states; a gradient is as close as `rtol` of its norm."""
    assert a[0] == pytest.approx(b[0], rel=rtol)
    assert a[1].keys() == b[1].keys()
    for name, gradient in a[1].items():
        assert (gradient - b[1][name]).norm() <= rtol * gradient.norm(), name
    torch.testing.assert_close(a[2], b[2], rtol=10 * rtol, atol=10 * rtol)


def test_a_step_by_touched_rows_is_that_by_the_whole_softmax(corpus):
    lm = language_model()
    assert_equal(plain(lm, corpus, 3), trained(lm, corpus, 3), 2e-5)


def test_a_step_in_bfloat16_is_near_that_in_float32(corpus):
    exact, rough = (trained(language_model(dtype), corpus, 1) for dtype in (torch.float32, torch.bfloat16))
    assert exact[0] == pytest.approx(rough[0], rel=0.01)
    for name, gradient in exact[1].items():
        assert (gradient - rough[1][name]).norm() < 0.25 * gradient.norm(), name


def test_gradients_of_all_steps_are_summed_in_float32():
    """Many equal gradients: in bfloat16, 1 + 1/256 is 1, and a sum stands still."""
    uses, ones = 2000, torch.ones(1, 2000, 1, dtype=torch.bfloat16)
    weight = torch.zeros(1, 1, 1, requires_grad=True)
    base = _WithGradientOf.apply(ones, weight.bfloat16(), [ones])
    base.float().sum().backward()
    assert weight.grad is not None
    assert weight.grad.item() == pytest.approx(uses, rel=2**-8)


@cases("""
    message | alone
    1       | [true, false]
    5       | [false]
    9       | [false]
""")
def test_gradients_are_sent_while_backward_computes_those_before_them(monkeypatch, message, alone):
    """The other process has gradients three times as large. Backward reaches the first layer of a network last."""
    first, second = (torch.full((2, 2), value, requires_grad=True) for value in (2.0, 3.0))
    sent = []

    def summed(values: torch.Tensor, async_op: bool) -> Mock:
        sent.append(first.grad is None)
        return Mock(wait=lambda: values.mul_(4))

    monkeypatch.setattr(dist, "all_reduce", summed)
    monkeypatch.setattr(parallel, "MESSAGE", message)
    group = parallel.ProcessGroup(0, 2)
    group.average_during_backward([first, second])
    for _ in range(2):
        first.grad = second.grad = None
        ((torch.eye(2) @ first) @ second).sum().backward()
        group.received()
        torch.testing.assert_close((first.grad, second.grad), (torch.full((2, 2), 12.0), torch.full((2, 2), 8.0)))
    assert sent == 2 * alone


def test_dropout_follows_from_its_seed():
    draws = [step.Dropout(0.3, seed, torch.device("cpu"))(torch.ones(200, 50)) for seed in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    torch.testing.assert_close(draws[0].unique(), torch.tensor([0.0, 1 / 0.7]))
    assert draws[0].mean() == pytest.approx(1, abs=0.03)


def test_one_negative_sample_each_are_two(corpus):
    types, pair = WordTypes(corpus.types, language_model().bilm.encoder), next(pairs(corpus))
    for each in (False, True):
        batch = step.Batcher(types, VOCABULARY, NEGATIVES, 7, each).make(pair, 0)
        first, second = (set(batch.ids[sample.negatives].tolist()) for sample in batch.samples)
        assert len(first) == len(second) == NEGATIVES
        assert (first != second) == each


def test_rows_change_as_by_torchs_sparse_adam():
    tables = [torch.randn(30, 4).requires_grad_(), torch.randn(30, 1).requires_grad_()]
    copies = [table.detach().clone().requires_grad_() for table in tables]
    ours, torchs = (
        kind(each, betas=(0.8, 0.9)) for kind, each in ((step.RowAdam, tables), (torch.optim.SparseAdam, copies))
    )
    for update in range(3):
        ids = torch.randperm(30)[:9].sort().values
        for table, copy in zip(tables, copies, strict=True):
            gradient = torch.randn(9, table.shape[1])
            for each in (table, copy):
                step.give_rows(each, ids, gradient)
        step.change(ours, 0.1 / (update + 1))
        step.change(torchs, 0.1 / (update + 1))
    assert all(map(torch.equal, tables, copies))
    kept = [optimiser.state[each] for optimiser, made in ((ours, tables), (torchs, copies)) for each in made[:1]]
    assert kept[0]["step"] == 3
    torch.testing.assert_close(*kept, rtol=0, atol=0)


def test_a_sole_negative_that_is_the_target_costs_nothing():
    h, rows, biases = (torch.randn(shape).requires_grad_() for shape in ((2, 4), (3, 4), (3,)))
    zeros = torch.zeros(2)
    loss = sampled_nll(h, rows, biases, torch.tensor([1, 1]), zeros, torch.tensor([1]), zeros[:1])
    loss.backward()
    assert loss.item() == 0
    assert not any(each.grad.any() for each in (h, rows, biases))
