"""The biLM against an independent NumPy reference, and what its states promise."""

import hashlib
import json
import os
import subprocess
import sys
import tracemalloc

import h5py
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.encoder import character_table
from elmo_bench.commands.use import Embed, embed
from tests.conftest import ROOT
from tests.fakes import for_each, refuses
from tests.reference_bilm import PLAIN, STRANGE, ReferenceBiLM, near, write_random

pytestmark = pytest.mark.slow


# Against the reference


@for_each("state", "zero warm")
def test_layers_are_the_references(files, state):
    reference = ReferenceBiLM(files)
    start = getattr(reference, {"zero": "zeros", "warm": "warm"}[state])()
    encoded = BiLM.from_files(*files, state=state).encode(PLAIN + STRANGE)
    assert {layers.dtype for layers in encoded} == {torch.float32}
    reference.check(encoded, PLAIN + STRANGE, start)


def test_state_is_carried_row_by_row(files):
    """Batches that shrink and grow, rows of different length; a row beyond the batch keeps its state."""
    bilm, reference = BiLM.from_files(*files, state="carry"), ReferenceBiLM(files)
    for batches in ((PLAIN[:3], [[], *PLAIN[3:]], [PLAIN[2]], [], [*STRANGE[:4], []], [[]], PLAIN), [PLAIN[:1]]):
        states = [reference.zeros() for _ in range(5)]
        for batch in batches:
            encoded = bilm.encode(batch)
            for row, sentence in enumerate(batch):
                layers, states[row] = reference.sentence(sentence, states[row])
                near(encoded[row], layers)
        bilm.reset_state()


def test_embed_says_that_lines_of_one_group_carry_nothing(small, tmp_path, call, file):
    options, weights = small
    file("a boat\na cat\n", "text.txt")
    given = f"options={options} weights={weights} input={tmp_path}/text.txt output={tmp_path}/out.hdf5 state=carry"
    assert "every line began from zeros, because all are one group; group=1 carries" in call(Embed, *given.split())[2]
    assert "began from zeros" not in call(Embed, *given.split(), "group=1")[2]


def test_every_part_of_the_architecture_is_felt(tmp_path):
    """Agreement with the reference would prove little where a clip never bites or a residual adds nothing."""
    expected = BiLM.from_files(*write_random(tmp_path)).encode(PLAIN[:1])[0]
    for change in ({"cell_clip": None}, {"proj_clip": None}, {"skip": False}):
        changed = BiLM.from_files(*write_random(tmp_path, **change)).encode(PLAIN[:1])[0]  # type: ignore[arg-type]
        assert (changed - expected).abs().max() > 0.01, change
    states = [BiLM.from_files(*write_random(tmp_path), state=state).encode(PLAIN[:1])[0] for state in ("zero", "warm")]
    assert (states[0] - states[1]).abs().max() > 0.01


token = st.one_of(st.text(max_size=5), st.text(min_size=40, max_size=60), st.sampled_from(["<S>", "</S>", "\ud800"]))


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(token, max_size=6), max_size=5))
def test_any_tokens_are_the_references(shared, sentences):
    bilm, reference, warm = shared
    reference.check(bilm.encode(sentences), sentences, warm)


@pytest.fixture(scope="module")
def shared(small):
    reference = ReferenceBiLM(small)
    return BiLM.from_files(*small), reference, reference.warm()


@given(st.text(max_size=60), st.integers(4, 60))
def test_character_ids_are_bytes_between_marks(token, length):
    ids = character_table([token], length)[0]
    code = token.encode("utf-8", "ignore")[: length - 2]
    padding = length - 2 - len(code)
    assert ids.tolist() == [259, *(byte + 1 for byte in code), 260, *[261] * padding]


def test_character_ids_of_marks():
    assert character_table(["<S>"], 5)[0].tolist() == [259, 257, 260, 261, 261]
    assert character_table(["</S>"], 5)[0].tolist() == [259, 258, 260, 261, 261]


# What a sentence's vectors depend on: the sentence


@for_each("state", "zero warm")
def test_vectors_depend_on_the_sentence_alone(files, state):
    sentences = PLAIN + STRANGE
    bilm = BiLM.from_files(*files, state=state)
    alone = [bilm.encode([sentence])[0] for sentence in sentences]
    orders = [np.random.default_rng(seed).permutation(len(sentences)) for seed in range(2)]
    for budget in (25, 100_000):
        bilm.token_budget = budget
        for order in orders:
            for layers, i in zip(bilm.encode([sentences[i] for i in order]), order, strict=True):
                near(layers, alone[i])
    for order in orders:
        padded = bilm.layers([sentences[i] for i in order])
        assert padded.shape == (len(sentences), bilm.n_layers, max(map(len, sentences)), bilm.width)
        for row, i in zip(padded, order, strict=True):
            near(row[:, : len(sentences[i])], alone[i])
            assert not row[:, len(sentences[i]) :].any()


@pytest.mark.usefixtures("one_thread")
def test_two_processes_give_the_same_bits(small):
    """This one, and another in which words have other hashes."""
    script = (
        "import sys, torch, hashlib; from elmo_bench.bilm import BiLM; torch.set_num_threads(1);"
        "layers = BiLM.from_files(*sys.argv[1:3]).encode([s.split() for s in sys.argv[3:]]);"
        "print(hashlib.sha256(b''.join(x.numpy().tobytes() for x in layers)).hexdigest())"
    )
    other = subprocess.run(
        [sys.executable, "-c", script, *map(str, small), *(" ".join(sentence) for sentence in PLAIN)],
        cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": "1"}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    layers = BiLM.from_files(*small).encode(PLAIN)
    assert other.stdout.strip() == hashlib.sha256(b"".join(x.numpy().tobytes() for x in layers)).hexdigest()


def test_nothing_in_nothing_out(files):
    for state in ("zero", "warm", "carry"):
        bilm = BiLM.from_files(*files, state=state)
        assert bilm.encode([]) == []
        assert bilm.layers([]).shape == (0, bilm.n_layers, 0, bilm.width)
        assert [x.shape for x in bilm.encode([[], []])] == 2 * [(bilm.n_layers, 0, bilm.width)]
        assert bilm.layers([[], []]).shape == (2, bilm.n_layers, 0, bilm.width)


def test_a_bilm_is_called_like_its_layers_and_opened_by_its_files(small):
    bilm = BiLM.from_files(*small)
    assert torch.equal(bilm(PLAIN), bilm.layers(PLAIN))
    with refuses(r'no weights: BiLM.from_files\("options.json", "weights.hdf5"\) opens files'):
        BiLM(*map(str, small))  # type: ignore[arg-type]


def test_budgets_bound_the_batches_not_the_answer(small):
    bilm = BiLM.from_files(*small, token_budget=12)
    sentences = [[f"w{i}"] * (i % 7) for i in range(40)] + [["long"] * 50]
    seen, lengths = [], [len(sentence) for sentence in sentences]
    for indices, layers in bilm.batches(sentences):
        assert layers.shape == (bilm.n_layers, sum(lengths[i] for i in indices), bilm.width)
        assert len(indices) == 1 or sum(lengths[i] + 2 for i in indices) <= 12
        seen += indices
    assert sorted(seen) == list(range(len(sentences)))


def test_the_index_of_an_embedded_text_is_not_kept_in_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("elmo_bench.commands.use._encoded", lambda bilm, texts: [torch.zeros(3, 1, 2) for _ in texts])
    peaks = []
    for lines in (64, 640):
        text = tmp_path / f"{lines}.txt"
        text.write_text("".join(f"{i} {'w' * 5000}\n" for i in range(lines)))
        tracemalloc.start()
        embed(None, text, tmp_path / "layers.hdf5", group=16)  # type: ignore[arg-type]
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        with h5py.File(tmp_path / "layers.hdf5") as file:
            index = json.loads(file["sentence_to_index"][0])  # type: ignore[index]
        assert list(index.values()) == [str(i) for i in range(lines)]
    assert peaks[1] < peaks[0] + 500_000  # the text is 3 MB longer


def test_the_token_encoder_is_exported_for_any_number_of_words():
    encoder = BiLM.open("mini").encoder
    one, other = (torch.from_numpy(character_table(words)).long() for words in (["a", "boat"], ["boats", "a", "é"]))
    words = torch.export.Dim("words", min=2)
    exported = torch.export.export(encoder, (one,), dynamic_shapes=(({0: words},),))
    torch.testing.assert_close(exported.module()(other), encoder(other))
