"""Sources of layers: the interface of a biLM, or any other sentence encoder, to a model and to the cache.

A model reads a frozen source through `frozen_layers`, which rounds to float16 like the cache: a run gives the same
result whether its layers come from the cache or are computed again. This requires that a sentence has the same bits in
every batch, as with a frozen biLM on the CPU; if the last digits differ (on a GPU, or in a Hugging Face model), a few
rounded numbers differ too. A source trained with the model is not rounded, nor are the results of `BiLM.encode` and
the command `embed`.

A source reads sentences and gives one vector per word and layer. To add one, write a class with the members of
`LayersSource` and name it by `_target_` in a file in conf/bilm, here or in a folder of your own (`-cd FOLDER`); the
file's own keys become its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

Sentences = Sequence[Sequence[str]]


class Layers(Protocol):
    """The interface for a model: a `LayersSource`, or an `ActivationCache` instead.

    Attributes:
        n_layers: number of layers, including the context-free one (L + 1 for a biLM of L LSTM layers).
        width: the width of each layer's vectors, W.
        sha256: digest of the files that determine the layers; None for a source not read from files.
        module: computes the layers. It is moved to the model's device, and is frozen or trained with the model
            (elmo.finetune=joint). None if there is nothing to train, as in a cache.
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
        """(B, n_layers, T, W) float32, zero-padded, T the longest sentence; with gradients if `module` needs them."""
        ...


class LayersSource(Layers, Protocol):
    """Computes the layers, and describes itself for the cache.

    Attributes:
        cacheable: the layers of a sentence are a function of the files, of `settings` and of that sentence alone.
        doubled_first_layer: layer 0 repeats one vector of W/2 numbers, so the cache stores it once.
        settings: everything that determines the layers besides the files, as plain JSON; part of the cache's key.
    """

    @property
    def cacheable(self) -> bool: ...

    @property
    def doubled_first_layer(self) -> bool: ...

    @property
    def settings(self) -> Mapping[str, Any]: ...

    def batches(self, sentences: Sentences) -> Iterator[tuple[list[int], Tensor]]:
        """All sentences, in bounded memory and without gradients, in an order that the source chooses.

        Yields:
            The indices of a batch's sentences, and the layers (n_layers, N, W) of their N words in that order.
        """
        ...


@torch.no_grad()
def frozen_layers(source: Layers, sentences: Sentences) -> Tensor:
    """The layers of a frozen source as a model sees them: (B, n_layers, T, W) float32, rounded to float16."""
    return source.layers(sentences).half().float()
