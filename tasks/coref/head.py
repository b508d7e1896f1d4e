"""End-to-end coreference over spans: the model of Lee et al. 2017 on top of the word representation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from elmo_bench.nn.encoders import CoupledBiLSTM
from elmo_bench.nn.packing import on_device
from elmo_bench.nn.spans import (
    Antecedents,
    Spans,
    best_without_crossing,
    candidates,
    link,
    marginal_loss,
    right_antecedents,
)
from elmo_bench.task import Batch, Embedded, Row
from elmo_bench.text.tokenizer import extent
from elmo_bench.text.vocabulary import Vocabulary


class DocumentScores(NamedTuple):
    """The spans kept in one document, with their scores."""

    first: Tensor  # (S,) first word of each kept span, counted over the document
    last: Tensor  # (S,) last word
    mention: Tensor  # (S,) mention scores
    scores: Tensor  # (S, 1 + R): no antecedent, then the antecedents, the nearest first


class CorefScores(NamedTuple):
    """The output of `CorefHead` for a batch."""

    loss: Tensor | None  # () nats, summed over the spans of a document, mean over documents
    documents: list[DocumentScores]


class CorefHead(nn.Module):
    """x -> dropout -> biLSTM of each sentence -> spans, scored and pruned -> antecedents.

    Args:
        input_size: D of `Embedded.x`.
        elmo_size: E of `Embedded.elmo`, or 0.
        own_size: width of x_k, the first part of x; attended heads use it, without ELMo (or all of x if it is 0).
        vocabularies: "genres".
        hidden: size of the biLSTM, per direction.
        max_span_width: maximum number of words in a span.
        top_span_ratio: number of spans kept per word of the document.
        max_antecedents: maximum number of antecedents that a span is paired with.
        feature_size: size of the features of width, speaker, genre and distance.
        ffnn: size of both layers of the scorers.
        lexical_dropout: on x.
        dropout: elsewhere.
        singletons: also train the mention scores (cross-entropy over all candidates), and make a kept span with a
            mention score above 0 and no antecedent a cluster by itself.
        word_block, pair_block: the numbers of words (with their spans) and of pairs that are scored at once. They limit
            the memory for long documents and change no result.
    """

    leaves_unused = True  # a document with one span does not use the pair scorer

    def __init__(
        self,
        input_size: int,
        elmo_size: int,
        own_size: int,
        vocabularies: Mapping[str, Vocabulary],
        hidden: int = 200,
        max_span_width: int = 10,
        top_span_ratio: float = 0.4,
        max_antecedents: int = 250,
        feature_size: int = 20,
        ffnn: int = 150,
        lexical_dropout: float = 0.5,
        dropout: float = 0.2,
        singletons: bool = False,
        word_block: int = 4096,
        pair_block: int = 131072,
    ):
        super().__init__()
        self.own_size, self.top_span_ratio, self.singletons = own_size or input_size, top_span_ratio, singletons
        self.lexical_dropout, self.dropout = nn.Dropout(lexical_dropout), nn.Dropout(dropout)
        self.encoder = CoupledBiLSTM(input_size, hidden, dropout)
        encoded = self.encoder.output_size + elmo_size
        self.spans = Spans(encoded, self.own_size, max_span_width, feature_size, ffnn, dropout, word_block)
        genres = len(vocabularies["genres"])
        sizes = self.spans.output_size, genres, feature_size, max_antecedents, ffnn
        self.antecedents = Antecedents(*sizes, dropout, pair_block)

    def forward(self, texts: Mapping[str, Embedded], batch: Batch) -> CorefScores:
        """Scores of each document, and the loss if the batch has labels."""
        text = texts["sentences"]
        with torch.autocast(text.x.device.type, enabled=False):  # the choice of spans depends on small differences
            lengths = [len(sentence) for row in batch.rows for sentence in row["sentences"]]
            inside = np.arange(text.mask.shape[1]) < np.array(lengths)[:, None]
            places = on_device(np.flatnonzero(inside), text.x.device)  # (N,) positions of the words in the padded batch
            x, elmo = (None if part is None else part.flatten(0, 1)[places].float() for part in (text.x, text.elmo))
            x = self.lexical_dropout(x)  # (N, D)
            flat = Embedded(x, elmo, text.mask)
            h = self.dropout(flat.after(self.encoder(x, lengths)))  # (N, E)
            documents, losses, sentence, word = [], [], 0, 0
            for number, row in enumerate(batch.rows):
                sizes = lengths[sentence : sentence + len(row["sentences"])]
                sentence, start, word = sentence + len(sizes), word, word + sum(sizes)
                here = slice(start, word)
                document, loss = self._document(h[here], x[here, : self.own_size], sizes, number, start, batch.labels)
                documents.append(document)
                losses.append(loss)
            return CorefScores(torch.stack(losses).mean() if "mentions" in batch.labels else None, documents)

    def _document(
        self, h: Tensor, own: Tensor, lengths: list[int], number: int, start: int, labels: Mapping[str, Tensor]
    ) -> tuple[DocumentScores, Tensor]:
        """One document's spans and antecedents, and its loss (0 without labels).

        Args:
            h: (N, E) its encoded words.
            own: (N, V) its words' own vectors.
            lengths: the lengths of its sentences.
            number: its index in the batch.
            start: the index of its first word in the batch.
            labels: the labels of the batch; speakers and genres are also there for raw text.
        """
        inside = candidates(lengths, self.spans.max_span_width)  # (N, K)
        widths = self.spans.widths(inside)  # (N, K, F)
        table = self.spans(h, own, widths, inside)  # (N, K)
        keep = max(int(len(h) * self.top_span_ratio), 1)
        best = best_without_crossing(table.detach().float().cpu().numpy(), inside, keep)
        places = on_device(best, h.device)  # (S,)
        first, k = places // self.spans.max_span_width, places % self.spans.max_span_width
        mention, g = table[first, k], self.spans.vectors(h, own, widths, places)  # (S,), (S, G)
        speakers = labels["speakers"][start : start + len(h)][first]
        scores = self.antecedents(g, mention, speakers, labels["genres"][number])
        document = DocumentScores(first, first + k, mention, scores)
        return document, self._loss(table, inside, places, scores, number, labels)

    def _loss(
        self,
        table: Tensor,
        inside: np.ndarray,
        places: Tensor,
        scores: Tensor,
        number: int,
        labels: Mapping[str, Tensor],
    ) -> Tensor:
        if "mentions" not in labels:
            return scores.new_zeros(())
        document, first, k, cluster = labels["mentions"].unbind(1)  # (M,) each: k is the number of words - 1
        ours = (document == number) & (k < inside.shape[1])
        clusters = torch.full((inside.size + 1,), -1, device=table.device)  # by candidate; the last is no candidate
        clusters[torch.where(ours, first * inside.shape[1] + k, inside.size)] = cluster
        loss = marginal_loss(scores, right_antecedents(clusters[places], scores))
        if self.singletons:
            among = on_device(np.flatnonzero(inside), table.device)
            is_mention = (clusters[among] >= 0).to(table.dtype)
            found = table.flatten()[among]
            loss = loss + nn.functional.binary_cross_entropy_with_logits(found, is_mention, reduction="sum")
        return loss

    def decode(self, scores: CorefScores, batch: Batch) -> list[dict[str, Any]]:
        """For each document its clusters as lists of [first word, last word], and its text with brackets."""
        answers = []
        for document, row in zip(scores.documents, batch.rows, strict=True):
            clusters = link(document.scores)
            if self.singletons:
                linked = {i for cluster in clusters for i in cluster}
                clusters += [[i] for i, score in enumerate(document.mention.tolist()) if score > 0 and i not in linked]
                clusters.sort()
            spans = list(zip(document.first.tolist(), document.last.tolist(), strict=True))
            named = [[list(spans[i]) for i in cluster] for cluster in clusters]
            answers.append({"clusters": named, "text": bracketed(row["sentences"], named)})
        return answers

    def describe(
        self, predictions: Sequence[Mapping[str, Any]], scores: CorefScores, batch: Batch
    ) -> list[dict[str, Any]]:
        """For each document its "clusters", the words of their "mentions", and the sentences "in_brackets"; for raw
        text also the "characters" [start, end) of each mention.
        """
        return [_described(each, row) for each, row in zip(predictions, batch.rows, strict=True)]


def _described(prediction: Mapping[str, Any], row: Row) -> dict[str, Any]:
    words = [word for sentence in row["sentences"] for word in sentence]
    found = [[extent(row, words, first, last + 1) for first, last in each] for each in prediction["clusters"]]
    described = {"clusters": prediction["clusters"], "mentions": [[one["text"] for one in each] for each in found]}
    if "places" in row:
        described["characters"] = [[one["characters"] for one in each] for each in found]
    return {**described, "in_brackets": prediction["text"]}


def bracketed(sentences: list[list[str]], clusters: list[list[list[int]]]) -> list[str]:
    """Each sentence as text, every mention in brackets with the number of its cluster: "[Ida]_0 has [a cat]_1".

    Args:
        sentences: the sentences of a document.
        clusters: lists of [first word, last word], counted over the document; every mention lies in one sentence.
    """
    words = [word for sentence in sentences for word in sentence]
    mentions = sorted((first, -last, number) for number, cluster in enumerate(clusters) for first, last in cluster)
    for first, last, number in reversed(mentions):  # inner mentions first
        words[first] = f"[{words[first]}"
        words[-last] += f"]_{number}"
    remaining = iter(words)
    return [" ".join(next(remaining) for _ in sentence) for sentence in sentences]
