"""The paper's tagger on top of the word representation: two biLSTMs and a CRF (section 4; supplement, NER)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from elmo_bench.configuration.keys import valid
from elmo_bench.nn.crf import CRF
from elmo_bench.nn.encoders import BiLSTM
from elmo_bench.nn.feedforward import VariationalDropout
from elmo_bench.nn.numerics import ScoreLinear
from elmo_bench.task import Batch, Embedded
from elmo_bench.text import tags
from elmo_bench.text.tokenizer import labelled
from elmo_bench.text.vocabulary import Vocabulary


class TaggingScores(NamedTuple):
    """The output of `TaggingHead` for a batch."""

    loss: Tensor | None  # () negative log likelihood in nats, the mean over sentences or their sum
    emissions: Tensor  # (B, T, K)
    mask: Tensor  # (B, T) bool


class TaggingHead(nn.Module):
    """x -> dropout -> biLSTM -> dropout -> biLSTM -> [h ; ELMo], with ELMo at the output -> dense -> CRF.

    Args:
        input_size: D of `Embedded.x`.
        elmo_size: E of `Embedded.elmo`, or 0.
        vocabularies: "labels" gives the tags; the CRF only allows valid sequences of their scheme.
        hidden: sizes of the biLSTMs, per direction.
        dropout: variational, at the input of each biLSTM.
        crf_ends: learn scores for the first and the last tag of a sentence.
        loss: "mean" over the sentences of a batch, or their "sum", as in AllenNLP's CRF: lambda and gradient clipping
            then weigh less, by the number of sentences.
    """

    described: ClassVar[str] = "spans"  # the key of the spans in `describe`

    def __init__(
        self,
        input_size: int,
        elmo_size: int,
        vocabularies: Mapping[str, Vocabulary],
        hidden: Sequence[int] = (200, 100),
        dropout: float = 0.5,
        crf_ends: bool = False,
        loss: str = "mean",
    ):
        super().__init__()
        valid(Literal["mean", "sum"], loss, "task.head.loss")
        self.reduce = torch.sum if loss == "sum" else torch.mean
        self.labels = vocabularies["labels"].items
        self.dropout = VariationalDropout(dropout)
        self.encoders = nn.ModuleList()
        for size in hidden:
            self.encoders.append(encoder := BiLSTM(input_size, size))
            input_size = encoder.output_size
        self.project = ScoreLinear(input_size + elmo_size, len(self.labels))
        allowed = tags.constraints(self.labels, tags.scheme_of(self.labels))
        self.crf = CRF(len(self.labels), allowed, ends=crf_ends)

    def forward(self, texts: Mapping[str, Embedded], batch: Batch) -> TaggingScores:
        """Emission scores, and the loss if the batch has labels."""
        text = texts["tokens"]
        h = text.x  # (B, T, D)
        for encoder in self.encoders:
            h = encoder(self.dropout(h), text.mask)  # (B, T, 2H)
        emissions = self.project(text.after(h))  # (B, T, K)
        gold = batch.labels.get("tags")  # (B, T)
        loss = None if gold is None else self.reduce(self.crf(emissions, gold, text.mask))
        return TaggingScores(loss, emissions, text.mask)

    def decode(self, scores: TaggingScores, batch: Batch) -> list[list[str]]:
        """The best valid tag sequence of each sentence, as IOB2 tags whatever the CRF's scheme."""
        best = self.crf.decode(scores.emissions, scores.mask)
        return [tags.convert([self.labels[i] for i in sequence], "iob2") for sequence in best]

    def describe(self, predictions: Sequence[list[str]], scores: TaggingScores, batch: Batch) -> list[dict[str, Any]]:
        """For each sentence its "tags" and its "spans": {"label", "start", "end", "text"}, words [start, end); for raw
        text also its "characters" [start, end).
        """
        return [
            {"tags": sequence, self.described: [labelled(row, span) for span in tags.spans(sequence)]}
            for sequence, row in zip(predictions, batch.rows, strict=True)
        ]
