"""Gradients of the biLM against autograd through a naive computation, one word and one step at a time."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.encoder import character_table
from elmo_bench.bilm.lstm import ProjectedLSTM, State
from tests.fakes import for_each
from tests.reference_bilm import SIZES, write_random

SENTENCES = ["a cart passed the gate".split(), ["rain"], [], "the gate was open , the cart gone".split()]


def naive_token(bilm: BiLM, word: str) -> Tensor:
    """(P,), with all characters and every window."""
    encoder = bilm.encoder
    ids = torch.from_numpy(character_table([word], bilm.options.char_cnn.max_characters_per_token)).long()  # (1, K)
    x = encoder.characters.weight[ids].transpose(1, 2)
    y = torch.cat([F.conv1d(x, c.weight, c.bias)[0].max(dim=-1).values for c in encoder.convolutions])  # type: ignore
    y = torch.tanh(y) if bilm.options.char_cnn.activation == "tanh" else F.relu(y)
    for highway in encoder.highways:
        gate = torch.sigmoid(highway.carry(y))  # type: ignore[operator]
        y = gate * F.relu(highway.transform(y)) + (1 - gate) * y  # type: ignore[operator]
    return encoder.projection(y)


def naive_lstm(layer: ProjectedLSTM, xs: list[Tensor], h: Tensor, c: Tensor) -> tuple[list[Tensor], Tensor, Tensor]:
    cell_clip, proj_clip = layer.clips
    outputs = []
    for x in xs:
        i, j, f, o = (layer.input @ x + layer.recurrent @ h + layer.bias).chunk(4)
        c = (torch.sigmoid(f + 1) * c + torch.sigmoid(i) * torch.tanh(j)).clamp(-cell_clip, cell_clip)
        h = (layer.projection @ (torch.sigmoid(o) * torch.tanh(c))).clamp(-proj_clip, proj_clip)
        outputs.append(h)
    return outputs, h, c


def naive_layers(bilm: BiLM, sentence: list[str], starts: list) -> tuple[Tensor, list]:
    """(L+1, T, 2P) and the states after the sentence."""
    token = [naive_token(bilm, word) for word in ("<S>", *sentence, "</S>")]
    halves, ends = [], []
    for direction, stack in enumerate(bilm.directions):
        xs, layers, end = token[::-1] if direction else token, [torch.stack(token)], []
        for number, layer in enumerate(stack):  # type: ignore[arg-type]
            outputs, h, c = naive_lstm(layer, xs, *starts[direction][number])
            end.append((h.detach(), c.detach()))
            residual = number > 0 and bilm.options.lstm.use_skip_connections
            xs = [out + x for out, x in zip(outputs, xs, strict=True)] if residual else outputs
            layers.append(torch.stack(xs[::-1] if direction else xs))
        halves.append(torch.stack(layers))
        ends.append(end)
    return torch.cat(halves, dim=-1)[:, 1:-1], ends


def naive_starts(bilm: BiLM) -> list:
    """Zeros, or for "warm" the state after empty sentences; without gradients."""
    sizes = bilm.options.lstm.projection_dim, bilm.options.lstm.dim
    starts = [[tuple(map(torch.zeros, sizes)) for _ in stack] for stack in bilm.directions]  # type: ignore[arg-type]
    for _ in range(8 if bilm.state == "warm" else 0):
        starts = naive_layers(bilm, [], starts)[1]
    return starts


def gradients(bilm: BiLM, loss: Tensor) -> dict[str, Tensor]:
    bilm.zero_grad()
    loss.backward()
    return {name: parameter.grad.clone() for name, parameter in bilm.named_parameters()}  # type: ignore[union-attr]


@pytest.mark.slow
@for_each("state", "zero warm")
@pytest.mark.parametrize("size", SIZES)
def test_gradients_of_every_parameter(size, state, tmp_path):
    bilm = BiLM.from_files(*write_random(tmp_path, **SIZES[size]), state=state).requires_grad_(True)
    padded = bilm.layers(SENTENCES)  # (B, L+1, T, 2P)
    weights = torch.randn(padded.shape, generator=torch.Generator().manual_seed(1))
    actual = gradients(bilm, (padded * weights).sum())

    starts, loss = naive_starts(bilm), torch.zeros(())
    for row, sentence in enumerate(SENTENCES):
        layers, _ = naive_layers(bilm, sentence, starts)
        torch.testing.assert_close(padded[row, :, : len(sentence)], layers, atol=1e-5, rtol=1e-5)
        loss = loss + (layers * weights[row, :, : len(sentence)]).sum()
    expected = gradients(bilm, loss)
    torch.testing.assert_close(actual, expected, atol=2e-4, rtol=1e-4)
    for name, gradient in expected.items():
        assert gradient.abs().max() > 1e-3, f"nothing is learnt about {name}"


def test_frozen_parameters_get_no_gradient(tmp_path):
    bilm = BiLM.from_files(*write_random(tmp_path))
    assert not bilm.layers(SENTENCES).requires_grad
    bilm.directions[0].requires_grad_(True)
    bilm.layers(SENTENCES).sum().backward()
    assert bilm.encoder.characters.weight.grad is None
    assert all(parameter.grad is not None for parameter in bilm.directions[0].parameters())
    with torch.no_grad():
        assert not bilm.layers(SENTENCES).requires_grad


@pytest.mark.parametrize("clips", [(None, None), (0.3, 0.25)])
def test_gradcheck_of_a_layer(clips):
    """In float64, where finite differences are exact enough; the state before the first step is a constant."""
    torch.manual_seed(0)
    layer = ProjectedLSTM(3, 4, 2, *clips).double()
    batch_sizes = [3, 3, 2, 1]
    x = torch.randn(sum(batch_sizes), 3, dtype=torch.float64)
    state = State(*(torch.randn(3, size, dtype=torch.float64) * 0.1 for size in (2, 4)))
    names = [name for name, _ in layer.named_parameters()]

    def run(x: Tensor, *parameters: Tensor) -> Tensor:
        values = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(layer, values, (x, batch_sizes, state))[0]

    inputs = [tensor.detach().requires_grad_() for tensor in (x, *(2 * p for p in layer.parameters()))]
    if clips[0] is not None:
        assert (run(*inputs).abs() == clips[1]).double().mean() > 0.1  # the clip bites, and does not bite everything
        assert (run(*inputs).abs() < clips[1]).double().mean() > 0.1
    assert torch.autograd.gradcheck(run, inputs)


def test_training_a_biLM_moves_the_warm_state(tmp_path):
    """The start of a sentence follows the weights from update to update."""
    bilm = BiLM.from_files(*write_random(tmp_path)).requires_grad_(True)
    optimiser = torch.optim.SGD(bilm.parameters(), 0.05)
    for _ in range(2):
        bilm.layers(SENTENCES).square().sum().backward()
        optimiser.step()
        optimiser.zero_grad()
    starts = naive_starts(bilm)
    with torch.no_grad():
        expected = naive_layers(bilm, SENTENCES[0], starts)[0]
    torch.testing.assert_close(bilm.layers(SENTENCES[:1])[0], expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(bilm.encode(SENTENCES[:1])[0], expected, atol=1e-5, rtol=1e-5)


@for_each("state", "zero warm")
def test_steps_of_a_fused_optimiser_are_noticed(tmp_path, state):
    """It changes the weights, but not their `_version`: what is prepared for frozen weights must not outlive a step."""
    bilm = BiLM.from_files(*write_random(tmp_path), state=state).requires_grad_()
    optimiser = torch.optim.Adam(bilm.parameters(), 0.05, fused=True)
    for _ in range(2):
        with torch.no_grad():
            before = bilm.encode(SENTENCES)
        bilm.layers(SENTENCES).square().sum().backward()
        optimiser.step()
        fresh = copy.deepcopy(bilm)
        with torch.no_grad():
            after, expected = bilm.encode(SENTENCES), fresh.encode(SENTENCES)
        assert (after[0] - before[0]).abs().max() > 0.01
        torch.testing.assert_close(after, expected, rtol=0, atol=0)


class Around(torch.nn.Module):
    def __init__(self, bilm: BiLM):
        super().__init__()
        self.bilm = bilm

    def forward(self, sentences: list[list[str]]) -> Tensor:
        return 2 * self.bilm(sentences)


@pytest.mark.slow
@for_each("trains", "false true")
def test_compiled_alone_and_inside_a_module_the_layers_and_gradients_are_the_same(tmp_path, trains):
    bilm = BiLM.from_files(*write_random(tmp_path)).requires_grad_(trains)
    for sentences in ([["Ida", "sang"], ["Rain"]], [["a", "b", "c"]]):
        bilm(sentences)  # the warm state that follows from training is that of the modules
        expected, inside = bilm(sentences), torch.compile(Around(bilm), backend="eager")(sentences)
        assert torch.equal(torch.compile(bilm, backend="eager")(sentences), expected)
        assert torch.equal(inside, 2 * expected)
        if trains:
            ours, theirs = (gradients(bilm, loss) for loss in (2 * expected.sum(), inside.sum()))
            torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_hooks_inside_fire_where_the_modules_compute(tmp_path):
    """As docs/python.md has it."""
    bilm, called = BiLM.from_files(*write_random(tmp_path)), []
    for name, part in (("encoder", bilm.encoder), ("layer", bilm.directions[0][1])):  # type: ignore[index]
        part.register_forward_hook(lambda *_, name=name: called.append(name))
    bilm([["a"]])
    assert called == []
    bilm.requires_grad_(True)
    with torch.no_grad():
        bilm([["a"]])
    assert called == []
    bilm([["a"]])
    assert {*called} == {"encoder", "layer"}
