"""The biLM on a device against what it must give: the same tests on a CPU and, where there is one, on a GPU."""

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch

from elmo_bench.bilm import BiLM
from elmo_bench.speed import measuring
from tests.fakes import for_each
from tests.reference_bilm import PLAIN, SIZES, STRANGE, ReferenceBiLM, near, write_random

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def top_layer(folder: Path, stream: int, sentence: int) -> np.ndarray:
    """(T, 2P) from (2 directions, T, P)."""
    with h5py.File(folder / f"lm_embeddings_{stream}.hdf5") as file:
        return np.concatenate(np.asarray(file[str(sentence)]), axis=-1)


@pytest.mark.parametrize("device", DEVICES)
def test_stored_activations_of_the_original_implementation(device, stored_activations):
    """Three streams of ten sentences with carried state; only the top layer is stored."""
    files = stored_activations / "options.json", stored_activations / "lm_weights.hdf5"
    bilm = BiLM.from_files(*files, state="carry").to(device)
    streams = json.loads((stored_activations / "lm_embeddings_sentences.json").read_text())
    for i in range(10):
        encoded = bilm.encode([stream[i].split() for stream in streams])
        for k in (0, 1):
            near(encoded[k][-1].cpu(), top_layer(stored_activations, k, i), 5e-6)


@pytest.mark.gpu
@for_each("state", "zero warm")
@pytest.mark.parametrize("size", SIZES)
def test_layers_are_those_of_the_reference_in_float64(state, size, tmp_path):
    files = write_random(tmp_path, **SIZES[size])
    bilm, reference = BiLM.from_files(*files, state=state).to("cuda"), ReferenceBiLM(files)
    start = getattr(reference, {"zero": "zeros", "warm": "warm"}[state])()
    sentences = [sentence for sentence in (*PLAIN, *STRANGE) if sentence]
    reference.check((layers.cpu() for layers in bilm.encode(sentences)), sentences, start)


@pytest.mark.gpu
def test_gradients_of_a_biLM_that_is_tuned_are_the_cpus(tmp_path, without_tf32):
    files, found = write_random(tmp_path), []
    for place in ("cpu", "cuda"):
        bilm = BiLM.from_files(*files).to(place).requires_grad_(True)
        bilm.layers(PLAIN).square().sum().backward()
        found.append({name: p.grad.cpu() for name, p in bilm.named_parameters() if p.grad is not None})
    for name, gradient in found[0].items():
        torch.testing.assert_close(found[1][name], gradient, rtol=1e-4, atol=1e-4 * float(gradient.abs().max()))


@pytest.mark.gpu
def test_layers_of_the_original_size_are_the_cpus(tmp_path):
    options, weights = tmp_path / "options.json", tmp_path / "weights.hdf5"
    torch.manual_seed(0)
    BiLM(measuring.ORIGINAL).export(options, weights)
    sentences = measuring.read_sentences(None, 64)[0]
    ours, theirs = (BiLM.from_files(options, weights).to(device).encode(sentences) for device in ("cuda", "cpu"))
    for a, b in zip(ours, theirs, strict=True):
        near(a.cpu(), b, 1e-4)
