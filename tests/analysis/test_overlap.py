"""What a text has in common with dev and test sentences."""

from __future__ import annotations

import json

import numpy as np
import pytest

from elmo_bench.analysis import overlap
from elmo_bench.analysis.overlap import Hashed, of_sentences
from elmo_bench.reporting.tables import remarks
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.integrity import sealed


def common(known: list[str], asked: list[str], n: int) -> list[dict[str, int]]:
    """The counts for each of the asked sentences alone."""
    text, found = of_sentences(line.split() for line in known), []
    for line in asked:
        one = of_sentences([line.split()])
        found.append(overlap._counts(one, text.whole(), text.runs(n)[0], n))
    return found


def test_sentences_and_running_words_are_found_as_by_brute_force():
    random = np.random.default_rng(1)
    known, asked = (
        [" ".join(random.choice(list("abc"), size=random.integers(1, 9))) for _ in range(40)] for _ in range(2)
    )
    grams = {tuple(words[i : i + 4]) for words in map(str.split, known) for i in range(len(words) - 3)}
    for line, counts in zip(asked, common(known, asked, 4), strict=True):
        words = line.split()
        shared = any(tuple(words[i : i + 4]) in grams for i in range(len(words) - 3))
        assert counts == {"sentences": 1, "whole": line in known, "long": len(words) >= 4, "shared": shared}


def test_capitals_and_marks_do_not_count_and_running_words_end_with_the_sentence():
    known = ["`` The cat sat on the mat . ''", "It rained", "All day"]
    asked = ["the CAT sat -- on the mat", "it rained all day", '" "']
    counts = common(known, asked, 4)
    assert [each["whole"] for each in counts] == [1, 0, 0]
    assert [each["shared"] for each in counts] == [1, 0, 0]
    assert counts[2]["sentences"] == 0


def test_a_sentence_counts_once_and_short_texts_have_no_running_words():
    assert len(of_sentences([["a"], ["a"], ["b"]]).ends) == 2
    hashes, numbers = of_sentences([["a", "b"]]).runs(13)
    assert (len(hashes), len(numbers)) == (0, 0)
    assert len(Hashed.of([], np.array([], dtype=int), np.array([], dtype=int)).whole()) == 0


@pytest.mark.slow
def test_a_text_and_a_task_give_a_record(bench):
    text = bench.folder / "text.txt"
    longest = max((bench.data / "toy" / "test.txt").read_text().splitlines(), key=len)
    text.write_text(" ".join(pair.split("/")[0] for pair in longest.split()) + "\n")
    given = [*bench.overrides()[1:], "task=toy", "words=2"]
    asked = overlap.Asked.of([*given, f"text={text}"])
    path = overlap.write(overlap.measure(asked), asked)
    assert path.parent == bench.results / "analysis" / "open" / "overlap"
    assert json.loads(path.read_text())["measured"]["toy"]["test"]["whole"] == 1
    with pytest.raises(UserError, match="no such text"):
        overlap.Asked.of([*given, f"text={bench.folder}/none-*.txt"])


def test_dev_that_was_read_is_said_beside_its_scores(tmp_path):
    numbers = {"dev": {"long": 100, "shared": 40}, "test": {"long": 900, "shared": 2}}
    path = tmp_path / "analysis" / "open" / "overlap" / "a.json"
    path.parent.mkdir(parents=True)
    page = {"measured": {"squad": numbers, "ner": numbers | {"dev": numbers["test"]}}}
    path.write_text(sealed(json.dumps(page, indent=1) + "\n"))
    ((where, (line,)),) = remarks.read(tmp_path, ["open", "mini"]).items()
    assert where == ("open", "squad")
    assert "40 of the 100 longer sentences of dev" in line
