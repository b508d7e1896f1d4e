"""The fast training step against the plain one: loss, gradients, states, optimisers."""

from __future__ import annotations

import random
from itertools import chain

import numpy as np
import pytest
import torch

from elmo_bench.bilm.corpus import Corpus
from elmo_bench.bilm.lm import BidirectionalLM, Negatives, WordTypes, chunks
from elmo_bench.bilm.lstm import cell_backward, cell_forward
from elmo_bench.bilm.model import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.bilm.pretraining import batches, convolutions, pointwise, step
from elmo_bench.bilm.pretraining.optimisers import RowAdagrad, RowAdam
from elmo_bench.system.ahead import ahead

pytestmark = pytest.mark.slow

ROWS, STEPS, VOCABULARY, NEGATIVES = 6, 5, 40, 12


def options(**cnn) -> Options:
    lstm = {"dim": 12, "projection_dim": 8, "n_layers": 2, "cell_clip": 0.4, "proj_clip": 0.2}  # both bite
    return Options.parse({
        "lstm": {**lstm, "use_skip_connections": True},
        "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 4], [2, 8], [3, 12], [5, 9]], "n_highway": 2, **cnn},
    })  # fmt: skip


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


def language_model(corpus: Corpus, dtype=torch.float32, **cnn) -> BidirectionalLM:
    torch.manual_seed(0)
    lm = BidirectionalLM(BiLM(options(**cnn)), VOCABULARY, dtype)
    torch.nn.init.normal_(lm.softmax_bias.weight)
    for layers in lm.bilm.directions:
        for layer in layers.children():  # type: ignore[union-attr]
            torch.nn.init.normal_(layer.bias, std=0.3)  # type: ignore[union-attr]
    return lm


def plain(lm: BidirectionalLM, corpus: Corpus, updates: int) -> tuple[list[float], dict[str, torch.Tensor], list]:
    """Losses, gradients of the last update and states, by autograd of the plain parts."""
    types, states = WordTypes(corpus.types, lm.bilm.encoder), lm.start(ROWS)
    pairs = zip(*(chunks(s, ROWS, STEPS) for s in corpus.streams(corpus.vocabulary(VOCABULARY))), strict=True)
    losses = []
    for update in range(updates):
        lm.zero_grad()
        drawn = Negatives.draw(NEGATIVES, VOCABULARY, np.random.default_rng((7, update)))
        loss = lm.loss(next(pairs), types, states, drawn)
        loss.backward()
        losses.append(loss.item())
    return losses, {name: p.grad.to_dense() for name, p in lm.named_parameters() if p.grad is not None}, states


def fast(lm: BidirectionalLM, corpus: Corpus, updates: int, functions=pointwise.EAGER):
    """The same by the fast step."""
    types, states = convolutions.WordTypes(corpus.types, lm.bilm.encoder), lm.start(ROWS)
    batcher = batches.Batcher(types, VOCABULARY, NEGATIVES, seed=7)
    pairs = zip(*(chunks(s, ROWS, STEPS) for s in corpus.streams(corpus.vocabulary(VOCABULARY))), strict=True)
    losses, found = [], {}
    for update in range(updates):
        lm.zero_grad()
        batch = batcher.make(next(pairs), update)
        rows = step.touched(lm, batch)
        loss = step.loss(lm, batch, rows, states, functions)
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
    for ours, theirs in zip(chain(*a[2]), chain(*b[2]), strict=True):
        for x, y in zip(ours, theirs, strict=True):
            torch.testing.assert_close(x.float(), y.float(), rtol=10 * rtol, atol=10 * rtol)


@pytest.mark.parametrize("cnn", [{}, {"activation": "tanh"}, {"max_characters_per_token": 9}, {"n_highway": 0}])
def test_a_step_is_the_plain_one_to_rounding(corpus, cnn):
    lm = language_model(corpus, **cnn)
    assert_equal(plain(lm, corpus, 3), fast(lm, corpus, 3), 2e-5)


def test_a_step_in_bfloat16_is_near_that_in_float32(corpus):
    exact, rough = fast(language_model(corpus), corpus, 1), fast(language_model(corpus, torch.bfloat16), corpus, 1)
    assert exact[0] == pytest.approx(rough[0], rel=0.01)
    for name, gradient in exact[1].items():
        assert (gradient - rough[1][name]).norm() < 0.25 * gradient.norm(), name
    old = plain(language_model(corpus, torch.bfloat16), corpus, 1)
    for name in ("softmax.weight", "bilm.encoder.convolutions.3.weight", "bilm.directions.1.0.recurrent"):
        new_error, old_error = ((exact[1][name] - found[1][name]).norm() for found in (rough, old))
        assert new_error < 2 * old_error + 1e-6


def test_a_compiled_step_is_the_eager_one(corpus):
    lm = language_model(corpus)
    assert_equal(fast(lm, corpus, 3), fast(lm, corpus, 3, pointwise.Pointwise.compiled()), 2e-5)


def test_the_fast_cells_are_the_plain_ones():
    torch.manual_seed(0)
    gates, bias, before = torch.randn(5, 24) * 3, torch.randn(24), torch.randn(5, 6)
    d_hidden, d_c = torch.randn(5, 6), torch.randn(5, 6)
    c, hidden = cell_forward(gates + bias, before, 0.8)
    d_gates, d_before = cell_backward(gates + bias, before, c, d_hidden, d_c, 0.8)
    for forward, backward in (
        (pointwise.cell_forward, pointwise.cell_backward),
        (pointwise.fast_cell_forward, pointwise.fast_cell_backward),
    ):
        work, c_found, hidden_found = gates.clone(), torch.empty(5, 6), torch.empty(5, 6)
        forward(work, bias, before, c_found, hidden_found, 0.8)
        found = backward(work, bias, before, c, d_hidden, d_c, 0.8)
        pairs = [(c, c_found), (hidden, hidden_found), (d_gates, work), (d_before, found)]
        for expected, ours in pairs:
            torch.testing.assert_close(ours, expected, rtol=1e-5, atol=1e-6)


def test_dropout_follows_from_its_seed(corpus):
    draws = [step.Dropout(0.3, seed, torch.device("cpu"))(torch.ones(200, 50)) for seed in (1, 1, 2)]
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])
    torch.testing.assert_close(draws[0].unique(), torch.tensor([0.0, 1 / 0.7]))
    assert draws[0].mean() == pytest.approx(1, abs=0.03)


def test_products_have_few_sizes(corpus):
    """What is added up to the next multiple changes no vector and no gradient, and is not counted as needed."""
    encoder = language_model(corpus).bilm.encoder
    inputs, found = np.arange(len(corpus.types))[:45], []
    for multiple in (1, 32):
        windows, (index,) = convolutions.WordTypes(corpus.types, encoder, multiple).distinct(inputs)
        encoder.zero_grad()
        vectors = convolutions.encode(encoder, windows)[index]
        (vectors * torch.linspace(-1, 1, vectors.numel()).view_as(vectors)).sum().backward()
        found.append((windows, [vectors, *(p.grad for p in encoder.parameters())]))
    (plain, expected), (rounded, ours) = found
    assert plain.starts == plain.needed == rounded.needed
    assert rounded.starts != rounded.needed
    assert not any(n % 32 for n in rounded.starts)
    for mine, theirs in zip(ours, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


def test_one_negative_sample_each_are_two(corpus):
    lm = language_model(corpus)
    types = convolutions.WordTypes(corpus.types, lm.bilm.encoder)
    pair = next(zip(*(chunks(s, ROWS, STEPS) for s in corpus.streams(corpus.vocabulary(VOCABULARY))), strict=True))
    for each in (False, True):
        batch = batches.Batcher(types, VOCABULARY, NEGATIVES, 7, each).make(pair, 0)
        first, second = (set(batch.ids[sample.negatives].tolist()) for sample in batch.samples)
        assert len(first) == len(second) == NEGATIVES
        assert (first != second) == each


@pytest.mark.parametrize("name", ["adam", "adagrad"])
def test_the_row_optimisers_are_those_of_torch(name):
    """SparseAdam and Adagrad on sparse gradients, some rows in every update, some in few."""
    torch.manual_seed(0)
    start = [torch.randn(9, 4), torch.randn(9, 1)]
    theirs = [torch.nn.Parameter(table.clone()) for table in start]
    ours = [torch.nn.Parameter(table.clone()) for table in start]
    if name == "adam":
        reference = torch.optim.SparseAdam(theirs, 0.1, betas=(0.9, 0.99))
        tested = RowAdam(ours, (0.9, 0.99))
    else:
        reference = torch.optim.Adagrad(theirs, 0.1, initial_accumulator_value=0.5)
        tested = RowAdagrad(ours, 0.5)
    for update in range(6):
        ids = torch.tensor([0, 2 + update, 1]).sort().values
        gradients = [torch.randn(3, 4), torch.randn(3, 1)]
        for table, gradient in zip(theirs, gradients, strict=True):
            table.grad = torch.sparse_coo_tensor(ids[None], gradient, table.shape)
        for group in reference.param_groups:
            group["lr"] = 0.1 / (update + 1)
        reference.step()
        tested.step(ids, [table.detach()[ids] for table in ours], gradients, 0.1 / (update + 1))
        for a, b in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b)


def test_items_made_ahead_keep_their_order_and_their_errors(monkeypatch):
    def failing():
        yield from range(3)
        raise ValueError("of the maker")

    for cores in (1, 2):
        monkeypatch.setattr("elmo_bench.system.ahead.cores", lambda cores=cores: cores)
        assert list(ahead(iter(range(20)))) == list(range(20))
        items = ahead(failing())
        assert [next(items) for _ in range(3)] == [0, 1, 2]
        with pytest.raises(ValueError, match="of the maker"):
            next(items)
