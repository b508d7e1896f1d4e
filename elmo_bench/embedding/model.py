"""A task's model as a plain `nn.Module`: the representation of its texts, and the task's head."""

from __future__ import annotations

from typing import Any

from torch import nn

from elmo_bench.embedding.representation import Representation
from elmo_bench.task import Batch, Embedded, Head


class Model(nn.Module):
    """[x_k ; ELMo_k] of every text (paper, section 3.3), and the head over it.

    Args:
        representation: makes `Embedded` of each text field.
        head: the task's model, its loss and its decoding.
    """

    def __init__(self, representation: Representation, head: Head):
        super().__init__()
        self.representation, self.head = representation, head

    def forward(self, batch: Batch) -> Any:
        """The head's scores; their `loss` is None where the batch has no labels."""
        words = self.representation.look_up(batch.texts)
        texts: dict[str, Embedded] = {
            name: self.representation(tokens, words.get(name)) for name, tokens in batch.texts.items()
        }
        return self.head(texts, batch)
