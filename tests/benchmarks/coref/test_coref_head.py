"""The coreference model as a whole: a plain forward pass, in blocks too; what it waits for; that it learns."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from elmo_bench.nn.spans import marginal_loss
from elmo_bench.task import Batch, Embedded
from elmo_bench.text.vocabulary import Vocabulary
from tasks.coref.head import CorefHead, bracketed
from tasks.coref.reader import CorefReader
from tests.fakes import cases
from tests.gpu import standin
from tests.nn.test_coref_spans import greedy, score_of

GENRES = {"genres": Vocabulary(["bc", "-"])}
SMALL: dict[str, Any] = {
    "hidden": 5, "max_span_width": 3, "feature_size": 2, "ffnn": 6, "lexical_dropout": 0.0, "dropout": 0.0,
}  # fmt: skip


def rows(lengths: list[list[int]], clusters: list | None = None) -> list[dict]:
    """Documents of invented words; every other sentence has another speaker."""
    return [
        {
            "genre": "bc" if i % 2 else "-",
            "sentences": [[f"w{k}" for k in range(length)] for length in sizes],
            "speakers": [f"s{number % 2}" for number, length in enumerate(sizes) for _ in range(length)],
            "clusters": None if clusters is None else clusters[i],
        }
        for i, sizes in enumerate(lengths)
    ]


def batch_of(rows: list[dict]) -> Batch:
    reader = CorefReader({})
    reader.vocabularies = {"words": Vocabulary([]), "chars": Vocabulary([]), **GENRES}
    return reader.collate(rows)


def embedded(batch: Batch) -> dict[str, Embedded]:
    """Random vectors, with something in the padding."""
    mask = batch.texts["sentences"].mask
    return {"sentences": Embedded(torch.randn(*mask.shape, 7), None, mask)}


def plain_scores(head: CorefHead, h: Tensor, own: Tensor, row: dict) -> tuple[list[tuple[int, int]], Tensor]:
    """One document by the definitions, a span and a pair at a time: kept spans, and their scores s(i, j) (S, S + 1)."""
    spans, antecedents = head.spans, head.antecedents
    widest = spans.max_span_width
    inside = np.zeros((len(h), widest), dtype=bool)
    table = np.full(inside.shape, -np.inf)
    vectors, mention, start = {}, {}, 0
    for sentence in row["sentences"]:
        for s in range(start, start + len(sentence)):
            for e in range(s, min(s + widest, start + len(sentence))):
                weights = spans.attention(h[s : e + 1]).softmax(0)
                vector = torch.cat([h[s], h[e], spans.width.weight[e - s], (weights * own[s : e + 1]).sum(0)])
                vectors[s, e], mention[s, e] = vector, score_of(spans.ffnn, vector)
                inside[s, e - s], table[s, e - s] = True, float(mention[s, e].detach())
        start += len(sentence)
    places = greedy(table, inside, max(int(head.top_span_ratio * len(h)), 1))
    kept = [(place // widest, place // widest + place % widest) for place in places]
    scores = torch.full((len(kept), 1 + len(kept)), -torch.inf)  # column 1 + j: antecedent j
    genre = GENRES["genres"][row["genre"]]
    for i, span in enumerate(kept):
        scores[i, 0] = 0
        for j in range(max(i - antecedents.max_antecedents, 0), i):
            other = kept[j]
            same = int(row["speakers"][span[0]] == row["speakers"][other[0]])
            distance = antecedents.distance.weight[min(i - j, 4) if i - j < 5 else 5 if i - j < 8 else 6]
            features = antecedents.speaker.weight[same], antecedents.genre.weight[genre], distance
            one, two = vectors[span], vectors[other]
            pair = score_of(antecedents.ffnn, torch.cat([one, two, one * two, *features]))
            scores[i, 1 + j] = mention[span] + mention[other] + pair
    return kept, scores


@cases("""
    own_size | blocks
    0        | {}
    4        | {"word_block": 2, "pair_block": 7}
""")
def test_documents_are_scored_as_the_definitions_say(own_size, blocks):
    torch.manual_seed(1)
    clusters = [[[[0, 0], [3, 4], [6, 6]], [[1, 2], [5, 5]]], [[[0, 1], [2, 2]]]]
    batch = batch_of(rows([[4, 1, 3], [2, 2]], clusters))
    head = CorefHead(7, 0, own_size, GENRES, top_span_ratio=0.9, max_antecedents=4, **SMALL, **blocks)
    texts = embedded(batch)
    scores = head(texts, batch)
    x = texts["sentences"].x[texts["sentences"].mask]
    h = head.encoder(x, [4, 1, 3, 2, 2])
    losses = []
    for i, (row, here) in enumerate(zip(batch.rows, (slice(0, 8), slice(8, 12)), strict=True)):
        kept, expected = plain_scores(head, h[here], x[here, : own_size or None], row)
        document = scores.documents[i]
        assert list(zip(document.first.tolist(), document.last.tolist(), strict=True)) == kept
        for s in range(len(kept)):
            for j in range(max(s - 4, 0), s):
                assert torch.allclose(document.scores[s, s - j], expected[s, 1 + j], atol=1e-5)
        cluster = {tuple(m): number for number, members in enumerate(row["clusters"]) for m in members}
        right = torch.zeros_like(expected, dtype=torch.bool)
        for s, span in enumerate(kept):
            for j in range(max(s - 4, 0), s):
                right[s, 1 + j] = span in cluster and cluster[span] == cluster.get(kept[j])
            right[s, 0] = not right[s].any()
        losses.append(marginal_loss(expected, right))
    assert scores.loss is not None
    both = scores.loss, torch.stack(losses).mean()
    torch.testing.assert_close(*both, atol=1e-4, rtol=1e-5)
    ours, wanted = (torch.autograd.grad(loss, list(head.parameters()), retain_graph=True) for loss in both)
    torch.testing.assert_close(ours, wanted, atol=1e-4, rtol=1e-4)


def test_a_step_waits_for_a_gpu_only_for_the_scores_that_prune():
    """No operation whose result has an unknown size; the scores are copied once a document."""
    batch = batch_of(rows([[6, 5, 4], [5, 6]], [[[[0, 0], [7, 7]], [[2, 3], [12, 12]]], [[[1, 1], [6, 6]]]]))
    head = CorefHead(7, 0, 4, GENRES, singletons=True, **dict(SMALL, dropout=0.2))
    texts = embedded(batch)
    standin.on_it(head)
    with standin.StandIn() as stand_in:

        def moved(part: Tensor) -> Tensor:
            return part.pin_memory().to(standin.DEVICE, non_blocking=True)

        parts = {name: [part if part is None else moved(part) for part in text] for name, text in texts.items()}
        there = {name: Embedded._make(each) for name, each in parts.items()}
        head(there, batch.each(moved)).loss.backward()  # type: ignore[union-attr]
    assert +stand_in.waits == {"cpu": 2}


def test_elmo_reaches_spans_through_the_encoder_and_not_through_heads():
    torch.manual_seed(4)
    batch = batch_of(rows([[3]]))
    assert CorefHead(7, 3, 4, GENRES, **SMALL).spans.ffnn.parts == [13, 13, 2, 4]
    head = CorefHead(7, 0, 4, GENRES, **SMALL)
    assert head.spans.ffnn.parts == [10, 10, 2, 4]
    assert head(embedded(batch), batch).loss is None


def test_a_document_of_one_word_is_trained_and_answered():
    batch = batch_of(rows([[1]], [[]]))
    head = CorefHead(7, 0, 0, GENRES, **SMALL)
    scores = head(embedded(batch), batch)
    assert scores.loss is not None
    scores.loss.backward()
    assert head.decode(scores, batch) == [{"clusters": [], "text": ["w0"]}]


def test_singletons_are_clusters_where_they_are_asked_for():
    torch.manual_seed(5)
    batch = batch_of(rows([[4]], [[[[0, 1]], [[3, 3]]]]))
    head, texts = CorefHead(7, 0, 0, GENRES, top_span_ratio=1.0, singletons=True, **SMALL), embedded(batch)
    optimizer = torch.optim.Adam(head.parameters(), 0.02)
    for _ in range(60):
        optimizer.zero_grad()
        loss = head(texts, batch).loss
        assert loss is not None
        loss.backward()
        optimizer.step()
    assert head.decode(head(texts, batch), batch)[0]["clusters"] == [[[0, 1]], [[3, 3]]]
    head.singletons = False
    assert head.decode(head(texts, batch), batch)[0]["clusters"] == []


def test_brackets_nest():
    sentences = ["the cat of Ida".split(), ["she", "purrs"]]
    clusters = [[[0, 3], [4, 4]], [[3, 3]], [[0, 1]]]
    assert bracketed(sentences, clusters) == ["[[the cat]_2 of [Ida]_1]_0", "[she]_0 purrs"]
