"""BiDAF with self-attention (Clark and Gardner 2018), the paper's SQuAD model, on top of the word representation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.nn.attention import BiAttention, SelfAttention
from elmo_bench.nn.encoders import BiGRU
from elmo_bench.nn.feedforward import VariationalDropout
from elmo_bench.nn.numerics import Linear, ScoreLinear
from elmo_bench.task import Batch, Embedded
from elmo_bench.text.vocabulary import Vocabulary


class SquadScores(NamedTuple):
    """The output of `SquadHead` for a batch."""

    loss: Tensor | None  # () mean over questions of -log p(start) - log p(end), in nats
    start: Tensor  # (B, T) log probabilities, -inf at padding
    end: Tensor  # (B, T)


class SquadHead(nn.Module):
    """Shared biGRU, [h ; ELMo] with ELMo at the output, attention in both directions, self-attention, start and end.

    Context and question share one encoder. The scores of the answer's start come from a biGRU over the merged context,
    the scores of its end from a second biGRU over the merged context and the states of the first.

    Args:
        input_size: D of `Embedded.x`.
        elmo_size: E of `Embedded.elmo`, or 0.
        vocabularies: not used.
        hidden: size of every biGRU, per direction; the linear layers have twice that size.
        dropout: variational, at the input and the output of the encoder and of the self-attention's biGRU, and at the
            input of the output layers.
        max_answer: maximum number of words in a predicted answer.
        deviation: standard deviation of the initial weights of the biGRUs, see `BiGRU`.
        products: initial weight of the products in the scores of the attention between context and question, see
            `BiAttention`: with a positive weight, similar words attend to each other before anything is learned.
    """

    def __init__(
        self,
        input_size: int,
        elmo_size: int,
        vocabularies: Mapping[str, Vocabulary],
        hidden: int = 90,
        dropout: float = 0.2,
        max_answer: int = 17,
        deviation: float | None = None,
        products: float | None = None,
    ):
        super().__init__()
        self.max_answer = max_answer
        self.dropout = VariationalDropout(dropout)
        self.encoder = BiGRU(input_size, hidden, deviation)
        self.attention = BiAttention(self.encoder.output_size + elmo_size, products)
        self.merge = linear(self.attention.output_size, 2 * hidden)
        self.reader = BiGRU(2 * hidden, hidden, deviation)
        self.itself = SelfAttention(2 * hidden)
        self.merge_itself = linear(self.itself.output_size, 2 * hidden)
        self.start_gru, self.start = BiGRU(2 * hidden, hidden, deviation), linear(2 * hidden, 1, ScoreLinear)
        self.end_gru, self.end = BiGRU(4 * hidden, hidden, deviation), linear(2 * hidden, 1, ScoreLinear)

    def forward(self, texts: Mapping[str, Embedded], batch: Batch) -> SquadScores:
        """Log probabilities of every word as first and as last of the answer, and the loss if the batch has spans."""
        context, question = texts["context"], texts["question"]
        x, mask = self.merged(context, question), context.mask  # (B, T, 2H)
        h = self.start_gru(x, mask)  # (B, T, 2H)
        start = log_probabilities(self.start(h), mask)  # (B, T)
        h = self.end_gru(torch.cat([x, h], dim=-1), mask)
        end = log_probabilities(self.end(h), mask)
        gold = batch.labels.get("span")  # (B, 2)
        loss = None if gold is None else F.nll_loss(start, gold[:, 0]) + F.nll_loss(end, gold[:, 1])
        return SquadScores(loss, start, end)

    def merged(self, context: Embedded, question: Embedded) -> Tensor:
        """The context merged with its attention to the question and to itself, (B, T, 2H)."""
        h, q = (text.after(self.dropout(self.encoder(self.dropout(text.x), text.mask))) for text in (context, question))
        x = self.merge(self.attention(h, q, context.mask, question.mask)).relu()  # (B, T, 2H)
        h = self.dropout(self.reader(self.dropout(x), context.mask))  # (B, T, 2H)
        x = x + self.merge_itself(self.itself(h, context.mask)).relu()
        return self.dropout(x)

    def decode(self, scores: SquadScores, batch: Batch) -> list[dict[str, Any]]:
        """The best answer of each question: its text as written in the context, the characters [start, end) of the
        context that it covers, and its probability p(first word) * p(last word).
        """
        first, last, best = best_spans(scores.start, scores.end, self.max_answer)
        answers = []
        for row, i, j, score in zip(batch.rows, first.tolist(), last.tolist(), best.exp().tolist(), strict=True):
            words = [word for sentence in row["context"] for word in sentence]
            start, end = row["starts"][i], row["ends"][j] if "ends" in row else row["starts"][j] + len(words[j])
            answer = {"answer": row["text"][start:end], "start": start, "end": end, "score": round(score, 4)}
            answers.append({"id": row["id"]} | answer if row.get("id") else answer)
        return answers


def linear(size: int, out: int, kind: type[nn.Linear] = Linear) -> nn.Linear:
    """A linear layer with Glorot's uniform initialisation and zero biases."""
    layer = kind(size, out)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def log_probabilities(scores: Tensor, mask: Tensor) -> Tensor:
    """(B, T, 1) scores -> (B, T) log softmax over the words, -inf at padding."""
    return scores.squeeze(2).float().masked_fill(~mask, float("-inf")).log_softmax(1)


def best_spans(start: Tensor, end: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
    """The span of at most `longest` words with the highest start + end; among equals the first, then the shortest.

    Args:
        start, end: (B, T), -inf where no span may begin or end.
        longest: maximum number of words in a span.

    Returns:
        First word, last word and score, each (B,).
    """
    longest = min(longest, end.shape[1])
    windows = F.pad(end, (0, longest - 1), value=float("-inf")).unfold(1, longest, 1)  # (B, T, longest): end[i + k]
    best, index = (start.unsqueeze(2) + windows).flatten(1).max(1)  # (B,)
    first = index // longest
    return first, first + index % longest, best
