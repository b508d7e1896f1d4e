"""The SQuAD model: attention, GRU and span search against brute force, padding, ELMo at both places, learning."""

import math

import pytest
import torch
from torch import Tensor, nn

from elmo_bench.nn.attention import BiAttention, SelfAttention
from elmo_bench.nn.encoders import BiGRU
from elmo_bench.task import Batch, Embedded
from tasks.squad.head import SquadHead, SquadScores, best_spans, log_probabilities
from tasks.squad.reader import SquadReader
from tests.fakes import embedded, for_each, masks


def similarity(layer, x: Tensor, y: Tensor) -> float:
    """One tri-linear score."""
    return float((layer.u @ x + layer.v @ y + (layer.w * x * y).sum() + layer.b).detach())


def soft(scores: list[float], others: float = 0.0) -> list[float]:
    total = sum(map(math.exp, scores)) + others
    return [math.exp(score) / total for score in scores]


def test_attention_both_ways_against_brute_force():
    torch.manual_seed(0)
    layer = BiAttention(3)
    layer.similarity.b = nn.Parameter(torch.tensor(0.3))
    x, y, x_lengths, y_lengths = torch.randn(2, 5, 3), torch.randn(2, 4, 3), (5, 3), (2, 4)
    output = layer(x, y, masks(*x_lengths), masks(*y_lengths)).detach()
    assert output.shape == (2, 5, layer.output_size)
    for b in range(2):
        n, m = x_lengths[b], y_lengths[b]
        scores = [[similarity(layer.similarity, x[b, i], y[b, j]) for j in range(m)] for i in range(n)]
        whole = sum(w * x[b, i] for i, w in enumerate(soft([max(row) for row in scores])))
        for i in range(n):
            seen = sum(w * y[b, j] for j, w in enumerate(soft(scores[i])))
            expected = torch.cat([x[b, i], seen, x[b, i] * seen, x[b, i] * whole])  # type: ignore[operator]
            torch.testing.assert_close(output[b, i], expected, rtol=1e-5, atol=1e-5)


def test_words_attend_to_words_like_themselves_before_anything_is_learned():
    torch.manual_seed(0)
    x = torch.randn(1, 4, 50)
    head = SquadHead(50, 0, {}, hidden=25, products=1.0)
    nn.init.zeros_(head.attention.similarity.u)
    scores = head.attention.similarity(x, x)[0]
    assert scores.argmax(1).tolist() == [0, 1, 2, 3]
    drawn = SquadHead(50, 0, {}, hidden=25).attention.similarity.w.detach()
    assert float(drawn.min()) < 0 < float(drawn.max())


def test_self_attention_against_brute_force():
    torch.manual_seed(1)
    layer = SelfAttention(3)
    nn.init.constant_(layer.nothing, 0.4)
    x, lengths = torch.randn(3, 5, 3), (5, 2, 1)
    output = layer(x, masks(*lengths)).detach()
    for b, n in enumerate(lengths):
        for i in range(n):
            others = [j for j in range(n) if j != i]
            weights = soft([similarity(layer.similarity, x[b, i], x[b, j]) for j in others], math.exp(0.4))
            assert sum(weights) < 1
            seen = sum((w * x[b, j] for j, w in zip(others, weights, strict=True)), torch.zeros(3))
            expected = torch.cat([x[b, i], seen, x[b, i] * seen])
            torch.testing.assert_close(output[b, i], expected, rtol=1e-5, atol=1e-5)


def test_self_attention_stays_finite_with_huge_scores():
    layer = SelfAttention(2)
    x = torch.full((1, 3, 2), 200.0, requires_grad=True)
    layer(x, masks(3)).sum().backward()
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in (x, *layer.parameters()))


def test_the_gru_starts_near_zero():
    torch.manual_seed(0)
    weights = [p for p in BiGRU(300, 90, 0.05).parameters() if p.dim() == 2]
    assert all(float(w.detach().abs().max()) <= 0.1 for w in weights)
    assert all(float(w.detach().std()) == pytest.approx(0.044, abs=0.002) for w in weights)  # 0.05, cut at two of it


@for_each("longest", "1 2 4 17")
def test_the_best_span_against_looking_at_all(longest):
    torch.manual_seed(longest)
    mask = masks(*range(1, 31))
    start, end = (log_probabilities(torch.randn(30, 30, 1) * 3, mask) for _ in range(2))
    first, last, best = best_spans(start, end, longest)
    for b in range(30):
        n = b + 1
        every = {(i, j): float(start[b, i] + end[b, j]) for i in range(n) for j in range(i, min(i + longest, n))}
        assert (int(first[b]), int(last[b])) == max(every, key=lambda span: every[span])
        assert float(best[b]) == pytest.approx(max(every.values()))


def test_of_equal_spans_the_first_and_shortest():
    start = torch.tensor([[0.0, 1.0, 1.0, 0.0]])
    end = torch.tensor([[9.0, 0.0, 2.0, 2.0]])
    assert [int(part) for part in best_spans(start, end, 3)[:2]] == [0, 0]
    end[0, 0] = 0
    assert [int(part) for part in best_spans(start, end, 3)[:2]] == [1, 2]


def rows(*lengths: int) -> list[dict]:
    """Contexts of words of one letter, in sentences of at most two."""
    made = []
    for n in lengths:
        words = list("abcdefghij"[:n])
        made.append({"context": [words[i : i + 2] for i in range(0, n, 2)], "starts": list(range(0, 2 * n, 2)),
                     "text": " ".join(words)})  # fmt: skip
    return made


def run(head: SquadHead, context: Embedded, question: Embedded, gold: Tensor | None = None):
    batch = Batch(rows(*context.mask.sum(1).tolist()), {}, {} if gold is None else {"span": gold})
    scores = head({"context": context, "question": question}, batch)
    return scores, head.decode(scores, batch)


@for_each("elmo", "0 5")
def test_the_loss_is_of_the_first_and_of_the_last_word(elmo):
    torch.manual_seed(0)
    head = SquadHead(6, elmo, {}, hidden=4)
    assert head.merge.in_features == 4 * (8 + elmo)
    assert head.encoder.forward_gru.input_size == 6
    gold = torch.tensor([[2, 8], [0, 0]])
    scores, answers = run(head, embedded(9, 4, elmo=elmo), embedded(3, 5, elmo=elmo), gold)
    assert scores.start.shape == scores.end.shape == (2, 9)
    torch.testing.assert_close(scores.start.exp().sum(1), torch.ones(2))
    assert (scores.end[1, 4:] == -math.inf).all()
    expected = -(scores.start[0, 2] + scores.end[0, 8] + scores.start[1, 0] + scores.end[1, 0]) / 2
    torch.testing.assert_close(scores.loss, expected)
    assert len(answers) == 2


def test_answers_are_cut_from_the_text_as_written():
    text = "The \u201cBlue  cart\u201d,\nsold."
    reader = SquadReader({})
    row = reader.from_text(context=text, question="What ?", id="q")
    number = len(row["starts"])
    start, end = (torch.full((1, number), 0.1).log() for _ in range(2))
    start[0, 2], end[0, 3] = 0.0, -0.5
    head = SquadHead(6, 0, {}, hidden=4)
    (answer,) = head.decode(SquadScores(None, start, end), Batch([row], {}, {}))
    assert answer == {"id": "q", "answer": "Blue  cart", "start": 5, "end": 15, "score": round(math.exp(-0.5), 4)}
    assert text[answer["start"] : answer["end"]] == answer["answer"]
    (answer,) = head.decode(SquadScores(None, start, end), Batch([{**row, "id": ""}], {}, {}))
    assert "id" not in answer
