"""The language model objective: streams of words, sampled and full softmax."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.corpus import Corpus, Stream, TextSource, most_frequent
from elmo_bench.bilm.lm import BidirectionalLM, Negatives, WordTypes, log_expected, sampled_nll
from tests.fakes import cases, refuses
from tests.reference_bilm import Files, ReferenceBiLM, near, write_random

# Text


def words_of(corpus: Corpus, vocabulary: list[str], stream: Stream) -> tuple[str, str]:
    return " ".join(corpus.types[i] for i in stream.inputs), " ".join(vocabulary[i] for i in stream.targets)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6), min_size=1, max_size=8))
def test_streams_of_any_text(sentences):
    types = ["<S>", "</S>", *"abcdefgh"]
    tokens = np.array([types.index(word) for sentence in sentences for word in sentence], dtype=np.int32)
    corpus = Corpus(types, tokens, np.cumsum([len(sentence) for sentence in sentences]))
    vocabulary = ["<S>", "</S>", "<UNK>", *"abcdefgh"]
    for stream, (first, last), turn in zip(
        corpus.streams(vocabulary), (("<S>", "</S>"), ("</S>", "<S>")), (1, -1), strict=True
    ):
        inputs = [word for sentence in sentences for word in (first, *sentence[::turn])]
        targets = [word for sentence in sentences for word in (*sentence[::turn], last)]
        assert words_of(corpus, vocabulary, stream) == (" ".join(inputs), " ".join(targets))


def test_sources_are_read_in_part_and_shuffled(file):
    sentences = "".join(f"w{i} x{i}\n" for i in range(20))
    places = [TextSource(file(sentences, "a.txt"), 7), TextSource(file("end\n", "b.txt"))]
    corpus = Corpus.read(places)
    assert [corpus.types[i] for i in corpus.tokens] == "w0 x0 w1 x1 w2 x2 end".split()  # whole sentences
    assert corpus.ends.tolist() == [2, 4, 6, 7]
    shuffled = [Corpus.read([TextSource(places[0].path)], seed) for seed in (1, 1, 2)]
    orders = [[corpus.types[i] for i in corpus.tokens] for corpus in shuffled]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(sentences.split())
    assert all(x == f"x{w[1:]}" for w, x in zip(orders[0][::2], orders[0][1::2], strict=True))


@pytest.mark.parametrize(
    "content, tokens", [(b"", None), (b"\n \n", None), (b"fine\n\xff\n", None), (b"four words are here\n", 3)]
)
def test_text_that_cannot_be_used(file, content, tokens):
    path = file(content)
    with refuses(f"^{path}:"):
        Corpus.read([TextSource(path, tokens)])


def test_distinct_types_are_encoded_once_and_found_again(tmp_path):
    bilm = BiLM.from_files(*write_random(tmp_path))
    types = ["<S>", "</S>", *(c * n for c in "abc" for n in range(1, 30, 4)), "w" * 80, ""]
    table = WordTypes(types, bilm.encoder)
    draw = np.random.default_rng(0)
    inputs = [draw.integers(0, len(types), (3, 5)), draw.integers(0, len(types), (2, 4))]
    groups, indices = table.distinct(*inputs)
    vectors = bilm.encoder(*groups)
    assert len(vectors) == len(np.unique(np.concatenate([x.ravel() for x in inputs])))
    assert len({group.shape[1] for group in groups}) > 1  # short words are cut short
    for x, index in zip(inputs, indices, strict=True):
        expected = bilm.encoder.words([types[i] for i in x.ravel()])
        near(vectors[index].reshape(-1, vectors.shape[1]), expected)


# Softmax


def test_negatives_are_a_sample_without_repeats():
    for number, vocabulary in ((1, 2), (5, 100), (19, 20), (20, 20), (64, 10_000)):
        drawn = Negatives.draw(number, vocabulary, np.random.default_rng(1))
        again = Negatives.draw(number, vocabulary, np.random.default_rng(1))
        assert torch.equal(drawn.ids, again.ids)
        assert len(set(drawn.ids.tolist())) == number <= drawn.tries
        assert drawn.ids.min() >= 0
        assert drawn.ids.max() < vocabulary
        assert torch.equal(drawn.log_expected, log_expected(drawn.ids, vocabulary, drawn.tries))
        assert drawn.log_expected.max() <= 0


def test_the_expected_counts_are_right():
    """How often an id is drawn, over many draws, is what `log_expected` says; the frequent ones come most often."""
    vocabulary, number, draws = 30, 6, 4000
    generator, counts, expected = np.random.default_rng(0), np.zeros(vocabulary), np.zeros(vocabulary)
    every = torch.arange(vocabulary)
    for _ in range(draws):
        drawn = Negatives.draw(number, vocabulary, generator)
        counts[drawn.ids.numpy()] += 1
        expected += log_expected(every, vocabulary, drawn.tries).exp().numpy()
    assert np.abs(counts - expected).max() / draws < 0.03
    assert (np.diff(expected) < 0).all()
    assert counts[0] > 3 * counts[-1]


@pytest.fixture
def logits():
    """Outputs, softmax rows and biases, targets: N = 4, P = 3, V = 11."""
    torch.manual_seed(0)
    return torch.randn(4, 3), torch.randn(11, 3), torch.randn(11), torch.tensor([3, 0, 10, 3])


def test_a_sample_of_everything_is_the_full_softmax(logits):
    h, weight, bias, targets = (x.clone().requires_grad_(x.is_floating_point()) for x in logits)
    sampled = sampled_nll(h, weight, bias, targets, torch.zeros(4), torch.arange(11), torch.zeros(11))
    full = F.cross_entropy(h @ weight.t() + bias, targets)
    torch.testing.assert_close(sampled, full)
    torch.testing.assert_close(*(torch.autograd.grad(loss, (h, weight, bias)) for loss in (sampled, full)))


def test_the_target_is_corrected_like_the_sample(logits):
    h, weight, bias, targets = logits
    negatives = torch.tensor([1, 4, 3, 7])
    log_targets, log_sample = -torch.rand(4), -torch.rand(4)
    found = sampled_nll(h, weight, bias, targets, log_targets, negatives, log_sample)
    losses = []
    for n, target in enumerate(targets.tolist()):
        true = h[n] @ weight[target] + bias[target] - log_targets[n]
        others = [h[n] @ weight[k] + bias[k] - log_sample[i] for i, k in enumerate(negatives.tolist()) if k != target]
        losses.append(torch.logsumexp(torch.stack([true, *others]), 0) - true)
    torch.testing.assert_close(found, torch.stack(losses).mean())


# Perplexity


def reference_outputs(reference: ReferenceBiLM, words: list[str], direction: int) -> np.ndarray:
    """(T, P) top-layer outputs over a stream of words from zeros, one step at a time."""
    xs = [reference.token(word) for word in words]
    for number, state in enumerate(reference.zeros()[direction]):
        outputs, _ = reference.run(xs, state, direction, number)
        xs = [out + x for out, x in zip(outputs, xs, strict=True)] if number else outputs
    return np.array(xs)


@cases("""
    rows | steps
    1    | 5
    1    | 64
    2    | 3
""")
def test_perplexity_is_that_of_brute_force(tmp_path, file, rows, steps):
    files: Files = write_random(tmp_path / "bilm")
    sentences = [f"the w{i % 5} saw a w{i % 3} ." for i in range(12)]
    corpus = Corpus.read([TextSource(file("\n".join(sentences)))])
    vocabulary = most_frequent(corpus.counts, 8)
    torch.manual_seed(0)
    lm = BidirectionalLM(BiLM.from_files(*files), len(vocabulary))
    torch.nn.init.normal_(lm.softmax_bias.weight)
    found = lm.perplexity(corpus, vocabulary, rows, steps)

    weight, bias = lm.softmax.weight.detach().double().numpy(), lm.softmax_bias.weight.detach().double().numpy()[:, 0]
    reference = ReferenceBiLM(files)
    perplexities, pieces = [], []
    for direction, stream in enumerate(corpus.streams(vocabulary)):
        nll, length = [], len(stream.inputs) // rows
        for start in range(0, rows * length, length):
            words = [corpus.types[i] for i in stream.inputs[start : start + length]]
            logits = reference_outputs(reference, words, direction) @ weight.T + bias  # (T, V)
            log_p = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
            nll += [-log_p[t, stream.targets[start + t]] for t in range(length)]
        perplexities.append(math.exp(np.mean(nll)))
        pieces.append(np.reshape(nll, (rows, length)).mean(axis=1))
    assert found["tokens"] == rows * length
    near([found["forward"], found["backward"], found["mean"]], [*perplexities, np.mean(perplexities)], 1e-4)
    near(found["pieces"], pieces, 1e-4)


def test_a_text_of_one_word_has_a_perplexity(tmp_path, file):
    lm = BidirectionalLM(BiLM.from_files(*write_random(tmp_path)), 4)
    found = lm.perplexity(Corpus.read([TextSource(file("word\n"))]), ["<S>", "</S>", "<UNK>", "word"])
    assert found["tokens"] == 2
    assert found["mean"] > 1
