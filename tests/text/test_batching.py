"""Padding, batches of similar length, and word vectors from files."""

import pytest
import torch

from elmo_bench.embedding.tables import VectorFiles
from elmo_bench.embedding.vectors import Lookup, find, word_embedding
from elmo_bench.text.batching import BucketSampler, pad_tokens
from elmo_bench.text.vocabulary import Vocabulary
from tests.drill.documents import zipped
from tests.fakes import at, cases, for_each, refuses

LENGTHS = [1 + (i * i) % 37 for i in range(203)]


def test_pad_tokens():
    words, chars = Vocabulary(["ida", "sings"]), Vocabulary("Idasng")
    tokens = pad_tokens([["Ida", "sings", "!"], ["Sings"]], words, chars, lower=True, char_limit=4)
    assert tokens.words.tolist() == [[2, 3, 1], [3, 0, 0]]
    assert tokens.mask.tolist() == [[True, True, True], [True, False, False]]
    assert tokens.chars is not None
    assert tokens.chars.shape == (2, 3, 4)  # "sings" is cut to 4
    assert tokens.chars[0].tolist() == [[2, 3, 4, 0], [5, 1, 6, 7], [1, 0, 0, 0]]
    assert tokens.chars[1, 0].tolist() == [1, 1, 6, 7]
    assert not tokens.chars[1, 1:].any()
    assert tokens.sentences == [["Ida", "sings", "!"], ["Sings"]]
    cased = pad_tokens([["Ida"]], words)
    assert cased.words.tolist() == [[1]]
    assert cased.chars is None


@for_each("budget", "null 100 5")
@for_each("shuffle", "true false")
def test_every_sentence_once_within_the_bounds(budget, shuffle):
    sampler = BucketSampler(LENGTHS, 16, seed=3, token_budget=budget, shuffle=shuffle)
    for epoch in range(3):
        batches = sampler.batches(epoch)
        assert sorted(i for batch in batches for i in batch) == list(range(len(LENGTHS)))
        assert len(batches) == len(sampler)
        assert all(1 <= len(batch) <= 16 for batch in batches)
        if budget is not None:
            assert all(len(batch) == 1 or len(batch) * max(LENGTHS[i] for i in batch) <= budget for batch in batches)


def test_batches_follow_from_seed_and_epoch_alone():
    def sampler(seed: int) -> BucketSampler:
        return BucketSampler(LENGTHS, 8, seed=seed)

    one, other = sampler(1), sampler(1)
    one.batches(0)  # drawing changes nothing
    assert one.batches(4) == one.batches(4) == other.batches(4)
    assert other.batches(4) != other.batches(5)
    assert other.batches(4) != sampler(2).batches(4)


def test_the_same_batches_on_every_machine():
    """Fixed numbers: with another order no recorded run could be repeated."""
    batches = BucketSampler([5, 1, 9, 2, 8, 3, 12, 4], 2, seed=7).batches(3)
    assert batches == [[7, 1], [2, 6], [0, 4], [3, 5]]


def test_lengths_within_a_batch_are_similar():
    sampler = BucketSampler(LENGTHS, 8)
    padded = sum(len(batch) * max(LENGTHS[i] for i in batch) for batch in sampler.batches(0))
    assert padded < 1.25 * sum(LENGTHS)
    ordered = BucketSampler(LENGTHS, 8, shuffle=False).batches(0)
    assert LENGTHS[ordered[0][0]] >= 33
    assert LENGTHS[ordered[-1][-1]] <= 4


# Word vectors.


VECTORS = "the 0.5 1 -2\nsings 1 2 3\nsings 9 9 9\nrare 4 4 4\n. . . 7 7 7\n"
WORDS = Vocabulary(["sings", "the", "unseen"])


def test_random_vectors():
    torch.manual_seed(0)
    table = word_embedding(WORDS, 50)
    assert table.weight.shape == (5, 50)
    assert not table.weight[0].any()
    assert table.weight[1:].std().item() == pytest.approx(50**-0.5, rel=0.2)
    assert table.weight.requires_grad


@for_each("form", "plain gz xz zip header")
def test_vectors_of_the_vocabulary_the_first_of_a_word(file, form):
    packed = zipped({"v.2d.txt": b"the 1 2\n", "v.3d.txt": VECTORS.encode()})
    content = packed if form == "zip" else ("5 3\n" if form == "header" else "") + VECTORS
    path = file(content, "vectors.3d.txt" + f".{form}" * (form not in ("plain", "header")))
    found = find(VectorFiles(path), WORDS.items, 3, Lookup())
    assert {word: vector.tolist() for word, vector in found.items()} == {"the": [0.5, 1, -2], "sings": [1, 2, 3]}


@cases(r"""
    content                      | line | words
    "the 1 2 3\nsings 1 2\n"     | 2    | 2 numbers where 3
    "the 1 2 3\nsings 1 2 3 4\n" | 2    | 4 numbers where 3
    "the 1 2 3 4\n"              | 1    | 4 numbers where 3
    "the 1 2 3\nsings 1 x 3\n"   | 2    | not a number
    "the 1 nan 3\n"              | 1    | not finite
    "the 1 1e999 3\n"            | 1    | not finite
    "the 1 1_0 3\n"              | 1    | not a number
    "the 1 ٣ 3\n"                | 1    | not a number
    "the 1 2 3\n\n"              | 2    | empty line
    "other 1 2 3\n"              | null | has 0 of the
    ""                           | null | has 0 of the
""")
def test_faults_in_vector_files(file, content, line, words):
    path = file(content, "vectors.txt")
    with refuses(words, at(path, line)):
        find(VectorFiles(path), WORDS.items, 3, Lookup())


def test_archives_that_do_not_say_which_file(file):
    path = file(zipped(dict.fromkeys(("one.txt", "two.txt"), VECTORS.encode())), "vectors.zip")
    with refuses(r"one\.txt, two\.txt"):
        find(VectorFiles(path), WORDS.items, 3, Lookup())
    path.write_bytes(b"no archive")
    with refuses("damaged"):
        find(VectorFiles(path), WORDS.items, 3, Lookup())
