"""Mixed precision: what stays in float32 where autocast computes products in 16 bits."""

import threading

import pytest
import torch
from torch import nn

from elmo_bench.configuration.schema import ElmoConfig
from elmo_bench.embedding.representation import Elmo
from elmo_bench.embedding.scalar_mix import ScalarMix
from elmo_bench.nn.attention import masked_mean, masked_softmax
from elmo_bench.nn.char_cnn import CharCNN
from elmo_bench.nn.crf import CRF
from elmo_bench.nn.encoders import BiLSTM
from elmo_bench.nn.numerics import ScoreLinear, tf32
from elmo_bench.nn.packing import ahead
from elmo_bench.task import Tokens
from tests.conftest import PATIENCE
from tests.fakes import FakeBiLM, for_each, masks

BF16 = torch.bfloat16


def mixed() -> torch.autocast:
    return torch.autocast("cpu")


@for_each("newer", "true false")
def test_what_is_rounded_to_tf32_is_set_for_a_while(newer):
    """Whichever of torch's settings the caller uses: where they differ, an older one cannot be read."""
    matmul = torch.backends.cuda.matmul
    if newer and not hasattr(matmul, "fp32_precision"):
        pytest.skip("this torch has only the older settings")
    name, on = ("fp32_precision", "tf32") if newer else ("allow_tf32", True)
    before = getattr(matmul, name)
    setattr(matmul, name, on)
    try:
        for allowed in (False, True):
            with tf32(allowed):
                assert matmul.allow_tf32 is torch.backends.cudnn.allow_tf32 is allowed
            assert getattr(matmul, name) == on
    finally:
        setattr(matmul, name, before)
    assert torch.get_float32_matmul_precision() == "highest"


def test_scores_are_those_of_a_layer_without_autocast():
    torch.manual_seed(0)
    layer, x = ScoreLinear(7, 3), torch.randn(4, 7)
    with mixed():
        assert torch.equal(layer(x), layer(x).float())
        assert nn.functional.linear(x, layer.weight).dtype == BF16
        scores = layer(x)
        assert layer(x.to(BF16)).dtype == torch.float32
    assert torch.equal(scores, nn.Linear.forward(layer, x))


def test_characters_are_read_by_products_of_16_bits():
    torch.manual_seed(1)
    cnn, chars = CharCNN(9, 4, {1: 3, 3: 5}), torch.tensor([[[3, 4, 5], [6, 0, 0]], [[7, 8, 0], [0, 0, 0]]])
    expected = cnn(chars)
    with mixed():
        found = cnn(chars)
    assert (found.dtype, found[1, 1].any().item()) == (BF16, False)
    torch.testing.assert_close(found.float(), expected, atol=0.02, rtol=0.02)
    found.sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in cnn.parameters())


def test_no_lstm_of_16_bits_is_asked_of_a_cpu():
    """Not every processor has one: with oneDNN some end in an error."""
    torch.manual_seed(2)
    layer, seen = BiLSTM(4, 3), []
    for part in (layer.forward_lstm, layer.backward_lstm):
        part.register_forward_pre_hook(
            lambda _, arguments: seen.append((arguments[0].dtype, torch.is_autocast_enabled("cpu")))
        )
    x, mask = torch.randn(2, 5, 4, requires_grad=True), masks(5, 2)
    with mixed():
        assert layer(x.to(BF16), mask).dtype == torch.float32
        found = layer(x, mask)
    assert seen == [(torch.float32, False)] * 4
    assert torch.equal(found, layer(x, mask))
    found.sum().backward()
    assert x.grad.isfinite().all()


def test_a_softmax_of_16_bits_is_computed_in_more():
    scores, mask = torch.zeros(2, 300, dtype=BF16), torch.ones(2, 300, dtype=torch.bool)
    mask[1] = False
    weights = masked_softmax(scores, mask)
    assert weights.dtype == BF16
    assert weights.float().sum(1).tolist() == pytest.approx([1, 0], abs=0.01)


def test_a_mean_over_many_words_loses_none():
    """In 16 bits, 256 + 1 is 256."""
    x, mask = torch.ones(1, 600, 1, dtype=BF16), torch.ones(1, 600, dtype=torch.bool)
    assert masked_mean(x, mask).item() == 1


def test_the_crfs_sums_are_never_of_16_bits():
    torch.manual_seed(2)
    crf, tags, mask = CRF(4), torch.randint(0, 4, (2, 5)), torch.ones(2, 5, dtype=torch.bool)
    emissions = torch.randn(2, 5, 4).to(BF16)
    expected = crf(emissions.float(), tags, mask)
    with mixed():
        assert torch.equal(crf(emissions, tags, mask), expected)
        assert crf.decode(emissions, mask) == crf.decode(emissions.float(), mask)


@for_each("layer_norm", "false paper token")
def test_layers_are_mixed_and_normalised_as_without_autocast(layer_norm):
    torch.manual_seed(3)
    mix, layers, mask = ScalarMix(3, layer_norm=layer_norm), torch.randn(2, 3, 4, 6), torch.ones(2, 4, dtype=torch.bool)
    with mixed():
        assert torch.equal(mix(layers, mask), mix(layers, mask).float())
        found, rough = mix(layers, mask), mix(layers.to(BF16), mask)
    assert torch.equal(found, mix(layers, mask))
    assert rough.dtype == torch.float32


def test_a_frozen_source_is_read_as_the_cache_reads_it():
    """So that `predict`, which computes the layers, sees those that the model was trained on."""

    class Product(FakeBiLM):
        def layers(self, sentences):
            return super().layers(sentences) @ torch.eye(self.width)

    words = [["a", "b", "c"]]
    tokens = Tokens(torch.zeros(1, 3, dtype=torch.int64), None, words, torch.ones(1, 3, dtype=torch.bool))
    elmo = Elmo(Product(), ElmoConfig(dropout=0.0))
    with mixed():
        found = elmo(tokens)["input"]
    assert torch.equal(found, elmo(tokens)["input"])


# The next thing is made while this one is used.


def test_the_next_one_is_made_while_this_one_is_used_and_only_that():
    made, third = [], threading.Event()

    def things():
        for number in range(4):
            made.append((number, threading.current_thread().name))
            if number == 2:
                third.set()
            yield number

    found = ahead(things())
    assert next(found) == 0
    assert next(found) == 1
    assert third.wait(PATIENCE)  # nobody has asked for it yet
    assert [*found] == [2, 3]
    assert [number for number, _ in made] == [0, 1, 2, 3]
    assert {thread for _, thread in made} == {"ahead_0"}


def test_an_error_comes_in_the_place_of_what_was_not_made():
    def things():
        yield 1
        raise ValueError("no more")

    found = ahead(things())
    assert next(found) == 1
    with pytest.raises(ValueError, match="no more"):
        next(found)
    assert [*ahead(iter(()))] == []


def test_whoever_stops_early_leaves_no_thread():
    found = ahead(iter(range(100)))
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]
    assert not [each for each in threading.enumerate() if each.name.startswith("ahead")]
