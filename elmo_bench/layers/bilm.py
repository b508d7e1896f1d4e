"""A biLM as a source of layers."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from typing import Any

from torch import Tensor

from elmo_bench.bilm import BiLM
from elmo_bench.layers.source import Sentences


class BilmLayers:
    """The L+1 layers of a `BiLM` from files in the official layout.

    Args:
        options: options.json.
        weights: official HDF5, or our safetensors.
        state: LSTM state at the start of a sentence: "zero", "warm" or "carry" (see `BiLM`; the layers of "carry" are
            cached for a whole text, see `carried.py`).

    Raises:
        UserError: a file is missing or damaged, the files do not match, or the state is unknown.
    """

    doubled_first_layer = True  # the token vector is both the forward and the backward half

    def __init__(self, options: str | PathLike[str], weights: str | PathLike[str], state: str = "warm"):
        self.module = BiLM.from_files(options, weights, state)

    @classmethod
    def of(cls, bilm: BiLM) -> BilmLayers:
        """From a `BiLM` object."""
        source = cls.__new__(cls)
        source.module = bilm
        return source

    @property
    def n_layers(self) -> int:
        return self.module.n_layers

    @property
    def width(self) -> int:
        return self.module.width

    @property
    def sha256(self) -> str | None:
        """Digest of the weights; the options are part of `settings`."""
        return self.module.sha256

    @property
    def cacheable(self) -> bool:
        return self.module.state != "carry" and self.sha256 is not None

    @property
    def settings(self) -> dict[str, Any]:
        known = {"options": self.module.options.model_dump(mode="json"), "state": self.module.state}
        exact = self.module.precision == "fp32"
        return known if exact else {**known, "precision": self.module.precision}

    def layers(self, sentences: Sentences) -> Tensor:
        """(B, L+1, T, 2P) on the biLM's device."""
        return self.module.layers(sentences)

    def batches(self, sentences: Sentences) -> Iterator[tuple[list[int], Tensor]]:
        """Indices and (L+1, their words, 2P), longest sentences first."""
        return self.module.batches(sentences)
