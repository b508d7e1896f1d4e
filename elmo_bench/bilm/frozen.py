"""The computation of `TokenEncoder` and `ProjectedLSTM`, optimised for fixed weights.

Three things make it fast: every distinct word is encoded once, with convolutions written as products over windows cut
to the lengths of the words; the weights of all products are packed once; and each direction of the LSTMs has a thread
of its own, because the products of one step are too small for torch to split. Where a compiler is at hand, compiled
functions do all this, with all threads at work on every step; elsewhere torch's products: see `nn/kernels/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

import numpy as np
import torch
from torch import Tensor

from elmo_bench.bilm.characters import character_table, used_characters
from elmo_bench.bilm.encoder import TokenEncoder
from elmo_bench.bilm.kernels.checked import kernels
from elmo_bench.bilm.kernels.encoder import CompiledEncoder, PlainEncoder
from elmo_bench.bilm.kernels.lstm import CompiledDirections, Directions, FrozenLSTM
from elmo_bench.bilm.lstm import ProjectedLSTM
from elmo_bench.nn.kernels.library import Kernels
from elmo_bench.nn.packing import on_device

REMEMBERED_WORDS = 16384  # token vectors kept between batches
WORDS = 2048  # words encoded at once


def for_weight(weight: Tensor, half: bool) -> Kernels | None:
    """The compiled functions, if there are any for this weight: float32 on a CPU."""
    return kernels(half) if weight.device.type == "cpu" and weight.dtype == torch.float32 else None


class FrozenEncoder:
    """Words -> token vectors; each distinct word is computed once and remembered, up to a limit.

    Args:
        encoder: its modules.
        half: multiply in bfloat16 where the compiled functions can.
    """

    def __init__(self, encoder: TokenEncoder, half: bool = False):
        self.options = encoder.options
        weight = encoder.characters.weight.detach()
        self.kernels = for_weight(weight, half)
        self.encoder = PlainEncoder(encoder) if self.kernels is None else CompiledEncoder(encoder, self.kernels)
        self.places: dict[str, int] = {}
        self.vectors = weight.new_empty(REMEMBERED_WORDS, self.options.lstm.projection_dim)
        self.lock = Lock()  # guards the remembered vectors

    def __call__(self, words: list[str]) -> Tensor:
        """(U, P) for distinct words."""
        if len(words) > REMEMBERED_WORDS:
            return torch.cat([self.compute(words[i : i + WORDS]) for i in range(0, len(words), WORDS)])
        with self.lock:
            missing = [word for word in words if word not in self.places]
            if len(self.places) + len(missing) > REMEMBERED_WORDS:
                self.places.clear()
                missing = words
            for start in range(0, len(missing), WORDS):
                some, first = missing[start : start + WORDS], len(self.places)
                self.vectors[first : first + len(some)] = self.compute(some)
                self.places.update(zip(some, range(first, first + len(some)), strict=True))
            rows = np.fromiter((self.places[word] for word in words), np.int64, len(words))
            return self.vectors[on_device(rows, self.vectors.device)]

    def forget(self) -> None:
        """Drops the remembered vectors."""
        with self.lock:
            self.places.clear()

    def compute(self, words: Sequence[str]) -> Tensor:
        """(U, P), ignoring the remembered vectors; its working memory grows with U."""
        table = character_table(words, self.options.char_cnn.max_characters_per_token)  # (U, K)
        return self.encoder(table, used_characters(table))


def frozen_directions(
    stacks: Sequence[Sequence[ProjectedLSTM]], skip: bool, half: bool = False
) -> Directions | CompiledDirections:
    """The fastest way to run these layers without gradients here; arguments as for `Directions`, `FrozenEncoder`."""
    found = for_weight(stacks[0][0].bias, half)
    if found is not None:
        return CompiledDirections(stacks, skip, found)
    return Directions((map(FrozenLSTM, layers) for layers in stacks), skip)
