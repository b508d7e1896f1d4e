"""What a text has in common with dev and test sentences."""

import numpy as np
import pytest

from elmo_bench.analysis import overlap
from elmo_bench.records.studies import LONG, SHARED, StudyCell, StudyRecord
from elmo_bench.reporting import study_tables
from tests.fakes import refuses


def common(known: list[str], request: list[str], n: int) -> list[dict[str, int]]:
    """The counts for each of the asked sentences alone."""
    asked = [overlap.normalized(line.split()) for line in request]
    there = overlap.common(map(str.split, known), asked, n)
    return [overlap.counts([one], there, n) for one in asked]


def test_sentences_and_running_words_are_found_as_by_brute_force():
    random = np.random.default_rng(1)
    known, request = (
        [" ".join(random.choice(list("abc"), size=random.integers(1, 9))) for _ in range(40)] for _ in range(2)
    )
    grams = {tuple(words[i : i + 4]) for words in map(str.split, known) for i in range(len(words) - 3)}
    for line, counts in zip(request, common(known, request, 4), strict=True):
        words = line.split()
        shared = any(tuple(words[i : i + 4]) in grams for i in range(len(words) - 3))
        assert counts == {"sentences": 1, "whole in the text": line in known, LONG: len(words) >= 4, SHARED: shared}


def test_capitals_and_marks_do_not_count_and_running_words_end_with_the_sentence():
    known = ["`` The cat sat on the mat . ''", "It rained", "All day"]
    request = ["the CAT sat -- on the mat", "it rained all day", '" "']
    counts = common(known, request, 4)
    assert [each["whole in the text"] for each in counts] == [1, 0, 0]
    assert [each[SHARED] for each in counts] == [1, 0, 0]
    assert counts[2]["sentences"] == 0


@pytest.mark.slow
def test_a_text_and_a_task_give_a_record(bench):
    text = bench.folder / "text.txt"
    longest = max((bench.data / "toy" / "test.txt").read_text().splitlines(), key=len)
    text.write_text(" ".join(pair.split("/")[0] for pair in longest.split()) + "\n")
    given = [*bench.overrides()[1:], "task=toy", "words=2"]
    study, _ = overlap.write([*given, f"text={text}"])
    assert study.place(bench.results).parent == bench.results / "analysis" / "open" / "overlap"
    (whole,) = [cell.value for cell in study.cells if (cell.split, cell.quantity) == ("test", "whole in the text")]
    assert whole == 1
    with refuses("no such text"):
        overlap.write([*given, f"text={bench.folder}/none-*.txt"])


def test_dev_that_was_read_is_said_beside_its_scores():
    counts = {("squad", "dev"): (100, 40), ("squad", "test"): (900, 2)}
    counts |= {("ner", split): (900, 2) for split in ("dev", "test")}
    cells = [
        StudyCell(task, quantity, count, split=split)
        for (task, split), both in counts.items()
        for quantity, count in zip((LONG, SHARED), both, strict=True)
    ]
    ((where, (line,)),) = study_tables.overlaps_of([StudyRecord("open", "overlap", "", "", cells)]).items()
    assert where == ("open", "squad")
    assert "40 of the 100 longer sentences of dev" in line
