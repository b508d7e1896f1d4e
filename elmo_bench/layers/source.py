"""Where layers come from: what a biLM, or any other encoder of sentences, offers to a model and to the cache.

A source reads sentences and gives, for every word, one vector a layer. To add one, write a class with the members of
`LayersSource` and name it by `_target_` on a page of conf/bilm; the page's own keys become its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

Sentences = Sequence[Sequence[str]]


class Layers(Protocol):
    """What a model needs: a `LayersSource`, or an `ActivationCache` in its place.

    Attributes:
        n_layers: layers of every word, the context-free one included (L + 1 for a biLM of L LSTM layers).
        width: of each layer's vectors, W.
        sha256: digest of the files that decide the layers; None for a source that came from none.
        module: computes the layers. It is moved with the model, frozen, or trained with it (elmo.finetune=joint).
            None where there is nothing to train, as in a cache.
    """

    @property
    def n_layers(self) -> int: ...

    @property
    def width(self) -> int: ...

    @property
    def sha256(self) -> str | None: ...

    @property
    def module(self) -> nn.Module | None: ...

    def layers(self, sentences: Sentences) -> Tensor:
        """(B, n_layers, T, W) float32, zero-padded, T the longest sentence; with gradients where `module` asks."""
        ...


class LayersSource(Layers, Protocol):
    """What computes the layers, and what the cache must know of it.

    Attributes:
        cacheable: the layers of a sentence are a function of that sentence alone.
        doubled_first_layer: layer 0 holds one vector of W/2 numbers twice, so that the cache stores it once.
        settings: all that decides the layers besides the files of `sha256`, as plain JSON; a part of the cache's key.
    """

    @property
    def cacheable(self) -> bool: ...

    @property
    def doubled_first_layer(self) -> bool: ...

    @property
    def settings(self) -> Mapping[str, Any]: ...

    def batches(self, sentences: Sentences) -> Iterator[tuple[list[int], Tensor]]:
        """All sentences in bounded memory and without gradients, in the order that suits the source.

        Yields:
            Which sentences a batch holds, and their layers (n_layers, N, W), one sentence after another, N words.
        """
        ...


def padded(flat: Tensor, lengths: Sequence[int]) -> Tensor:
    """(n_layers, N, W), the words of sentences one after another -> (B, n_layers, T, W), zero-padded."""
    counts = torch.tensor(lengths, dtype=torch.long)
    mask = torch.arange(max(lengths, default=0))[None] < counts[:, None]  # (B, T)
    rows = flat.new_zeros(*mask.shape, flat.shape[0], flat.shape[2])  # (B, T, n_layers, W)
    rows[mask.to(flat.device)] = flat.transpose(0, 1)
    return rows.transpose(1, 2)
