"""What makes the frozen biLM fast changes none of its numbers, whatever is done to it and around it."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from elmo_bench.bilm import BiLM, frozen
from elmo_bench.nn.kernels import library
from tests.fakes import for_each
from tests.reference_bilm import NEAR, PLAIN, STRANGE, Files, ReferenceBiLM, near

# What is prepared for speed follows the weights


def test_many_words_pass_through_a_small_memory(small, monkeypatch):
    monkeypatch.setattr(frozen, "REMEMBERED_WORDS", 7)
    monkeypatch.setattr(frozen, "WINDOWS", 64)
    forgetful, reference = BiLM.from_files(*small), ReferenceBiLM(small)
    start = reference.warm()
    for sentences in (PLAIN, PLAIN[3:], STRANGE, [["one", "two"]], PLAIN[::-1], PLAIN[3:]):
        reference.check(forgetful.encode(sentences), sentences, start)


@for_each("rest", "4 20 33")
def test_torch_alone_reads_any_shape_of_batch(small, monkeypatch, rest):
    """Many sentences end at one step, in the middle of a block of input products."""
    monkeypatch.setattr(frozen, "for_weight", lambda weight, half: None)
    bilm = BiLM.from_files(*small)
    together = bilm.encode([["a"] * 23] * 50 + [["b"] * 24] * rest)
    for word, layers in (("a", together[0]), ("b", together[-1])):
        near(bilm.encode([[word] * layers.shape[1]])[0], layers)


@pytest.mark.slow
@pytest.mark.parametrize("change", ["in place", "loaded", "one bias"])
def test_new_weights_are_noticed(files, tmp_path, change):
    bilm = BiLM.from_files(*files)
    before = bilm.encode(PLAIN)
    with torch.no_grad():
        if change == "in place":
            for parameter in bilm.parameters():
                parameter.mul_(1.1)
        elif change == "loaded":
            bilm.load_state_dict({name: 0.9 * tensor for name, tensor in bilm.state_dict().items()})
        else:
            bilm.directions[0][0].bias.add_(0.5)  # type: ignore[index]
    encoded = bilm.encode(PLAIN)
    bilm.export(tmp_path / "options.json", tmp_path / "weights.hdf5")
    reference = ReferenceBiLM(Files(tmp_path / "options.json", tmp_path / "weights.hdf5"))
    reference.check(encoded, PLAIN, reference.warm())
    assert all((layers - old).abs().max() > 1e-3 for layers, old in zip(encoded, before, strict=True))


def test_threads_share_a_bilm(small):
    """Several threads fill and read the memory of words at once."""
    bilm, reference = BiLM.from_files(*small), ReferenceBiLM(small)
    sentences = [[f"w{i}-{j}" for j in range(5)] for i in range(60)]
    start, wrong = reference.warm(), []
    expected = [reference.sentence(sentence, start)[0] for sentence in sentences]

    def work(first: int) -> None:
        for i in range(first, len(sentences), 2):
            for k in (i, (i + 7) % len(sentences)):
                if np.abs(bilm.encode([sentences[k]])[0].numpy() - expected[k]).max() > NEAR:
                    wrong.append(k)

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, 3 * [0, 1]))
    assert not wrong


def test_two_directions_side_by_side_are_the_same(small, monkeypatch, set_threads):
    monkeypatch.setattr(frozen, "for_weight", lambda weight, half: None)
    bilm = BiLM.from_files(*small)
    set_threads(1)
    one = bilm.encode(PLAIN)
    set_threads(2)
    two = bilm.encode(PLAIN)
    assert torch.get_num_threads() == 2
    for a, b in zip(one, two, strict=True):
        near(a, b)


# Modes of torch


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
@for_each("state", "zero warm carry")
def test_another_default_type_changes_no_bit(small, default_dtype, state, dtype):
    def encoded() -> list[torch.Tensor]:
        bilm = BiLM.from_files(*small, state=state)
        return [*bilm.encode(PLAIN), *bilm.encode([[], *STRANGE]), bilm.layers([]), bilm.layers(PLAIN)]

    expected = encoded()
    frozen.kernels.cache_clear()  # so that they are checked under this default
    default_dtype(dtype)
    torch.testing.assert_close(encoded(), expected, rtol=0, atol=0)


@for_each("state", "zero warm carry")
def test_a_bilm_computes_in_the_type_to_which_it_was_cast(small, state):
    """In the middle of a text, too; back in float32 it has the rounded weights."""
    bilm = BiLM.from_files(*small, state=state)
    expected = bilm.encode(PLAIN) + bilm.encode(PLAIN)
    for dtype, apart in ((torch.float64, 1e-4), (torch.float16, 0.1), (torch.bfloat16, 0.5), (torch.float32, 0.5)):
        bilm.reset_state()
        found = bilm.encode(PLAIN) + bilm.to(dtype).encode(PLAIN)
        for one, other in zip(found, expected, strict=True):
            assert one.dtype == torch.float32
            assert (one - other).abs().max() < apart
        bilm.requires_grad_(True).layers(PLAIN).float().sum().backward()
        bilm.requires_grad_(False)
    assert (bilm.encode(PLAIN)[0] - expected[0]).abs().max() > 1e-4


def test_numbers_that_the_compiled_functions_cannot_read_are_not_given_to_them():
    with pytest.raises(AssertionError):
        library._plain(torch.zeros(1, dtype=torch.float64))


def test_inference_mode_and_autocast_change_nothing(small):
    expected = BiLM.from_files(*small).layers(PLAIN)
    with torch.inference_mode():
        born_inside = BiLM.from_files(*small)
        near(born_inside.layers(PLAIN), expected)
    near(born_inside.layers(PLAIN), expected)
    bilm = BiLM.from_files(*small)
    with torch.inference_mode():
        bilm.layers(PLAIN[:2])
    with torch.autocast("cpu"):
        near(bilm.layers(PLAIN), expected)
        near(bilm.requires_grad_(True).layers(PLAIN).detach(), expected)
    bilm.layers(PLAIN).sum().backward()  # what was kept from inference mode does not stand in the way
    assert all(parameter.grad is not None for parameter in bilm.parameters())


def test_encoding_leaves_the_random_numbers_alone(small):
    """Else a run that finds its layers cached would train differently from the run that cached them."""
    torch.manual_seed(3)
    expected = torch.get_rng_state()
    BiLM.from_files(*small).encode(PLAIN)
    assert torch.equal(torch.get_rng_state(), expected)


def test_a_used_bilm_can_be_copied(small):
    bilm = BiLM.from_files(*small)
    expected = bilm.encode(PLAIN[:1])[0]
    for other in (copy.deepcopy(bilm), pickle.loads(pickle.dumps(bilm))):
        near(other.encode(PLAIN[:1])[0], expected)
        with torch.no_grad():
            other.encoder.characters.weight.mul_(2)
        assert (other.encode(PLAIN[:1])[0] - expected).abs().max() > 1e-3
    near(bilm.encode(PLAIN[:1])[0], expected)
