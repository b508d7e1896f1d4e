"""The SRL model: loss, constraints at test only, brute-force Viterbi, frames and brackets, both places of ELMo."""

from itertools import product

import pytest
import torch
from torch import Tensor

from elmo_bench.task import Batch, Embedded
from elmo_bench.text.tags import encode, follows, labels, spans
from elmo_bench.text.vocabulary import Vocabulary
from tasks.srl.head import SrlHead, SrlScores, brackets
from tests.fakes import embedded

ROLES = {"labels": Vocabulary(labels(["ARG0", "V"], "iob2"), special=False)}  # O B-ARG0 I-ARG0 B-V I-V
ROWS = [
    {"tokens": "Ida sang and left".split(), "predicates": [1, 3]},
    {"tokens": ["Rain"], "predicates": []},
    {"tokens": ["Bo", "sat"], "predicates": [1]},
]
LENGTHS = [4, 4, 1, 2]  # a line a predicate, one for none


def small(**sizes) -> SrlHead:
    return SrlHead(6, 0, ROLES, **({"flag": 3, "hidden": 5, "layers": 3, "dropout": 0.2} | sizes))


def batch(gold: Tensor | None = None) -> tuple[dict[str, Embedded], Batch]:
    flags = torch.tensor([[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0], [0, 1, 0, 0]])
    labels = {"predicates": flags} | ({} if gold is None else {"tags": gold})
    return {"tokens": embedded(*LENGTHS)}, Batch(ROWS, {}, labels)


def test_the_loss_is_that_of_the_words_of_a_sentence_averaged():
    torch.manual_seed(1)
    head, gold = small().eval(), torch.randint(0, 5, (4, 4))
    texts, rows = batch(gold=gold)
    scores = head(texts, rows)
    each = [
        -torch.stack([scores.emissions[b, t].log_softmax(0)[gold[b, t]] for t in range(n)]).mean()
        for b, n in enumerate(LENGTHS)
    ]
    torch.testing.assert_close(scores.loss, torch.stack(each).mean())
    assert head(texts, batch()[1]).loss is None


def test_only_the_flag_tells_predicates_apart():
    torch.manual_seed(2)
    head = small().eval()
    texts, rows = batch()
    same = texts["tokens"].x[0].expand(4, -1, -1)
    emissions = head({"tokens": texts["tokens"]._replace(x=same)}, rows).emissions
    assert not torch.allclose(emissions[0], emissions[1])
    flags = rows.labels["predicates"][:1].expand(4, -1)
    again = head({"tokens": texts["tokens"]._replace(x=same)}, rows._replace(labels={"predicates": flags})).emissions
    torch.testing.assert_close(again[0], again[1])


def test_the_best_valid_sequence_is_that_of_brute_force():
    torch.manual_seed(3)
    head, names = small(), ROLES["labels"].items
    _, rows = batch()
    for _ in range(20):
        emissions, mask = torch.randn(1, 4, 5), torch.ones(1, 4, dtype=torch.bool)
        row = rows._replace(rows=[{"tokens": list("abcd"), "predicates": [1]}])
        (answer,) = head.decode(SrlScores(None, emissions, mask), row)

        def total(path: tuple[int, ...], emissions: Tensor = emissions) -> float:
            steps = [names[i] for i in path]
            if not all(follows("iob2", a, b) for a, b in zip(["O", *steps], [*steps, "O"], strict=True)):
                return -torch.inf
            return float(sum(emissions[0, t, i] for t, i in enumerate(path)))

        best = [names[i] for i in max(product(range(5), repeat=4), key=total)]
        tags = ["O"] * 4
        for argument in answer["frames"][0]["arguments"]:
            label, start, end = argument["label"], argument["start"], argument["end"]
            tags[start:end] = [f"B-{label}", *[f"I-{label}"] * (end - start - 1)]
        assert tags == best
        assert encode(spans(tags), len(tags), "iob2") == tags


def test_an_answer_for_each_row_and_a_frame_for_each_predicate():
    head, (texts, rows) = small(), batch()
    scores = head(texts, rows)
    emissions = torch.zeros(4, 4, 5)
    emissions[0, [0, 1], [1, 3]] = 9  # Ida: B-ARG0, sang: B-V
    emissions[0, [2, 3], 0] = 9
    emissions[1, [0, 1, 2, 3], [1, 2, 2, 3]] = 9
    answers = head.decode(scores._replace(emissions=emissions), rows)
    assert [len(answer["frames"]) for answer in answers] == [2, 0, 1]
    first, second = answers[0]["frames"]
    assert first == {
        "predicate": 1,
        "word": "sang",
        "arguments": [
            {"label": "ARG0", "start": 0, "end": 1, "text": "Ida"},
            {"label": "V", "start": 1, "end": 2, "text": "sang"},
        ],
        "brackets": "[ARG0: Ida] [V: sang] and left",
    }
    assert second["brackets"] == "[ARG0: Ida sang and] [V: left]"
    assert answers[2]["frames"][0]["word"] == "sat"
    assert brackets(["a"], []) == "a"


def test_the_flag_begins_with_the_given_deviation():
    for deviation in (1.0, 0.01):
        torch.manual_seed(6)
        flag = small(flag=5000, flag_deviation=deviation).flag.weight.detach()
        assert float(flag.std()) == pytest.approx(deviation, rel=0.03)


def test_initial_output_layer():
    weight = SrlHead(6, 0, ROLES, flag=2, hidden=9, layers=1).project.weight.detach()
    torch.testing.assert_close(weight @ weight.t(), torch.eye(5), atol=1e-5, rtol=0)
