"""ESIM (Chen et al. 2017) as in the paper: encode both sentences, align them, compare, pool (supplement, SNLI)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from elmo_bench.nn.attention import masked_max, masked_mean, soft_align
from elmo_bench.nn.encoders import BiLSTM
from elmo_bench.nn.feedforward import VariationalDropout, probabilities
from elmo_bench.nn.numerics import Linear, ScoreLinear, linear, squared_norm
from elmo_bench.task import Batch, Embedded
from elmo_bench.text.vocabulary import Vocabulary


class SnliScores(NamedTuple):
    """The output of `SnliHead` for a batch."""

    loss: Tensor | None  # () mean negative log likelihood over pairs, in nats, plus the L2 penalty
    logits: Tensor  # (B, K)


class SnliHead(nn.Module):
    """x -> dropout -> biLSTM -> [h ; ELMo], with ELMo at the output -> align -> compare -> dense -> dropout ->
    biLSTM -> mean and maximum of both sentences -> dropout -> dense -> dropout -> labels.

    Premise and hypothesis share all weights before the pooling.

    Args:
        input_size: D of `Embedded.x`.
        elmo_size: E of `Embedded.elmo`, or 0.
        vocabularies: "labels" gives the K labels.
        hidden: H, size of both biLSTMs, per direction, and of both dense layers.
        dropout: variational at the input of each biLSTM, ordinary before the last two layers.
        aligned_dropout: variational, after the alignment, only with ELMo at the output.
        l2: weight of the L2 penalty on all matrices of the head; biases are exempt.
    """

    def __init__(
        self,
        input_size: int,
        elmo_size: int,
        vocabularies: Mapping[str, Vocabulary],
        hidden: int = 300,
        dropout: float = 0.5,
        aligned_dropout: float = 0.5,
        l2: float = 0.0,
    ):
        super().__init__()
        self.labels, self.l2 = vocabularies["labels"].items, l2
        self.dropout, self.variational = nn.Dropout(dropout), VariationalDropout(dropout)
        self.aligned_dropout = VariationalDropout(aligned_dropout if elmo_size else 0.0)
        self.encoder = BiLSTM(input_size, hidden)
        self.compare = Linear(4 * (self.encoder.output_size + elmo_size), hidden)
        self.inference = BiLSTM(hidden, hidden)
        self.combine = Linear(4 * self.inference.output_size, hidden)
        self.classify = ScoreLinear(hidden, len(self.labels))
        self.apply(initialise)

    def forward(self, texts: Mapping[str, Embedded], batch: Batch) -> SnliScores:
        """Scores of the labels, and the loss if the batch has labels."""
        premise, hypothesis = texts["premise"], texts["hypothesis"]
        masks = premise.mask, hypothesis.mask
        of_premise, of_hypothesis = self._encoded(self.encoder, (premise.x, hypothesis.x), masks)
        a, b = premise.after(of_premise), hypothesis.after(of_hypothesis)  # (B, S, 2H + E), (B, T, 2H + E)
        of_b, of_a = soft_align(a @ b.mT, a, b, *masks)
        compared = (self._compare(x, aligned).relu() for x, aligned in ((a, of_b), (b, of_a)))  # (B, ., H) each
        inferred = self._encoded(self.inference, compared, masks)  # (B, S, 2H), (B, T, 2H)
        pooled = [pool(h, mask) for h, mask in zip(inferred, masks, strict=True) for pool in (masked_mean, masked_max)]
        v = torch.cat(pooled, dim=1)  # (B, 8H)
        logits = self.classify(self.dropout(self.combine(self.dropout(v)).relu()))  # (B, K)
        gold = batch.labels.get("label")  # (B,)
        return SnliScores(None if gold is None else nn.functional.cross_entropy(logits, gold) + self.penalty(), logits)

    def _encoded(self, bilstm: BiLSTM, sides: Iterable[Tensor], masks: Sequence[Tensor]) -> list[Tensor]:
        """dropout -> biLSTM of both sides, (B, T, D) -> (B, T, 2H) each."""
        return [bilstm(self.variational(x), mask) for x, mask in zip(sides, masks, strict=True)]

    def _compare(self, x: Tensor, aligned: Tensor) -> Tensor:
        """The dense layer over [x ; aligned ; x - aligned ; x * aligned], each word with its counterpart, (B, T, H)."""
        if self.training and self.aligned_dropout.p:
            both = torch.cat([x, aligned, x - aligned, x * aligned], dim=2)  # (B, T, 4(2H + E))
            return self.compare(self.aligned_dropout(both))
        of_x, of_aligned, of_difference, of_product = self.compare.weight.chunk(4, dim=1)  # 3 products instead of 4
        scores = linear(x, of_x + of_difference, self.compare.bias)
        return scores + linear(aligned, of_aligned - of_difference) + linear(x * aligned, of_product)

    def penalty(self) -> Tensor | float:
        """`l2` times the sum of squares of all weight matrices; 0 outside training."""
        if not (self.l2 and self.training):
            return 0.0
        return self.l2 * squared_norm(*(p for p in self.parameters() if p.dim() > 1))

    def decode(self, scores: SnliScores, batch: Batch) -> list[str]:
        """The best label of each pair."""
        return [self.labels[i] for i in scores.logits.argmax(1).tolist()]

    def describe(self, predictions: Sequence[str], scores: SnliScores, batch: Batch) -> list[dict[str, Any]]:
        """For each pair its "label" and the "probabilities" of all labels."""
        shares = probabilities(scores.logits, self.labels)
        return [{"label": label, "probabilities": each} for label, each in zip(predictions, shares, strict=True)]


def initialise(module: nn.Module) -> None:
    """Xavier for input matrices, orthogonal for recurrent ones; biases are zero, those of forget gates 1."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
    elif isinstance(module, nn.LSTM):
        for name, parameter in module.named_parameters():
            if name.startswith("weight_ih"):
                nn.init.xavier_uniform_(parameter)
            elif name.startswith("weight_hh"):
                nn.init.orthogonal_(parameter)
            else:
                nn.init.zeros_(parameter)
                if name.startswith("bias_ih"):  # torch adds two biases, but one is enough
                    parameter.data[module.hidden_size : 2 * module.hidden_size] = 1.0
