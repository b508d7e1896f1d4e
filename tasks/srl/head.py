"""The paper's SRL model on top of the word representation: deep highway LSTMs (supplement; He et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.nn.crf import viterbi
from elmo_bench.nn.encoders import AlternatingHighwayLSTM
from elmo_bench.nn.numerics import ScoreLinear
from elmo_bench.task import Batch, Embedded
from elmo_bench.text import tags
from elmo_bench.text.tokenizer import labelled
from elmo_bench.text.vocabulary import Vocabulary


class SrlScores(NamedTuple):
    """The output of `SrlHead` for a batch."""

    loss: Tensor | None  # () mean over sentences of their words' mean negative log likelihood, in nats
    emissions: Tensor  # (B, T, K)
    mask: Tensor  # (B, T) bool


class SrlHead(nn.Module):
    """[x ; flag of the predicate] -> alternating highway LSTMs -> [h ; ELMo], with ELMo at the output -> softmax.

    Args:
        input_size: D of `Embedded.x`.
        elmo_size: E of `Embedded.elmo`, or 0.
        vocabularies: "labels" gives the tags.
        flag: size of the vector that marks the predicate.
        hidden: size of each layer.
        layers: number of layers, which alternate between reading forward and backward.
        dropout: recurrent, variational.
        flag_deviation: standard deviation of the flag's initial values, normally distributed.
    """

    start: Tensor
    pairs: Tensor
    end: Tensor

    def __init__(
        self,
        input_size: int,
        elmo_size: int,
        vocabularies: Mapping[str, Vocabulary],
        flag: int = 100,
        hidden: int = 300,
        layers: int = 8,
        dropout: float = 0.1,
        flag_deviation: float = 1.0,
    ):
        super().__init__()
        self.labels = vocabularies["labels"].items
        self.flag = nn.Embedding(2, flag)
        self.flag.weight.data *= flag_deviation
        self.encoder = AlternatingHighwayLSTM(input_size + flag, hidden, layers, dropout)
        self.project = ScoreLinear(hidden + elmo_size, len(self.labels))
        nn.init.orthogonal_(self.project.weight)
        nn.init.zeros_(self.project.bias)
        for name, allowed in tags.constraints(self.labels, "iob2")._asdict().items():
            table = torch.zeros(torch.tensor(allowed).shape).masked_fill(~torch.tensor(allowed), -torch.inf)
            self.register_buffer(name, table, persistent=False)

    def forward(self, texts: Mapping[str, Embedded], batch: Batch) -> SrlScores:
        """Emission scores, and the loss if the batch has tags."""
        text = texts["tokens"]
        x = torch.cat([text.x, self.flag(batch.labels["predicates"])], dim=-1)  # (B, T, D + flag)
        known = batch.texts.get("tokens")
        h = self.encoder(x, text.mask, known and known.lengths, known and known.places)  # (B, T, H)
        emissions = self.project(text.after(h))  # (B, T, K)
        gold = batch.labels.get("tags")  # (B, T)
        loss = None if gold is None else _loss(emissions, gold, text.mask)
        return SrlScores(loss, emissions, text.mask)

    def decode(self, scores: SrlScores, batch: Batch) -> list[dict[str, Any]]:
        """For each row {"frames": [...]}, with one frame {"predicate", "word", "arguments", "brackets"} per predicate.

        The arguments come from the best valid tag sequence, including V.
        """
        best = iter(viterbi(scores.emissions.float(), self.start, self.pairs, self.end, scores.mask))
        answers = []
        for row in batch.rows:
            words, frames = row["tokens"], []
            for predicate in row["predicates"] or [None]:  # without a predicate, the batch still has a sequence
                spans = tags.spans([self.labels[tag] for tag in next(best)])
                if predicate is not None:
                    frame = {"predicate": predicate, "word": words[predicate]}
                    found = {"arguments": [labelled(row, span) for span in spans], "brackets": brackets(words, spans)}
                    frames.append(frame | found)
            answers.append({"frames": frames})
        return answers


def _loss(emissions: Tensor, gold: Tensor, mask: Tensor) -> Tensor:
    each = F.cross_entropy(emissions.transpose(1, 2), gold, reduction="none") * mask  # (B, T)
    return (each.sum(1) / mask.sum(1)).mean()


def brackets(words: list[str], spans: list[tags.Span]) -> str:
    """A sentence with its arguments in brackets: "[ARG0: Ida] [V: sang] [ARG1: a song] ."."""
    opening = {span.start: f"[{span.type}: " for span in spans}
    closing = {span.end - 1 for span in spans}
    return " ".join(f"{opening.get(i, '')}{word}{']' if i in closing else ''}" for i, word in enumerate(words))
