"""Section 3.3 of the paper: [x_k ; ELMo_k] at the input, [h_k ; ELMo_k] at the output.

Only this file knows where ELMo enters a model; a head only sees wider vectors, and calls `Embedded.after`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.configuration.schema import ElmoConfig
from elmo_bench.embedding.scalar_mix import ScalarMix
from elmo_bench.layers.source import Layers, Sentences, frozen_layers
from elmo_bench.nn.char_cnn import CharCNN
from elmo_bench.nn.numerics import Linear
from elmo_bench.system.errors import UserError
from elmo_bench.task import Batch, Embedded, Head, Tokens
from elmo_bench.text.tokens import sentences_of

POSITIONS = {"none": (), "input": ("input",), "output": ("output",), "both": ("input", "output")}


class Unregistered:
    """Holds a source of layers without registering it as a submodule.

    Args:
        source: frozen, or with a module that is trained with the model.
        trained: a copy of the model (for weight averaging) also copies the source; a frozen source is shared.
    """

    def __init__(self, source: Layers, trained: bool):
        self.source, self.trained = source, trained

    def __deepcopy__(self, memo: dict) -> Unregistered:
        return Unregistered(copy.deepcopy(self.source, memo), True) if self.trained else self


class Elmo(nn.Module):
    """One pass of the biLM or another source, and a separate mix of its layers for the model's input and output.

    A frozen source is not part of checkpoints, optimizer or averaged weights, and `train()` does not affect it.

    Args:
        source: the source of layers, or the cache of a frozen source.
        options: the `elmo:` block of a configuration; `finetune="joint"` trains the source's module too, and saves it
            in checkpoints.
    """

    def __init__(self, source: Layers, options: ElmoConfig):
        super().__init__()
        places, joint = POSITIONS[options.where], options.finetune == "joint"
        if joint and source.module is None:
            raise UserError("elmo.finetune=joint needs the biLM itself: set bilm.cache=false")
        self.bilm = source.module.requires_grad_(True) if joint and source.module is not None else None
        self.held = Unregistered(source, trained=joint)
        if self.bilm is None and source.module is not None:
            source.module.requires_grad_(False).eval()
        mixed = source.n_layers, options.layers, options.gamma, options.layer_norm
        self.mixes = nn.ModuleDict({place: ScalarMix(*mixed) for place in places})
        size = options.projection
        self.projections = nn.ModuleDict({place: Linear(source.width, size) for place in places} if size else {})
        self.dropout = nn.Dropout(options.dropout)
        self.size = size or source.width

    @property
    def source(self) -> Layers:
        return self.held.source

    def _apply(self, fn: Callable, recurse: bool = True) -> Elmo:
        module = self.source.module
        if self.bilm is None and module is not None:  # moves with the model, but keeps its dtype: copies share it
            number = next(module.parameters()).new_empty(0, dtype=torch.long)  # dtype conversions skip integers
            module.to(fn(number).device)
        return super()._apply(fn, recurse)

    @property
    def mix(self) -> dict[str, ScalarMix]:
        """The mix for each place in the model."""
        return {place: mix for place, mix in self.mixes.items() if isinstance(mix, ScalarMix)}

    def penalty(self) -> Tensor:
        """The sum over the places of sum_j w_j^2."""
        return torch.stack([mix.penalty() for mix in self.mix.values()]).sum()

    def forward(self, tokens: Tokens) -> dict[str, Tensor]:
        """ELMo_k for each place, (B, T, E), zero on padding unless projected."""
        if tokens.layers is not None:  # already read from the cache
            layers = tokens.layers.expand()
        elif self.bilm is not None:
            layers = layers_of(self.source.layers, tokens)
        else:  # without autocast, like the cache, because `predict`, which has no cache, must see the same layers
            with torch.autocast(tokens.mask.device.type, enabled=False):
                layers = layers_of(partial(frozen_layers, self.source), tokens)
        layers = layers.to(tokens.mask.device)  # (B, n_layers, T, W)
        layers = next(iter(self.mix.values())).normalised(layers, tokens.mask)  # the same for all places
        vectors = {}
        for place, mix in self.mix.items():
            vector = self.dropout(mix.mixed(layers, tokens.mask))  # (B, T, W)
            vectors[place] = self.projections[place](vector) if self.projections else vector
        return vectors


def layers_of(read: Callable[[Sentences], Tensor], tokens: Tokens) -> Tensor:
    """The layers of every row (B, n_layers, T, W), zero-padded; the parts of a row are read separately, then joined.

    A sentence that occurs several times in a batch (a paragraph of several questions) is read once. Sentences of
    similar length are read together, to save padding.

    Args:
        read: returns the layers of sentences, like `Layers.layers`.
        tokens: the rows.
    """
    if tokens.parts is None:
        return read(tokens.sentences)
    pieces = sentences_of(tokens)
    groups: dict[int, list[tuple[str, ...]]] = {}
    for piece in dict.fromkeys(piece for row in pieces for piece in row):
        groups.setdefault(len(piece).bit_length(), []).append(piece)
    known: dict[tuple[str, ...], Tensor] = {}  # (n_layers, its length, W)
    for group in groups.values():
        layers = read([list(piece) for piece in group])  # (n, n_layers, T', W)
        known |= {piece: one[:, : len(piece)] for piece, one in zip(group, layers, strict=True)}
    rows = [torch.cat([known[piece] for piece in row], dim=1) for row in pieces]  # (n_layers, length, W) each
    return torch.stack([F.pad(row, (0, 0, 0, tokens.mask.shape[1] - row.shape[1])) for row in rows])


class Representation(nn.Module):
    """Words, the task's characters and ELMo, concatenated.

    Args:
        words: the task's word vectors; None if there are none, or ELMo replaces them.
        chars: the task's own character encoder, (B, T, C) -> (B, T, `output_size`).
        elmo: None for a baseline.
    """

    def __init__(self, words: nn.Embedding | None = None, chars: nn.Module | None = None, elmo: Elmo | None = None):
        super().__init__()
        self.words, self.chars, self.elmo = words, chars, elmo
        places = () if elmo is None else tuple(elmo.mixes)
        width = 0 if elmo is None else elmo.size
        parts = [
            0 if words is None else words.embedding_dim,
            0 if chars is None else int(chars.output_size),  # type: ignore[arg-type]
            width if "input" in places else 0,
        ]
        self.own_size = sum(parts[:2])  # of x_k, the first part of x
        self.input_size = sum(parts)  # D
        self.elmo_size = width if "output" in places else 0  # E
        if not self.input_size:
            raise UserError("the model has no input: no words, no characters and no ELMo at the input")

    def look_up(self, texts: Mapping[str, Tokens]) -> dict[str, Tensor]:
        """The word vectors (B, T, words) of each text field; in one look-up, since its gradient is a whole table."""
        if self.words is None:
            return {}
        ids = [tokens.words for tokens in texts.values()]
        vectors = self.words(torch.cat([each.flatten() for each in ids])).split([each.numel() for each in ids])
        return {name: part.unflatten(0, each.shape) for name, part, each in zip(texts, vectors, ids, strict=True)}

    def forward(self, tokens: Tokens, words: Tensor | None = None) -> Embedded:
        """[x_k ; ELMo_k] of shape (B, T, D), and ELMo_k for the output, (B, T, E).

        Args:
            tokens: the words of one text field.
            words: their word vectors, if they are looked up already.
        """
        elmo = {} if self.elmo is None else self.elmo(tokens)
        parts = []
        if self.words is not None:
            parts.append(self.words(tokens.words) if words is None else words)  # (B, T, words)
        if self.chars is not None:
            own = type(self.chars).forward is not CharCNN.forward  # a configuration file may name a user's own module
            known = () if own else (tokens.places,)
            parts.append(self.chars(tokens.chars, *known))  # (B, T, characters)
        if "input" in elmo:
            parts.append(elmo["input"])
        return Embedded(torch.cat(parts, dim=-1), elmo.get("output"), tokens.mask)


class Model(nn.Module):
    """[x_k ; ELMo_k] of every text (paper, section 3.3), and the head over it.

    Args:
        representation: makes an `Embedded` for each text field.
        head: the task's model, its loss and its decoding.
    """

    def __init__(self, representation: Representation, head: Head):
        super().__init__()
        self.representation, self.head = representation, head

    def forward(self, batch: Batch) -> Any:
        """The head's scores; their `loss` is None if the batch has no labels."""
        words = self.representation.look_up(batch.texts)
        texts: dict[str, Embedded] = {
            name: self.representation(tokens, words.get(name)) for name, tokens in batch.texts.items()
        }
        return self.head(texts, batch)
