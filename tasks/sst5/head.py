"""The paper's model for SST-5: the biattentive classification network (McCann et al. 2017; supplement, SST-5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from elmo_bench.configuration.keys import valid
from elmo_bench.nn.attention import SelfAttentivePooling, masked_max, masked_mean, masked_min, masked_softmax
from elmo_bench.nn.encoders import BiLSTM
from elmo_bench.nn.feedforward import probabilities
from elmo_bench.nn.numerics import Linear, wide
from elmo_bench.task import Batch, Embedded
from elmo_bench.text.vocabulary import Vocabulary

from .trees import NAMES

LABELS = len(NAMES)


class Sst5Scores(NamedTuple):
    """The output of `Sst5Head` for a batch."""

    loss: Tensor | None  # () mean cross entropy over texts, in nats
    logits: Tensor  # (B, 5)


class Sst5Head(nn.Module):
    """x -> ReLU -> biLSTM -> h; [h ; biLSTM(ELMo)] -> biattention -> integrating biLSTM -> four pools -> classifier.

    The text attends to itself, so both sides of the network's biattention are the same. ELMo at the output enters
    through a second biLSTM before the biattention, or with `output_elmo="raw"` unchanged, just before the pooling.

    Args:
        input_size: D of `Embedded.x`.
        elmo_size: E of `Embedded.elmo`, or 0.
        vocabularies: not used; the labels are 0 to 4.
        pre_encode: size of the ReLU layer before the first biLSTM.
        hidden: size of the first biLSTM, per direction.
        integrator: size of the integrating biLSTM, per direction.
        classifier: makes the classifier from (input size, number of labels).
        embedding_dropout: on x, and on ELMo at the output.
        pre_encode_dropout: after the ReLU layer.
        integrator_dropout: on the pooled vector.
        output_elmo: "encoded": [h ; biLSTM(ELMo)], a second biLSTM of size `hidden`; "raw": [g ; ELMo], g being the
            output of the integrating biLSTM (AllenNLP's reading).
    """

    def __init__(
        self,
        input_size: int,
        elmo_size: int,
        vocabularies: Mapping[str, Vocabulary],
        pre_encode: int,
        hidden: int,
        integrator: int,
        classifier: Callable[[int, int], nn.Module],
        embedding_dropout: float = 0.0,
        pre_encode_dropout: float = 0.0,
        integrator_dropout: float = 0.0,
        output_elmo: str = "encoded",
    ):
        super().__init__()
        valid(Literal["encoded", "raw"], output_elmo, "task.head.output_elmo")
        self.embedding_dropout = nn.Dropout(embedding_dropout)
        self.pre_encode = nn.Sequential(Linear(input_size, pre_encode), nn.ReLU(), nn.Dropout(pre_encode_dropout))
        self.encoder = BiLSTM(pre_encode, hidden)
        self.elmo_encoder = BiLSTM(elmo_size, hidden) if elmo_size and output_elmo == "encoded" else None
        width = self.encoder.output_size + (self.elmo_encoder.output_size if self.elmo_encoder else 0)
        self.integrator = BiLSTM(3 * width, integrator)
        self.integrator_dropout = nn.Dropout(integrator_dropout)
        pooled = self.integrator.output_size + (elmo_size if output_elmo == "raw" else 0)
        self.self_attentive = SelfAttentivePooling(pooled)
        self.classifier = classifier(4 * pooled, LABELS)

    def forward(self, texts: Mapping[str, Embedded], batch: Batch) -> Sst5Scores:
        """Scores of the labels, and the loss if the batch has labels."""
        text = texts["tokens"]
        h = self.encoder(self.pre_encode(self.embedding_dropout(text.x)), text.mask)  # (B, T, 2H)
        elmo = None if text.elmo is None else self.embedding_dropout(text.elmo)  # (B, T, E)
        if self.elmo_encoder is not None and elmo is not None:
            h = torch.cat([h, self.elmo_encoder(elmo, text.mask)], dim=-1)  # (B, T, 4H)
        g = self.integrator(biattend(h, text.mask), text.mask)  # (B, T, 2I)
        if self.elmo_encoder is None and elmo is not None:
            g = torch.cat([g, elmo], dim=-1)  # (B, T, 2I + E)
        pools = [pool(g, text.mask) for pool in (masked_max, masked_min, masked_mean, self.self_attentive)]
        logits = wide(self.classifier(self.integrator_dropout(torch.cat(pools, dim=-1))))  # (B, 5)
        gold = batch.labels.get("label")  # (B,)
        return Sst5Scores(None if gold is None else nn.functional.cross_entropy(logits, gold), logits)

    def decode(self, scores: Sst5Scores, batch: Batch) -> list[int]:
        """The best label of each text."""
        return scores.logits.argmax(-1).tolist()

    def describe(self, predictions: Sequence[int], scores: Sst5Scores, batch: Batch) -> list[dict[str, Any]]:
        """For each text its "label" from 0 to 4, the label's "name" and the "probabilities" of all labels, by name."""
        shares = probabilities(scores.logits, NAMES)
        return [
            {"label": label, "name": NAMES[label], "probabilities": each}
            for label, each in zip(predictions, shares, strict=True)
        ]


def biattend(h: Tensor, mask: Tensor) -> Tensor:
    """(B, T, D) -> (B, T, 3D): [h ; h - c ; h * c], c_t being the mean of the text weighted by softmax(h_t . h)."""
    c = masked_softmax(h @ h.mT, mask.unsqueeze(1)) @ h  # (B, T, D)
    return torch.cat([h, h - c, h * c], dim=-1)
