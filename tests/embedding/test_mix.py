"""Equation (1): the scalar mix, its penalty and its layer normalisation, against NumPy and by hand."""

import numpy as np
import pytest
import torch

from elmo_bench.embedding.scalar_mix import ScalarMix
from tests.fakes import cases, for_each, refuses


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(3)
    layers = torch.randn(2, 3, 5, 4, generator=generator) * 2 + 1  # (B, L + 1, T, W)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    return layers * mask[:, None, :, None], mask


def test_equation_1_with_learnt_weights(batch):
    layers, mask = batch
    mix = ScalarMix(3)
    with torch.no_grad():
        mix.w.copy_(torch.tensor([0.5, -1.0, 2.0]))
        mix.gamma.fill_(1.7)
    s = np.exp([0.5, -1.0, 2.0]) / np.exp([0.5, -1.0, 2.0]).sum()
    expected = 1.7 * np.einsum("j,bjtw->btw", s, layers.double().numpy())
    np.testing.assert_allclose(mix(layers, mask).detach().numpy(), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mix.s.detach().numpy(), s, rtol=1e-6)


def test_penalty_is_on_the_weights_before_the_softmax_and_not_on_gamma():
    mix = ScalarMix(3)
    with torch.no_grad():
        mix.w.copy_(torch.tensor([1.0, 2.0, -2.0]))
        mix.gamma.fill_(10.0)
    penalty = mix.penalty()
    penalty.backward()
    assert penalty.item() == 9.0
    assert mix.w.grad.tolist() == [2.0, 4.0, -4.0]
    assert mix.gamma.grad is None


@cases("""
    layers | expected
    last   | 2
    0      | 0
    1      | 1
""")
def test_one_layer_alone_has_no_penalty(batch, layers, expected):
    hidden, mask = batch
    mix = ScalarMix(3, layers=layers)
    torch.testing.assert_close(mix(hidden, mask), hidden[:, expected])
    assert mix.penalty().item() == 0.0
    assert [name for name, _ in mix.named_parameters()] == ["gamma"]


def test_fixed_weights_are_used_as_they_stand(batch):
    layers, mask = batch
    mix = ScalarMix(3, layers=[0.2, 0.0, 0.9], gamma=False)
    torch.testing.assert_close(mix(layers, mask), 0.2 * layers[:, 0] + 0.9 * layers[:, 2])
    assert list(mix.parameters()) == []


@for_each("which", "all last 0")
def test_paper_normalisation_is_over_the_unmasked_tokens_of_the_batch(batch, which):
    """Whatever stands in the padding."""
    layers, mask = batch
    words = layers.double().numpy().transpose(1, 0, 2, 3)[:, mask.numpy()]  # (L + 1, words, W)
    normal = (words - words.mean((1, 2), keepdims=True)) / words.std((1, 2), keepdims=True)
    expected = {"all": normal.mean(0), "last": normal[2], 0: normal[0]}[which]
    dirty = layers.masked_fill(~mask[:, None, :, None], 1e4)
    mixed = ScalarMix(3, layers=which, layer_norm="paper")(dirty, mask)
    np.testing.assert_allclose(mixed[mask].detach().numpy(), expected, rtol=1e-4, atol=1e-5)
    assert mixed[~mask].abs().max() == 0


def test_token_normalisation_does_not_depend_on_the_batch_and_paper_does(batch):
    layers, mask = batch
    for how, alike in (("token", True), ("paper", False), (False, True)):
        mix = ScalarMix(3, layer_norm=how)
        assert torch.allclose(mix(layers, mask)[1:], mix(layers[1:], mask[1:]), atol=1e-6) is alike
    mixed = ScalarMix(3, layers=1, layer_norm="token")(layers, mask)[mask]
    torch.testing.assert_close(mixed.mean(-1), torch.zeros(8), atol=1e-6, rtol=0)
    torch.testing.assert_close(mixed.var(-1, unbiased=False), torch.ones(8), atol=1e-4, rtol=0)


@cases("""
    wrong
    {"layers": 3}
    {"layers": -1}
    {"layers": [0.5, 0.5]}
    {"layers": "first"}
    {"layer_norm": "batch"}
""")
def test_wrong_options_of_the_mix_are_named(wrong):
    with refuses(next(iter(wrong))):
        ScalarMix(3, **wrong)


@pytest.mark.slow
@pytest.mark.usefixtures("stand_in")
def test_without_gamma_a_run_has_one_parameter_less_at_each_place(bench):
    changes, places = ["elmo.where=both", "task.fit.epochs=2"], ["input", "output"]
    learnt, fixed = bench.train(*changes), bench.train(*changes, "elmo.gamma=false")
    assert learnt.parameters - fixed.parameters == len(places)
    assert fixed.gamma == {place: [1.0, 1.0] for place in places}
    assert all(learnt.gamma[place][-1] != 1.0 for place in places)
    assert (fixed.arm, fixed.variant["elmo.gamma"], fixed.settings["elmo"]["gamma"]) == ("elmo", False, False)
    assert fixed.run != learnt.run
