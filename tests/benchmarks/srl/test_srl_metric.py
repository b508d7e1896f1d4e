"""SRL's metric by the rules of srl-eval.pl: numbers worked out by hand from the rules, two files, their faults."""

from pathlib import Path

import pytest

from elmo_bench.text.tags import Span
from tasks.srl.metric import SrlMetric, arguments, score
from tests.fakes import at, refuses

# (row, lemma, its column of six rows)
GOLD = [(1, "tell", "(A0*) (V*) (A1* *) (A2*) *"), (4, "go", "* * (A0* *) (V*) (AM-DIR*)")]


def write(path: Path, *sentences: list[tuple[int, str, str]], words: str = "a b c d e f", end: str = "") -> Path:
    """A file of sentences of six words, each a list of predicates."""
    lines = ["#begin document (nw/made_0001); part 000"]
    for predicates in sentences:
        lemmas = {row: lemma for row, lemma, _ in predicates}
        columns = [column.split() for _, _, column in predicates]
        for i, word in enumerate(words.split()):
            lemma = lemmas.get(i)
            row = ["nw/made_0001", "0", str(i), word, "XX", "*", lemma or "-", "01" if lemma else "-", "-", "-", "*"]
            lines.append("\t".join([*row, *(column[i] for column in columns), "-"]))
        lines.append("")
    path.write_text("\n".join([*lines, "#end document"]) + "\n" + end)
    return path


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """(tp, fp, fn) of two lists of predicates, through files."""

    def count(gold: list, predicted: list) -> tuple[float, float, float]:
        metrics = []
        monkeypatch.setattr("tasks.srl.metric.SrlMetric", lambda: metrics.append(SrlMetric()) or metrics[-1])
        score(write(tmp_path / "gold.conll", gold), write(tmp_path / "predicted.conll", predicted))
        totals = metrics[0].items().totals()
        return totals["tp"], totals["fp"], totals["fn"]

    return count


# Columns of six rows of each predicate, 1 tell and 4 go, in the gold data and in the predictions, and tp, fp and fn.
CASES = """
    What is the same counts, V does not: A0, A1, A2 of the first predicate, A0 and AM-DIR of the second.
    tell (A0*) (V*) (A1* *) (A2*) *; go * * (A0* *) (V*) (AM-DIR*) | the same | 5 0 0
    The second predicate is not predicted: its arguments are missed.
    tell (A0*) (V*) (A1* *) (A2*) *; go * * (A0* *) (V*) (AM-DIR*) | tell (A0*) (V*) (A1* *) (A2*) * | 3 0 2
    A predicate that gold does not have is skipped, its arguments are no excess.
    tell (A0*) (V*) (A1* *) (A2*) * | tell (A0*) (V*) (A1* *) (A2*) *; go * * (A0* *) (V*) (AM-DIR*) | 3 0 0
    Another lemma: the gold arguments are missed, the predicted ones not counted.
    go * * (A0* *) (V*) (AM-DIR*)          | run * * (A0* *) (V*) (AM-DIR*)      | 0 0 2
    The predicate stands on another word: one predicate missing, one too many.
    go * * (A0* *) (V*) (AM-DIR*)          | went * * (A0* *) (V*) (AM-DIR*)     | 0 0 2
    No predicates at all, no arguments, or none predicted.
                                           |                                     | 0 0 0
    tell * (V*) * * * *                    | the same                            | 0 0 0
    tell (A0*) (V*) * * * *                | tell * (V*) * * * *                 | 0 0 1
    V is left out, right or wrong; so is its continuation. R-V is a role of its own.
    tell (A0*) (V*) * * * *                | tell (A0*) * (V* *) * *             | 1 0 0
    tell (A0*) (V*) * (C-V*) * *           | tell (A0*) (V*) * * * *             | 1 0 0
    tell * (V*) (R-V*) * * *               | tell * (V*) * * * *                 | 0 0 1
    The label, then the extent, is wrong: one excess and one missed each.
    tell (A0*) (V*) (A1* *) * *            | tell (A0*) (V*) (A2* *) * *         | 1 1 1
    tell (A0*) (V*) (A1* *) * *            | tell (A0*) (V*) (A1*) * * *         | 1 1 1
    A1 ... C-A1 is one argument of two pieces: right only as a whole.
    tell (A1*) (V*) (C-A1* *) * *          | the same                            | 1 0 0
    tell (A1*) (V*) (C-A1* *) * *          | tell (A1*) (V*) * * * *             | 0 1 1
    tell (A1*) (V*) * (C-A1*) * *          | tell (A1* *) (V*) (C-A1*) * *       | 0 1 1
    tell (A1*) * (V*) (C-A1*) * *          | tell (A1* * * *) * *                | 0 1 1
    tell (A1*) (V*) (C-A1*) * (C-A1*) *    | the same                            | 1 0 0
    tell (A1*) (V*) (C-A1*) * (C-A1*) *    | tell (A1*) (V*) * * (C-A1*) *       | 0 1 1
    A continuation of nothing is an argument: C-A1 equals A1, and a later C-A1 continues it.
    tell * (V*) (A1*) * * *                | tell * (V*) (C-A1*) * * *           | 1 0 0
    tell * (V*) (A1*) * (C-A1*) *          | tell * (V*) (C-A1*) * (C-A1*) *     | 1 0 0
    It continues the A0 that began last: gold has A0(0), A0(2..4); the prediction A0(0..4), A0(2).
    tell (A0*) (V*) (A0*) * (C-A0*) *      | tell (A0*) (V*) (A0*) * * *         | 1 1 1
    Two arguments of one role are two.
    tell (A0*) (V*) (A0*) * * *            | tell (A0*) (V*) * * * *             | 1 0 1
    R-A1 is a role of its own and does not join A1; C-R-A1 continues R-A1.
    tell (A1*) (R-A1*) (V*) * * *          | tell (A1*) (A1*) (V*) * * *         | 1 1 1
    tell (R-A1*) (V*) (C-R-A1*) * * *      | tell (R-A1*) (V*) * * * *           | 0 1 1
"""
ROWS = {"tell": 1, "went": 3, "go": 4, "run": 4}  # of each predicate


def predicates(cell: str) -> list[tuple[int, str, str]]:
    pairs = [each.split(maxsplit=1) for each in cell.split(";") if each.strip()]
    return [(ROWS[lemma], lemma, column) for lemma, column in pairs]


@pytest.mark.parametrize("case", [line for line in CASES.splitlines() if "|" in line])
def test_counts_by_the_rules(counts, case):
    gold, predicted, expected = case.replace("the same", case.partition("|")[0]).split("|")
    assert counts(predicates(gold), predicates(predicted)) == tuple(map(int, expected.split()))


def test_figures_of_two_files(tmp_path):
    """Right 3; excess A2 for A1 and AM-TMP; missed A1, and A0 and AM-DIR of the second predicate."""
    gold = write(tmp_path / "gold.conll", GOLD, [])
    predicted = [(1, "tell", "(A0*) (V*) (A2* *) (A2*) (AM-TMP*)"), (3, "d", "* * * (V*) * *")]
    found = score(gold, write(tmp_path / "predicted.conll", predicted, []))
    assert found == pytest.approx({"f1": 100 * 4 / 9, "precision": 50.0, "recall": 40.0})
    assert score(gold, gold) == {"f1": 100.0, "precision": 100.0, "recall": 100.0}
    assert score(write(tmp_path / "none.conll", []), gold.parent / "none.conll") == dict.fromkeys(found, 0.0)


def test_predicates_with_other_lemmas_are_told(tmp_path, capsys):
    gold = write(tmp_path / "gold.conll", GOLD)
    score(gold, write(tmp_path / "predicted.conll", [GOLD[0], (4, "went", GOLD[1][2])]))
    told = capsys.readouterr().err
    assert "predicted.conll: 1 predicates have other lemmas than in " in told
    assert "(went for " in told


def test_brackets_inside_brackets_as_the_scorer_takes_them():
    """Of two phrases of one extent the inner counts; a phrase with another inside consists of what is inside."""
    (argument,) = arguments([Span("A0", 0, 3), Span("A1", 0, 3)])
    assert (argument.label, argument.place, argument.pieces) == ("A1", (0, 3), [])
    outer, inner = arguments([Span("A0", 0, 3), Span("A1", 1, 2)])
    assert [piece.place for piece in outer.pieces] == [(1, 2)]
    metric = SrlMetric()
    metric.add([Span("A0", 0, 3), Span("A1", 1, 2)], [Span("A0", 0, 3)])
    assert metric.items().totals() == {"tp": 0, "fp": 1, "fn": 2}
    assert inner.place == (1, 2)


@pytest.mark.parametrize(
    "change, line, message",
    [
        (lambda text: text.replace("\ta\t", "\tx\t"), 2, "'x' where"),
        (lambda text: text.replace("(A2*)", "(A2*"), 6, "never closed"),
    ],
)
def test_files_of_roles_that_do_not_fit_are_named_with_their_line(tmp_path, change, line, message, file):
    gold = write(tmp_path / "gold.conll", GOLD, [])
    predicted = file(change(gold.read_text()), "predicted.conll")
    with refuses(message, at(predicted, line)):
        score(gold, predicted)


def test_the_open_data_against_themselves(data_root):
    file = data_root / "srl_ewt" / "test.conll"
    assert score(file, file) == {"f1": 100.0, "precision": 100.0, "recall": 100.0}
