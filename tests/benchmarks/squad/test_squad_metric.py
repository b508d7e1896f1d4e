"""Exact match and F1 of SQuAD v1.1, against a slow reading of the definition and against figures worked out by hand."""

import json
import random

import pytest

from tasks.squad.metric import exact, normalized, overlap, score
from tasks.squad.paragraphs import read
from tests.fakes import cases, refuses

PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def plain(text: str) -> list[str]:
    """The words that count, character by character: small letters, no ASCII punctuation, no articles."""
    kept = "".join(c for c in text.lower() if c not in PUNCTUATION)
    words: list[str] = []
    current = ""
    for c in kept + " ":
        if c.isalnum() or c == "_":
            current += c
            continue
        if current:  # an article is one between two characters that are no letters, digits or underscores
            words.append(" " if current in ("a", "an", "the") else current)
        current = ""
        words.append(c)
    return "".join(words).split()


def plain_f1(prediction: str, gold: str) -> float:
    predicted, expected = plain(prediction), plain(gold)
    left, common = list(expected), 0
    for word in predicted:
        if word in left:
            left.remove(word)
            common += 1
    if common == 0:
        return 0.0
    precision, recall = common / len(predicted), common / len(expected)
    return 2 * precision * recall / (precision + recall)


def files(folder, golds: dict[str, list[str]], predictions: object, version: str = "1.1"):
    """A data set's file with nothing but what the official script reads, and one of predictions."""
    qas = [{"id": id, "answers": [{"text": text} for text in texts]} for id, texts in golds.items()]
    gold, found = folder / "gold.json", folder / "predictions.json"
    gold.write_text(json.dumps({"version": version, "data": [{"paragraphs": [{"qas": qas}]}]}))
    found.write_text(json.dumps(predictions))
    return gold, found


# Of the empty ones, the texts are the same, and have no word in common.
@cases(r"""
    prediction       | gold                | em | f1 | why
    The Eiffel Tower | eiffel tower        | 1 | 1 |
    "an  apple,\ta pear" | apple pear     | 1 | 1 |
    theatre          | atre                | 0 | 0 | an article is a word
    U.S.             | US                  | 1 | 1 |
    twenty-one       | twentyone           | 1 | 1 |
    a-team           | team                | 0 | 0 | punctuation goes first: ateam
    "Zo\u00eb\u2019s" | "Zo\u00ebs"       | 0 | 0 | only ASCII punctuation goes
    ÉCOLE            | école               | 1 | 1 |
    the              | a                   | 1 | 0 | both are empty
    ""               | !?                  | 1 | 0 |
    ""               | one                 | 0 | 0 |
    one two two      | two two three three | 0 | 0.5714285714285714 |
    in 1 900         | "1900"              | 0 | 0 |
    "\u00a0the\u3000end" | end            | 1 | 1 | any white space
    "the\u0301 end"  | end                 | 0 | 0.6666666666666666 | a combining accent stays, the article goes
""")
def test_by_hand(prediction, gold, em, f1, why):
    assert exact(prediction, gold) == em
    assert overlap(prediction, gold) == pytest.approx(f1)
    assert overlap(gold, prediction) == pytest.approx(f1)
    assert normalized(prediction).split() == plain(prediction)


def test_thousands_of_random_predictions(tmp_path):
    draw = random.Random(3)
    pieces = (
        "a an the The A thea an. (the) x X y zz É é ß 1,000 1000 - -- 's _ a_b … “the” 東京 İ ǅ \u2019 \u0301 \u017f"
    ).split(" ")
    pieces += ["\u00a0", "\u2003"]
    joins = [" ", " ", "  ", "", "\n", "\t", "-", "\u00a0"]

    def text() -> str:
        return "".join(draw.choice(pieces) + draw.choice(joins) for _ in range(draw.randrange(6)))

    golds = {f"q{i}": [text() for _ in range(draw.randint(1, 4))] for i in range(4000)}
    for texts in golds.values():
        if draw.random() < 0.2:
            texts[0] = ""
    found = {id: draw.choice(golds[id]) if draw.random() < 0.3 else text() for id in golds if draw.random() < 0.95}
    em = sum(max(plain(found[id]) == plain(gold) for gold in golds[id]) for id in found)
    f1 = sum(max(plain_f1(found[id], gold) for gold in golds[id]) for id in found)
    scores = score(*files(tmp_path, golds, found))
    assert scores["exact_match"] == pytest.approx(100 * em / 4000, abs=1e-9)
    assert scores["f1"] == pytest.approx(100 * f1 / 4000, abs=1e-9)
    assert 10 < min(scores.values()) < max(scores.values()) < 90


def test_the_best_of_several_golds_counts_for_each_measure_by_itself(tmp_path):
    golds = {"a": ["north pole", "the big north pole of all"], "b": ["1", "2"], "c": ["3"]}
    found = {"a": "big north pole", "b": "2", "unknown": "x"}
    scores = score(*files(tmp_path, golds, found))
    assert scores["exact_match"] == pytest.approx(100 / 3)
    assert scores["f1"] == pytest.approx(100 * (0.8 + 1 + 0) / 3)  # 3 of 3 words, 3 of 5: 0.75; 2 of 3, 2 of 2: 0.8


def test_missing_ids_are_wrong_and_told(tmp_path, capsys):
    scores = score(*files(tmp_path, {"a": ["x"], "b": ["y"]}, {"a": "x"}, version="1.0"))
    assert scores == {"exact_match": 50.0, "f1": 50.0}
    told = capsys.readouterr().err
    assert "Unanswered question b will receive score 0." in told
    assert "expects v-1.1" in told
    assert score(*files(tmp_path, {"a": ["the"]}, {})) == {"exact_match": 0.0, "f1": 0.0}  # not as an empty answer


TWICE = '{"data": [{"paragraphs": [{"qas": [QA, QA]}]}]}'.replace("QA", '{"id": "q7", "answers": [{"text": "x"}]}')


@cases(r"""
    gold                                 | found | words
    "{\"version\": \"1.1\", \"data\": [" | {}  | gold\.json:1: not JSON
    "{\"version\": \"1.1\"}"             | {}  | gold\.json: not the layout
    "{\"version\": \"1.1\", \"data\": []}" | {} | gold\.json: contains no question
    twice                                | {}  | gold\.json: question q7: the id occurs twice
    {"a": []}                            | {"a": "x"} | gold\.json: question a: no answer
    {"a": ["x"]}                         | ["x"] | predictions\.json: not a JSON object
    {"a": ["x"]} | {"version": "1.1", "data": []} | predictions\.json: has no id of a question of .*gold\.json
    {"a": ["x"]}                         | {"a": 3} | predictions\.json: question a: the prediction is no text
""")
def test_bad_files_are_named(tmp_path, gold, found, words):
    paths = files(tmp_path, gold if isinstance(gold, dict) else {}, found)
    if isinstance(gold, str):
        paths[0].write_text(gold.replace("twice", TWICE))
    with refuses(words):
        score(*paths)


@pytest.mark.slow
def test_real_answers_score_full_marks(data_root, tmp_path, file):
    """Of the official development set: the first gold answers against all."""
    path = data_root / "squad" / "dev-v1.1.json.xz"
    found = {question.id: question.answers[0].text for part in read(path) for question in part.questions}
    file(json.dumps(found), "all.json")
    assert score(path, tmp_path / "all.json") == {"exact_match": 100.0, "f1": 100.0}
