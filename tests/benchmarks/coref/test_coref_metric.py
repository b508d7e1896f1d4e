"""Coreference scores: those of the reference scorer v8.01, those of another implementation, files and their faults."""

import random
import re
from fractions import Fraction

import pytest
from scorch import scores as scorch

from elmo_bench.system.errors import UserError
from tasks.coref.metric import CorefMetric, score, summed
from tests.fakes import at, cases, refuses, table

pytestmark = pytest.mark.slow

# One document as its column, gold and predicted, and the four counts of each metric that the reference scorer v8.01
# printed: recall's numerator and denominator, precision's numerator and denominator. Of `touching` it reads (0 before
# 0) of the same cell: one mention of five words and one of the third word.
PRINTED = table(r"""
    the same     | (0) (1) (0) (1)         | (0) (1) (0) (1)          | 2 2 2 2 | 4 4 4 4     | 2 2 2 2
    no gold      | - - - -                 | (0) (0) - -              | 0 0 0 1 | 0 0 0 2     | 0 0 0 1
    no answer    | (0) (0) - -             | - - - -                  | 0 1 0 0 | 0 2 0 0     | 0 1 0 0
    neither      | - - - -                 | - - - -                  | 0 0 0 0 | 0 0 0 0     | 0 0 0 0
    twinless     | (0) - (0) (1) (1)       | (0) (2) (0) (2) (1)      | 1 2 1 2 | 3 4 3.5 5   | 5/3 2 5/3 3
    singletons   | (0) (1) (2) - (0)       | (0) (1) - (3) (0)        | 1 1 1 1 | 3 4 3 4     | 2 3 2 3
    nested       | (0|(1 1) (1) 0) (0)     | (0 (1) (1) 0) (0)|(1)    | 1 2 1 2 | 2.5 4 2.5 4 | 1.5 2 1.5 2
    crossing     | (0 (1 0) 1) (0) (1)     | (0 (1 0) 1) (1) (0)      | 0 2 0 2 | 2 4 2 4     | 1 2 1 2
    touching     | (0 - 0)|(0 - 0)         | (0 - 0) (1) (0)          | 0 1 0 1 | 0 2 0 3     | 0 1 0 2
    repeated     | (0)|(1) (0) (1) (2) (2) | (0) (0)|(1) (1) (2)|(2) (2) | 1 3 1 2 | 4 6 4.5 5 | 8/3 3 8/3 3
    and twinless | (0) - (0) - -           | (0) (1)|(1) (0) (1) -    | 1 1 1 3 | 2 2 2 5     | 1 1 1 2
""")


def document(column: str, name="(a/b_0001); part 000", before="w\t", end="#end document") -> str:
    return "\n".join([f"#begin document {name}", *(before + cell for cell in column.split()), "", end, ""])


@pytest.fixture
def scored(file):
    """The scores of the text of two files, gold and predicted."""
    return lambda gold, predicted: score(file(gold, "gold"), file(predicted, "predicted"))


@pytest.fixture
def counts(monkeypatch):
    """The counts of the last metric that was computed."""
    found = {}
    compute = CorefMetric.compute

    def spy(self):
        found.update(summed(self.items().totals()))
        return compute(self)

    monkeypatch.setattr(CorefMetric, "compute", spy)
    return found


@pytest.mark.parametrize("case", PRINTED, ids=[case for case, *_ in PRINTED])
def test_the_counts_are_those_of_the_reference_scorer(case, scored, counts):
    _, gold, predicted, *printed = case
    expected = [[float(Fraction(number)) for number in cell.split()] for cell in printed]
    scores = scored(document(gold), document(predicted))
    for name, numbers in zip(("muc", "b3", "ceafe"), expected, strict=True):
        assert counts[name] == pytest.approx(numbers), name
        recall = 100 * numbers[0] / numbers[1] if numbers[1] else 0
        precision = 100 * numbers[2] / numbers[3] if numbers[3] else 0
        f1 = 2 * recall * precision / (recall + precision) if recall + precision else 0
        ours = [scores[f"{name}_{kind}"] for kind in ("recall", "precision", "f1")]
        assert ours == pytest.approx([recall, precision, f1])
    for kind in ("f1", "precision", "recall"):
        mean = sum(scores[f"{name}_{kind}"] for name in ("muc", "b3", "ceafe")) / 3
        assert scores[f"conll_{kind}"] == pytest.approx(mean)
    assert len(scores) == 12


def clustering(rng: random.Random, mentions: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    found: list[list[tuple[int, int]]] = [[] for _ in range(rng.randint(1, len(mentions) + 1))]
    for mention in mentions:
        rng.choice(found).append(mention)
    return [cluster for cluster in found if cluster]


def test_equals_another_implementation_on_random_clusterings():
    rng = random.Random(1)
    interesting = 0
    for _ in range(300):
        spans = [(s, s + k) for s in range(rng.randint(1, 12)) for k in range(2)]
        sides = [clustering(rng, rng.sample(spans, rng.randint(1, len(spans)))) for _ in range(2)]
        one = CorefMetric()
        one.add(sides[0], sides[1])
        key, response = [[set(chain) for chain in side] for side in sides]
        counts = summed(one.items().totals())
        for name, other in (("muc", scorch.muc), ("b3", scorch.b_cubed), ("ceafe", scorch.ceaf_e)):
            if counts[name].recalled and counts[name].precise:  # it has its own rules for 0
                expected = other(key, response)
                assert counts[name].ratios() == pytest.approx(expected, abs=1e-9), name
                interesting += 0 < expected[2] < 1
    assert interesting > 400


def test_counts_are_summed_over_documents_before_ratios_are_taken():
    one = CorefMetric()
    rows = [{"clusters": [[[0, 0], [1, 1]]]}, {"clusters": [[[0, 0], [2, 2], [4, 5], [7, 9]]]}]
    one.update([{"clusters": [[[0, 0], [1, 1]]]}, {"clusters": []}], rows)
    scores = one.compute()
    assert scores["muc_recall"] == pytest.approx(25.0)
    assert scores["muc_precision"] == 100.0
    assert scores["b3_recall"] == pytest.approx(100 / 3)
    assert scores["ceafe_recall"] == 50.0


def test_documents_are_matched_by_name(scored, counts, capsys):
    gold = document("(0) (0)", "(a); part 000") + document("(0) (0)", "(a); part 001")
    predicted = document("(0) (0)", "(z); part 000") + document("(3) (3)", "(a); part 001 ")
    scored(gold, predicted)
    assert counts["muc"] == (1, 2, 1, 1)  # what only the gold has counts, what only the predictions have does not
    told = capsys.readouterr().err
    assert re.search(r"predicted: not in .* not scored: \(z\); part 000\n", told)
    assert re.search(r"gold: not in .* without predictions: \(a\); part 000\n", told)


def test_other_words_are_scored_as_the_scorer_does_and_told(scored, capsys):
    text = "#begin document (a); part 000\n{}\n#end document\n"
    gold, other = (
        "\n".join(f"a 0 {i} {word} - - - - - - - (0)" for i, word in enumerate(words.split()))
        for words in ("Ida sang", "Ida slept")
    )
    assert scored(text.format(gold), text.format(other))["muc_f1"] == 100
    assert re.search(r"predicted:3: 'slept', where .*gold:3 has 'sang'\n$", capsys.readouterr().err)


@pytest.mark.parametrize("before", ["", "w\t", "a/b 0 3 (w) - * ", "1\t2\t\t"])
def test_any_number_of_columns_may_stand_before_the_mentions(before, file, counts):
    texts = [document(column, before=before) for column in ("(0) (0|(1 1) - 0) (1)", "(7) (7|(8 8) - 7) (8)")]
    files = file(texts[0], "gold"), file(texts[1].replace("(8)", "(8)\t"), "predicted")
    assert score(*files)["conll_f1"] == pytest.approx(100)
    assert counts["b3"] == (4, 4, 4, 4)


def test_mentions_may_cross_the_end_of_a_sentence_and_need_no_pipe_between_them(scored):
    gold = "#begin document x\nw (1(0\n\nw 0)\nw 1)(0)\nw (1)\nw (0)\n#end document\n"
    predicted = "#begin document x\nw (0|(1\n\n\nw 0)\nw (0)|1)\nw (1)\nw (0)\n#end document\n"
    assert scored(gold, predicted)["conll_f1"] == pytest.approx(100)


GOOD = document("(0) (1 1) (0) (1)")


@cases(r"""
    text               | line | message
    COLUMN (0 - - - -  | 2    | cluster 0 is never closed
    COLUMN - 0) - - -  | 3    | closes a mention of cluster 0 that is not open
    COLUMN (0) 12 - - - | 3   | '12' is not a cluster cell
    COLUMN (0) (1 1) (0) | 1  | has 4 words where .*gold:1 has 5
    "#begin document (other); part 000\nw\t-\n\n#end document\n" | null | has no document of
    GOODGOOD           | 9    | again; the first begins at line 1
    "w -\nGOOD"        | 1    | outside any document
    ""                 | null | contains no document
""")
def test_a_broken_file_is_refused_with_its_line(text, line, message, file):
    text = document(text[7:]) if text.startswith("COLUMN ") else text.replace("GOOD", GOOD)
    path = file(text, "predicted")
    with refuses(message, at(path, line)):
        score(file(GOOD, "gold"), path)


@cases("""
    gold                  | line
    (0)|(0) (0) -         | 2
    - (0|(0 0)|0) (0)     | 3
    (1) (0 (0) 0) (1)|(1) | 6
""")
def test_gold_with_a_mention_twice_in_a_chain_is_refused(scored, gold, line):
    """The reference scorer takes it, and prints 120 % for the CEAF of the first case."""
    with refuses(rf"gold:{line}: cluster \d has .* as a mention twice"):
        scored(document(gold), document("(0) (0) -" if line == 2 else gold))


def test_no_gold_that_is_accepted_gives_more_than_all(file):
    rng = random.Random(1)
    cells, scored = ["-", "(0)", "(1)", "(0)|(1)", "(1)|(1)", "(0|(1 0)|1)", "(0 0)", "(0 (0) 0)"], 0
    for _ in range(150):
        columns = [" ".join(rng.choice(cells) for _ in range(5)) for _ in range(2)]
        columns = [" ".join((column.split() + ["-"] * 15)[:15]) for column in columns]
        try:
            found = score(*(file(document(column), name) for column, name in zip(columns, "gp", strict=True)))
        except UserError:
            continue
        scored += 1
        assert all(0 <= value <= 100 + 1e-9 for value in found.values())
    assert scored > 10


def test_many_repeated_mentions_are_refused_as_the_reference_scorer_does(scored):
    gold, eleven = document(" ".join(["(0)"] * 12)), document(" ".join(["(0)|(1)"] * 11 + ["(0)"]))
    with refuses("11 mentions of the key"):
        scored(gold, eleven)
    ten = document(" ".join(["(0)|(1)"] * 10 + ["(0)"] * 2))
    assert scored(gold, ten)["conll_f1"] == pytest.approx(100)
