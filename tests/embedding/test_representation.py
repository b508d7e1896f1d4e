"""Where ELMo enters a model (section 3.3), with a stand-in for the biLM."""

import copy
from typing import Any

import pytest
import torch
from torch import nn

from elmo_bench.configuration.schema import ElmoConfig
from elmo_bench.embedding.representation import Elmo, Representation, layers_of
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.layers.source import frozen_layers
from elmo_bench.nn.char_cnn import CharCNN
from elmo_bench.task import Tokens
from tests.fakes import FakeBiLM, cases, refuses

SENTENCES = [["a", "bc", "a"], ["def"]]


class Characters(nn.Module):
    output_size = 2

    def forward(self, chars):
        return torch.stack([chars.sum(-1), chars.amax(-1)], -1).float()


class Shouting(CharCNN):
    def forward(self, chars):
        return super().forward(chars.clamp(max=1))


@pytest.fixture
def tokens():
    words = torch.tensor([[2, 3, 2], [4, 0, 0]])
    return Tokens(words, words[..., None].repeat(1, 1, 5), SENTENCES, words > 0)


def build(where: Any = "input", bilm=None, words=True, chars=True, **changes):
    torch.manual_seed(1)
    elmo = None if where == "none" else Elmo(bilm or FakeBiLM(), ElmoConfig(where=where, **{"dropout": 0.0, **changes}))
    return Representation(nn.Embedding(6, 4) if words else None, Characters() if chars else None, elmo)


@cases("""
    where  | size | elmo_size
    none   | 6  | 0
    input  | 14 | 0
    output | 6  | 8
    both   | 14 | 8
""")
def test_widths_follow_the_places(tokens, where, size, elmo_size):
    model = build(where)
    embedded = model(tokens)
    assert (model.input_size, model.elmo_size) == (size, elmo_size)
    assert embedded.x.shape == (2, 3, size)
    h = torch.zeros(2, 3, 5)
    assert embedded.after(h).shape == (2, 3, 5 + elmo_size)


def test_characters_of_one_s_own_are_called_with_the_ids_alone(tokens):
    chars = Shouting(6, 3, {2: 5})
    torch.testing.assert_close(Representation(chars=chars)(tokens).x, chars(tokens.chars))


def test_the_parts_stand_in_order_words_characters_elmo(tokens):
    model = build("input")
    x = model(tokens).x
    layers = frozen_layers(FakeBiLM(), SENTENCES)
    torch.testing.assert_close(x[..., :4], model.words(tokens.words))
    torch.testing.assert_close(x[..., 4:6], model.chars(tokens.chars))
    torch.testing.assert_close(x[..., 6:], layers.mean(1))


def test_two_places_have_independent_mixes_over_one_pass(tokens):
    bilm = FakeBiLM()
    model = build("both", bilm)
    with torch.no_grad():
        model.elmo.mix["output"].w.copy_(torch.tensor([9.0, 0.0, 0.0]))
    embedded = model(tokens)
    assert bilm.passes == 1
    assert not torch.allclose(embedded.x[..., 6:], embedded.elmo)
    assert model.elmo.penalty().item() == 81.0


def test_a_frozen_bilm_is_in_no_checkpoint_optimiser_or_copy_and_moves_along(tokens):
    bilm = FakeBiLM()
    model = build("both", bilm)
    names = set(model.state_dict())
    assert {name for name in names if name.startswith("elmo")} == {
        f"elmo.mixes.{place}.{part}" for place in ("input", "output") for part in ("w", "gamma")
    }
    assert not any(parameter.requires_grad for parameter in bilm.module.parameters())
    assert copy.deepcopy(model).elmo.source is bilm
    model.train()
    assert not bilm.module.training
    copy.deepcopy(model).half()
    model.double()
    assert bilm.table.dtype == torch.float32  # else copies would change each other's source
    model.to("meta")
    assert bilm.table.device.type == "meta"


def test_joint_tuning_reaches_the_bilm_and_its_checkpoint(tokens):
    bilm = FakeBiLM()
    model = build("input", bilm, finetune="joint")
    model(tokens).x.square().sum().backward()
    assert bilm.table.grad.abs().sum() > 0
    assert "elmo.bilm.table.weight" in model.state_dict()
    averaged = copy.deepcopy(model)  # has a biLM of its own, which its layers come from
    with torch.no_grad():
        averaged.get_parameter("elmo.bilm.table.weight").zero_()
    assert averaged(tokens).x[..., 6:].abs().sum() == 0
    assert model(tokens).x[..., 6:].abs().sum() > 0


def test_a_cache_stands_in_for_a_frozen_bilm_alone(tokens, tmp_path):
    bilm = FakeBiLM()
    cache = ActivationCache(bilm, tmp_path)
    cache.prepare(SENTENCES)
    assert torch.equal(build("input", cache)(tokens).x, build("input")(tokens).x)
    assert bilm.passes == 0
    with refuses("bilm.cache=false"):
        build("input", cache, finetune="joint")


def test_dropout_acts_in_training_alone_and_projection_narrows(tokens):
    model = build("input", dropout=0.5, words=False, chars=False)
    assert (model.train()(tokens).x[0] == 0).any()
    torch.testing.assert_close(model.eval()(tokens).x, frozen_layers(FakeBiLM(), SENTENCES).mean(1))
    narrow = build("both", projection=3)
    assert (narrow.input_size, narrow.elmo_size) == (9, 3)
    assert narrow(tokens).elmo.shape == (2, 3, 3)


def test_elmo_instead_of_words_or_alone(tokens):
    assert build("input", words=False).input_size == 10
    assert build("input", words=False, chars=False).input_size == 8
    with refuses("no input"):
        build("output", words=False, chars=False)


def test_parts_of_a_row_are_read_one_by_one():
    rows = ["a bc d a e".split(), "a bc d fg".split(), ["fg"]]
    parts = [[3, 2], [3, 1], [1]]
    words = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0], [1, 0, 0, 0, 0]])
    bilm = FakeBiLM()
    layers = layers_of(bilm.layers, Tokens(words, None, rows, words > 0, parts))
    assert layers.shape == (3, 3, 5, 8)
    assert bilm.passes == 2  # of one word, of two and three; each sentence once
    for b, (row, lengths) in enumerate(zip(rows, parts, strict=True)):
        begin = 0
        for length in lengths:
            alone = FakeBiLM().layers([row[begin : begin + length]])[0]
            torch.testing.assert_close(layers[b, :, begin : begin + length], alone, rtol=0, atol=0)
            begin += length
        assert not layers[b, :, begin:].any()
    whole = layers_of(bilm.layers, Tokens(words, None, rows, words > 0))
    torch.testing.assert_close(whole, bilm.layers(rows), rtol=0, atol=0)
    assert not torch.equal(whole, layers)  # a neighbour's word beyond the border counts
