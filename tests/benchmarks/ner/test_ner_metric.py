"""Span F1 against an independent statement of conlleval's rules, and `score` on files."""

import gzip
import random
import warnings
from collections.abc import Sequence
from pathlib import Path

import pytest

from elmo_bench.text.tags import SCHEMES, convert
from tasks.ner.metric import NerMetric, score
from tests.fakes import cases, for_each, refuses

Sentences = Sequence[Sequence[str]]


def conlleval(gold: Sentences, predicted: Sentences) -> dict[str, float]:
    """The official scorer's definition, one pass over both columns with a pair of tags at a time.

    Between two words a chunk ends if the one before was in a chunk and: the type changes, or the next is O, B or S, or
    the one before is E or S. A chunk starts at a word that is not O if: the type changes, or it is B or S, or the one
    before is O, E or S. A sentence break counts as O. A chunk is right if it starts and ends with a chunk of the same
    type in the other column, none starting or ending in between.
    """

    def ends(before: str, tag: str) -> bool:
        return before[0] != "O" and (before[1:] != tag[1:] or before[0] in "ES" or tag[0] in "OBS")

    def starts(before: str, tag: str) -> bool:
        return tag[0] != "O" and (before[1:] != tag[1:] or tag[0] in "BS" or before[0] in "OES")

    in_gold = in_predicted = right = 0
    matching = False  # inside chunks that have agreed since their start
    before = ("O", "O")
    for one, other in zip(gold, predicted, strict=True):
        for pair in [*zip(one, other, strict=True), ("O", "O")]:
            closing = [*map(ends, before, pair)]
            opening = [*map(starts, before, pair)]
            if matching and any(closing):
                right += all(closing)
                matching = False
            if any(opening):
                matching = all(opening) and pair[0][1:] == pair[1][1:]
            in_gold += opening[0]
            in_predicted += opening[1]
            before = pair
    precision = 100 * right / in_predicted if in_predicted else 0.0
    recall = 100 * right / in_gold if in_gold else 0.0
    f1 = 2 * precision * recall / (precision + recall) if right else 0.0
    return {"f1": f1, "precision": precision, "recall": recall}


def ours(gold: Sentences, predicted: Sentences) -> dict[str, float]:
    metric = NerMetric()
    for one, other in zip(gold, predicted, strict=True):
        metric.update([other], [{"tags": list(one)}])
    return metric.compute()


def write(path: Path, tags: Sentences) -> Path:
    text = "".join("".join(f"w{i} {tag}\n" for i, tag in enumerate(sentence)) + "\n" for sentence in tags)
    path.write_text(text)
    return path


def random_spans(rng: random.Random, length: int, types: Sequence[str]) -> list[tuple[str, int, int]]:
    found, start = [], 0
    while start < length:
        end = start + rng.randint(1, 3)
        if end <= length and rng.random() < 0.6:
            found.append((rng.choice(types), start, end))
            start = end
        else:
            start += 1
    return found


@pytest.mark.parametrize("scheme", SCHEMES)
def test_equals_conlleval_on_valid_tags_of_every_scheme(scheme, tmp_path):
    rng = random.Random(scheme)
    for _ in range(100):
        types = "PER LOC creative-work 0 _".split()[: rng.randint(1, 5)]
        lengths = [rng.randint(1, 9) for _ in range(6)]
        gold, predicted = (
            [convert(encode_pairs(random_spans(rng, n, types), n), scheme) for n in lengths] for _ in range(2)
        )
        expected = conlleval(gold, predicted)
        assert ours(gold, predicted) == pytest.approx(expected, abs=1e-9)
        files = write(tmp_path / "gold", gold), write(tmp_path / "predicted", predicted)
        assert score(*files) == pytest.approx(expected, abs=1e-9)


def encode_pairs(found: list[tuple[str, int, int]], length: int) -> list[str]:
    tags = ["O"] * length
    for kind, start, end in found:
        tags[start:end] = [f"B-{kind}"] + [f"I-{kind}"] * (end - start - 1)
    return tags


@for_each("letters", "I BI BIES ES")
def test_equals_conlleval_on_broken_sequences(letters):
    rng = random.Random(letters)
    different = 0
    for _ in range(300):
        types = ["PER", "LOC", "a-b"][: rng.randint(1, 3)]
        alphabet = ["O"] * rng.randint(0, 4) + [f"{letter}-{kind}" for letter in letters for kind in types]
        gold = [[rng.choice(alphabet) for _ in range(rng.randint(1, 9))] for _ in range(5)]
        predicted = [[tag if rng.random() < 0.7 else rng.choice(alphabet) for tag in tags] for tags in gold]
        expected = conlleval(gold, predicted)
        different += 0 < expected["f1"] < 100
        assert ours(gold, predicted) == pytest.approx(expected, abs=1e-9)
    assert different > 100


# What conlleval.pl (2004-01-26) printed for these pairs of columns: phrases in gold, found, correct.
@cases("""
    gold                | predicted           | counts
    I-PER I-PER O I-LOC | B-PER I-PER O B-LOC | [2, 2, 2]
    I-PER B-PER O       | B-PER I-PER O       | [2, 1, 0]
    O I-PER I-LOC       | O B-PER I-LOC       | [2, 2, 2]
    B-PER I-LOC I-LOC   | B-PER B-LOC I-LOC   | [2, 2, 2]
    B-PER I-PER O       | O I-PER O           | [1, 1, 0]
    O O O               | I-PER O B-PER       | [0, 2, 0]
    B-PER I-PER I-PER   | B-PER I-PER B-PER   | [1, 2, 0]
""")
def test_known_counts(gold, predicted, counts):
    metric = NerMetric()
    metric.update([predicted.split()], [{"tags": gold.split()}])
    tp, fp, fn = metric.items().totals().values()
    assert [tp + fn, tp + fp, tp] == counts


def test_without_entities_all_is_zero_plain_floats_and_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = ours([["O", "O"]], [["O", "O"]])
    assert scores == {"f1": 0.0, "precision": 0.0, "recall": 0.0}
    assert all(type(value) is float for value in scores.values())
    assert ours([["B-PER"]], [["O"]])["f1"] == 0.0


def test_schemes_may_differ_between_gold_and_predictions(tmp_path):
    rng = random.Random(0)
    found = [random_spans(rng, 12, ["PER", "LOC"]) for _ in range(20)]
    assert any(found)
    tags = {scheme: [convert(encode_pairs(spans_, 12), scheme) for spans_ in found] for scheme in SCHEMES}
    bilou = [[tag.replace("S-", "U-").replace("E-", "L-") for tag in sentence] for sentence in tags["bioes"]]
    gold = write(tmp_path / "gold", tags["iob1"])
    for predicted in (tags["iob2"], tags["bioes"], bilou):
        assert score(gold, write(tmp_path / "predicted", predicted))["f1"] == 100.0


def test_score_reads_four_columns_docstart_and_compressed_files(tmp_path, file):
    gold = "-DOCSTART- -X- -X- O\n\nRoma NNP B-NP I-LOC\nwakes VBZ B-VP O\n\nIda NNP B-NP I-PER\nBell NNP I-NP I-PER\n"
    predicted = "Roma\tB-LOC\nwakes\tO\n\n\nIda\tB-PER\nBell\tB-PER\n"
    file(gold, "gold")
    file(gzip.compress(predicted.encode()), "predicted.gz")
    scores = score(tmp_path / "gold", tmp_path / "predicted.gz")
    assert scores == pytest.approx({"f1": 40.0, "precision": 100 / 3, "recall": 50.0})


@cases(r"""
    predicted                  | line | words
    "a O\nb O\n\n"             | 2 | ends before the sentence
    "a O\nb O\n\nc O\n\nd O\n" | 6 | more sentences
    "a O\n\nc O\n"             | 1 | ends before 'b'
    "a O\nb O\nx O\n\nc O\n"   | 3 | 'x' where the sentence ends
    "a O\nB O\n\nc O\n"        | 2 | 'B' where 'b'
    "a O\nb X-PER\n\nc O\n"    | 2 | no known scheme
    "a\nb\n\nc\n"              | 1 | 1 column
""")
def test_columns_of_tags_that_do_not_fit_are_named_with_their_line(tmp_path, predicted, line, words, file):
    gold = file("a O\nb B-PER\n\nc O\n", "gold")
    file(predicted, "predicted")
    with refuses(words, f"predicted:{line}: "):
        score(gold, tmp_path / "predicted")


def test_predictions_of_another_length_are_a_fault_of_the_code():
    with pytest.raises(ValueError, match="2 predicted tags for 1"):
        NerMetric().update([["O", "O"]], [{"tags": ["O"]}])
