"""A biLM as a source of layers, sentence by sentence or with its state carried through a text."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeGuard

import torch
from torch import Tensor

from elmo_bench.bilm import BiLM
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.layers.shards import digest
from elmo_bench.layers.source import Sentences
from elmo_bench.nn.packing import padded
from elmo_bench.system.errors import StrPath, UserError


class BilmLayers:
    """The L+1 layers of a `BiLM` from files in the official layout.

    Args:
        options: options.json.
        weights: official HDF5, or our safetensors.
        state: LSTM state at the start of a sentence: "zero", "warm" or "carry" (see `BiLM`; the layers of "carry" are
            cached for a whole text, see `CarriedLayers`).
    """

    doubled_first_layer = True  # the token vector is both the forward and the backward half

    def __init__(self, options: StrPath, weights: StrPath, state: str = "warm"):
        self.module = BiLM.from_files(options, weights, state)

    @classmethod
    def of(cls, bilm: BiLM) -> BilmLayers:
        """The layers of a `BiLM` object."""
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


# Part of the definition of "carry": other numbers give other layers.
STREAMS = 32  # the maximum number of streams, which are read in parallel
SHORTEST = 32  # the minimum number of sentences in a stream, so that few sentences start at zero


class CarriedLayers(BilmLayers):
    """The layers of one text, with the LSTM state carried from sentence to sentence: `bilm.state=carry`.

    The release carries its state from batch to batch. The layers of a sentence then depend on all previous batches: on
    their order, on the epoch, and on where a run was resumed. Here the order is that of the data, and the layers depend
    on the text alone, so that they can be stored, and a resumed run equals an uninterrupted one:

    - Each split is a separate text, read once from beginning to end, not again in every epoch.
    - The text consists of the sentences of its rows, row after row; in a row, field after field (question, then
      context); in a field, sentence after sentence. Repeated sentences are left out: they have the layers of their
      first occurrence. So a paragraph of several questions is read once, and so is a premise of several hypotheses.
    - The text is cut into streams of equal length, as for the training of a language model. In each stream the state
      starts at zero and is carried from every sentence to the next, in the backward LSTMs too, as in the release.

    Args:
        bilm: a biLM with state "carry".
        text: distinct sentences, in their order.
    """

    def __init__(self, bilm: BiLM, text: Sentences):
        self.module = bilm
        self.text = [tuple(sentence) for sentence in text if sentence]

    @property
    def cacheable(self) -> bool:
        """True, for a cache of its own, because `settings` contain the text."""
        return self.sha256 is not None

    @property
    def settings(self) -> dict[str, Any]:
        text = hashlib.sha256(b"".join(map(digest, self.text))).hexdigest()
        return {**super().settings, "text": text, "streams": [STREAMS, SHORTEST]}

    def layers(self, sentences: Sentences) -> Tensor:
        """(B, L+1, T, 2P); reads the text as far as these sentences, which must be distinct."""
        found = {i: layers for (i,), layers in self.batches(sentences)}
        empty = torch.zeros(self.n_layers, 0, self.width, dtype=torch.float32)
        flat = torch.cat([empty, *(found[i].to(empty.device) for i in sorted(found))], dim=1)
        return padded(flat, [len(sentence) for sentence in sentences])

    def batches(self, sentences: Sentences) -> Iterator[tuple[list[int], Tensor]]:
        """Distinct sentences of the text one by one: index and (L+1, its words, 2P), in the order of reading.

        Raises:
            ValueError: a sentence is not in the text.
        """
        wanted = {tuple(sentence): i for i, sentence in enumerate(sentences) if sentence}
        self.module.reset_state()
        for rows in _side_by_side(self.text):
            if not wanted:
                break
            for sentence, layers in zip(rows, self.module.encode(rows), strict=True):
                if (i := wanted.pop(sentence, None)) is not None:
                    yield [i], layers
        self.module.reset_state()
        if wanted:
            raise ValueError(f"not in the text: {next(iter(wanted))}")


class CarriedCache(ActivationCache):
    """The stored layers of a text. They must be stored: otherwise each sentence would need all sentences before it."""

    def _unstored(self, why: str) -> None:
        raise UserError(f"{why}; with bilm.state=carry they must be stored: make room, or choose another cache_root")


def carries(source: Any) -> TypeGuard[BilmLayers]:
    """Whether a source carries its state from sentence to sentence."""
    return isinstance(source, BilmLayers) and getattr(source.module, "state", None) == "carry"


def read_text(source: BilmLayers, text: Sentences, cache_root: StrPath) -> ActivationCache:
    """The layers of a text, read once and stored; layers that cannot be stored are an error."""
    cache = CarriedCache(CarriedLayers(source.module, text), Path(cache_root) / "activations")
    cache.prepare(text)
    return cache


def _side_by_side(text: list[tuple[str, ...]]) -> Iterator[list[tuple[str, ...]]]:
    """The next sentence of every stream, until all streams have ended; the longer streams come first."""
    number = min(STREAMS, max(1, len(text) // SHORTEST))
    short, longer = divmod(len(text), number)
    starts = [k * short + min(k, longer) for k in range(number)]
    for place in range(short + bool(longer)):
        yield [text[start + place] for start in starts[: number if place < short else longer]]
