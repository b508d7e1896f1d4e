"""The compiled functions of training give torch's results, or are not used."""

from __future__ import annotations

import platform

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.nn import compiled, coupled_lstm, crf, dropout, gru, highway_lstm, kernels, lstm, reductions
from elmo_bench.nn.crf import CRF
from elmo_bench.nn.dropout import Dropout
from elmo_bench.system import compiler
from tests.conftest import altered, needs_compiler

LENGTHS = torch.tensor([7, 1, 5, 7, 2])
MASK = torch.arange(7) < LENGTHS[:, None]


def outcome(layer: nn.Module, x: Tensor) -> list[Tensor]:
    """The output, and the gradients of the input and the weights."""
    x = x.clone().requires_grad_()
    y = layer(x, MASK)
    direction = torch.linspace(-1, 1, y.numel()).view_as(y)
    return [y.detach(), *torch.autograd.grad(y, [x, *layer.parameters()], direction)]


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", [(5, 3), (4, 16), (9, 100)])
@pytest.mark.parametrize(("room", "kind"), [(lstm, lstm.BiLSTM), (gru, gru.BiGRU)])
def test_a_step_has_the_gradients_of_the_way_without_them(monkeypatch, room, kind, sizes, threads):
    torch.manual_seed(0)
    layer, x, before = kind(*sizes), torch.randn(*MASK.shape, sizes[0]), torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        ours = outcome(layer, x)
    finally:
        torch.set_num_threads(before)
    monkeypatch.setattr(room, "loopable", lambda _: None)
    for found, there in zip(ours, outcome(layer, x), strict=True):
        assert (found - there).norm() <= 1e-5 * there.norm()


@pytest.fixture
def kernels_here() -> kernels.Kernels:
    found = compiled.kernels()
    assert found is not None
    return found


class Unpadded(coupled_lstm.CoupledBiLSTM):
    """Called like the other layers."""

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        return super().forward(x[mask], mask.sum(1).tolist())


def coupled(size: int, hidden: int) -> nn.Module:
    return Unpadded(size, hidden, dropout=0.4)


def highway(size: int, hidden: int) -> nn.Module:
    return highway_lstm.AlternatingHighwayLSTM(size, hidden, n_layers=3, dropout=0.4)


@needs_compiler
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("sizes", [(5, 3), (4, 16), (9, 100)])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("room", "kind"), [(coupled_lstm, coupled), (highway_lstm, highway)])
def test_masked_layers_have_the_gradients_of_torchs_steps(monkeypatch, room, kind, training, sizes, threads):
    torch.manual_seed(0)
    layer, x, before = kind(*sizes).train(training), torch.randn(*MASK.shape, sizes[0]), torch.get_num_threads()
    torch.set_num_threads(threads)
    torch.manual_seed(1)  # of the masks
    try:
        ours = outcome(layer, x)
    finally:
        torch.set_num_threads(before)
    monkeypatch.setattr(room, "loopable", lambda _: None)
    torch.manual_seed(1)
    for found, there in zip(ours, outcome(layer, x), strict=True):
        assert (found - there).norm() <= 1e-5 * there.norm()


@needs_compiler
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", [lstm.BiLSTM, gru.BiGRU, coupled, highway])
def test_under_autocast_only_the_products_over_all_words_are_of_16_bits(kind, dtype):
    torch.manual_seed(0)
    layer, x = kind(9, 30), torch.randn(*MASK.shape, 9).to(dtype)
    torch.manual_seed(1)  # of the masks
    expected = outcome(layer, x.float())
    torch.manual_seed(1)
    with torch.autocast("cpu", torch.bfloat16):
        found = outcome(layer, x)
    assert [each.dtype for each in found] == [torch.float32, dtype, *[torch.float32] * (len(found) - 2)]
    for ours, there in zip(found, expected, strict=True):
        assert 0 < (ours - there).norm() <= 0.01 * there.norm()


@needs_compiler
def test_autocast_does_not_fail_their_check(fresh):
    with torch.autocast("cpu", torch.bfloat16):
        assert compiled.loopable(torch.zeros(1, dtype=torch.bfloat16)) is not None
    assert compiled.loopable(torch.zeros(1, dtype=torch.bfloat16)) is None


@needs_compiler
def test_padding_is_neither_read_nor_written():
    layer, x = lstm.BiLSTM(4, 5), torch.randn(*MASK.shape, 4)
    broken = torch.where(MASK[..., None], x, torch.nan)
    assert torch.equal(layer(broken, MASK), layer(x, MASK))
    assert not layer(x, MASK)[~MASK].any()
    assert not outcome(layer, x)[1][~MASK].any()


@needs_compiler
@pytest.mark.parametrize(
    ("flags", "instructions"), [(["-march=x86-64"], "sse2"), (["-mavx2", "-mfma"], "avx2"), (["-mavx512f"], "avx512f")]
)
def test_every_width_of_vectors_gives_the_same_numbers(fresh, flags, instructions):
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if platform.machine() != "x86_64" or instructions not in file.read():
            pytest.skip(f"this processor does not have {instructions}")
    library = compiler.built(kernels.SOURCE, [*(f for f in compiler.FLAGS if f != "-march=native"), *flags])
    with torch.random.fork_rng([]):
        assert max(compiled.differences(kernels.Kernels(library))) < 5e-6


@needs_compiler
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_draws_the_numbers_that_torch_draws(p):
    """At any point of the generator's round, for any number of values, and for what is drawn next."""
    for size in (1, 5, 311, 312, 313, 2000):
        x, results = torch.randn(size, 3), []
        for layer in (Dropout(p), nn.Dropout(p)):
            torch.manual_seed(size)
            torch.rand(size)
            results.append(torch.cat([layer(x), layer(x), torch.rand(1, 3)]))
        assert torch.equal(*results)


def test_dropout_does_nothing_outside_of_training_and_serves_other_dtypes():
    x = torch.ones(50, dtype=torch.float64)
    assert Dropout(0.5).eval()(x) is x
    assert set(Dropout(0.5)(x).tolist()) == {0.0, 2.0}


@needs_compiler
@pytest.mark.parametrize("p", [0.0, 0.3])
def test_relu_with_dropout_is_one_after_the_other(monkeypatch, p):
    x, direction, results = torch.randn(37, 5), torch.randn(37, 5), []
    for way in (dropout.usable, lambda _: None):
        monkeypatch.setattr(dropout, "usable", way)
        torch.manual_seed(1)
        given = x.clone().requires_grad_()
        y = dropout.relu_dropout(given * 1.0, p)
        results.append([y, *torch.autograd.grad(y, given, direction), torch.rand(2)])
    for ours, there in zip(*results, strict=True):
        torch.testing.assert_close(ours, there, rtol=1e-6, atol=0)


@needs_compiler
def test_a_score_of_relu_with_dropout_has_the_bits_of_one_after_the_other(monkeypatch):
    """Gradients of the weights too: records do not depend on which way is taken."""
    x, direction, layer, results = torch.randn(61, 21), torch.randn(61, 1), nn.Linear(21, 1), []
    for _ in range(2):
        if results:
            monkeypatch.setattr(
                dropout, "relu_dropout_score", lambda x, p, *w: F.linear(dropout.relu_dropout(x, p), *w)
            )
        torch.manual_seed(1)
        given = x.clone().requires_grad_()
        y = dropout.relu_dropout_score(given * 1.0, 0.3, layer.weight, layer.bias)
        results.append([y, *torch.autograd.grad(y, [given, *layer.parameters()], direction)])
    assert all(torch.equal(*each) for each in zip(*results, strict=True))


@needs_compiler
def test_the_largest_and_weighted_sums_have_the_bits_of_torchs(kernels_here):
    """With equal largest ones, numbers that are not, and words that several spans share."""
    torch.manual_seed(0)
    x, lengths = torch.randn(40, 37).round(), torch.tensor([1, 30, 2, 7])
    x[0, 3], x[5, 4], x[30, 4] = torch.nan, torch.nan, torch.inf
    found, there = (reductions.largest(x, lengths, way) for way in (kernels_here, None))
    assert torch.equal(found.nan_to_num(7.0), there.nan_to_num(7.0))
    x = x.nan_to_num(0.0).requires_grad_()
    own, weights = torch.randn(50, 37, requires_grad=True), torch.rand(300, 10)
    starts = torch.randint(50, (300, 1))
    words = (starts + torch.arange(10)).clamp(max=49)
    weights = (weights * (torch.rand(300, 10) < 0.6)).requires_grad_()
    for name, given, more in (("largest", [x], [lengths]), ("weighted", [own, words, weights], [])):
        ways = [getattr(reductions, name)(*given, *more, way) for way in (kernels_here, None)]
        leaves, direction = [each for each in given if each.requires_grad], torch.randn_like(ways[0])
        gradients = [torch.autograd.grad(y, leaves, direction) for y in ways]
        assert all(
            torch.equal(*each) for each in zip(*([y, *g] for y, g in zip(ways, gradients, strict=True)), strict=True)
        )


@needs_compiler
def test_a_crf_has_the_gradients_of_the_way_without_them(monkeypatch):
    torch.manual_seed(0)
    layer, emissions, tags = CRF(9, ends=True), torch.randn(5, 7, 9, requires_grad=True), torch.randint(9, (5, 7))
    results = []
    for way in (crf.usable, lambda _: None):
        monkeypatch.setattr(crf, "usable", way)
        loss = layer(emissions, tags, MASK)
        results.append([loss, *torch.autograd.grad(loss.sum(), [emissions, *layer.parameters()])])
    for ours, there in zip(*results, strict=True):
        torch.testing.assert_close(ours, there, rtol=1e-6, atol=1e-7)


def test_without_a_compiler_torch_computes(fresh, monkeypatch):
    monkeypatch.setattr(compiler, "COMPILERS", ("no-such-compiler",))
    assert compiled.usable(torch.zeros(1)) is None
    assert lstm.BiLSTM(4, 5)(torch.randn(*MASK.shape, 4), MASK).shape == (5, 7, 10)


def test_they_can_be_turned_off(fresh, monkeypatch):
    monkeypatch.setenv("ELMO_BENCH_KERNELS", "0")
    assert compiled.kernels() is None
    assert not fresh.exists()


@needs_compiler
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("acc[h][v] * own[v]", "acc[h][v]"),
        ("d_h * o *", "d_h * j *"),
        ("0x9908b0dfu", "0x9908b0deu"),
        ("gates[1] * (h - gates[2])", "gates[1] * h"),
        ("(of_y + of_next) * factor", "of_y + of_next * factor"),
        ("d_cell * (j - before)", "d_cell * j"),
        ("there <= 0.0f ? V{} : through", "through"),
        ("d_hidden * (o * squashed - gates[5])", "d_hidden * o * squashed"),
        ("(row > found)", "(row < found)"),
        ("row == found ? share", "row != found ? share"),
        ("weights[*i], *from", "1.0f, *from"),
        ("d[r] * load(w + k, size - k) * scale", "load(w + k, size - k) * scale"),
        ("alpha[j] /= total", "alpha[j] *= total"),
        ("to[j] += from[i] * by", "to[j] = from[i] * by"),
    ],
)
def test_a_source_that_computes_something_else_is_not_used(fresh, tmp_path, monkeypatch, right, wrong):
    monkeypatch.setattr(compiled, "SOURCE", altered(kernels.SOURCE, right, wrong, tmp_path))
    quick, built = [*compiler.FLAGS, "-O1"], compiler.built
    monkeypatch.setattr(compiler, "built", lambda source: built(source, quick))
    assert compiled.kernels() is None


@needs_compiler
def test_they_are_checked_where_gradients_are_off_too(fresh):
    with torch.inference_mode():
        assert compiled.kernels() is not None
