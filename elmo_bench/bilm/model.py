"""The biLM: words in, all L+1 layers out, with a choice of initial LSTM state (paper, section 3.1).

Layer 0 is the context-free token vector, repeated in both halves; layers 1..L are [forward ; backward]. A sentence is
put between the marks `<S>` and `</S>`, whose own vectors are not returned.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.bilm.card import check_files, files_of
from elmo_bench.bilm.encoder import SENTENCE_BEGIN, SENTENCE_END, SkipInitialValues, TokenEncoder
from elmo_bench.bilm.frozen import CompiledDirections, FrozenEncoder, frozen_directions, granted
from elmo_bench.bilm.lstm import Directions, ProjectedLSTM, State
from elmo_bench.bilm.options import Options
from elmo_bench.bilm.weights import export_weights, load_weights
from elmo_bench.nn.kernels.library import copied, torch_alone
from elmo_bench.nn.numerics import uncompiled
from elmo_bench.nn.packing import Packing, budgeted, on_device, padded
from elmo_bench.system.errors import UserError, explained
from elmo_bench.system.storage.hashing import sha256

SMALLER = "lower token_budget (with state=carry: give fewer sentences at a time), or split long sentences"
STATES = ("zero", "warm", "carry")
TOKENS, DEVICE_TOKENS = 2048, 16384  # computed at once: few enough for a CPU's cache, and enough to keep a GPU busy
BREAKS = 8  # sentence breaks after which the state between sentences no longer changes


class BiLM(nn.Module):
    """A bidirectional language model with the released architecture; called like `layers`.

    Weights may change between two calls: by `load_state_dict`, an optimiser, or in place under `torch.no_grad()`.
    Writes to a parameter's `.data` may go unnoticed: the vectors are then those of the earlier weights.

    Args:
        options: the sizes.
        state: the initial state of every sentence. "zero": zeros. "warm": the state after eight empty sentences.
            "carry": the final state of the same row of the previous batch, as in the release; only with it do the
            vectors of a sentence depend on earlier sentences.
        token_budget: tokens (including marks) that `encode` computes at once; limits its working memory. None: `TOKENS`
            on a CPU, `DEVICE_TOKENS` elsewhere.

    Attributes:
        precision: the type of products without gradients on a CPU: "fp32", or "bf16" (see `frozen.py`).
    """

    precision = "fp32"

    def __init__(self, options: Options, state: str = "warm", token_budget: int | None = None):
        super().__init__()
        if not isinstance(options, Options):
            raise UserError(
                f'BiLM({options!r}) has no weights: BiLM.from_files("options.json", "weights.hdf5") opens files, and '
                'BiLM.open("open") a biLM by its name or its folder'
            )
        if state not in STATES:
            raise UserError(f"state is {state!r}; known: {', '.join(STATES)}")
        self.options, self.state, self.token_budget = options, state, token_budget
        self.weights_path: Path | None = None
        self.encoder = TokenEncoder(options)
        lstm = options.lstm
        sizes = lstm.projection_dim, lstm.dim, lstm.projection_dim, lstm.cell_clip, lstm.proj_clip
        self.directions = nn.ModuleList(
            nn.ModuleList(ProjectedLSTM(*sizes) for _ in range(lstm.n_layers)) for _ in range(2)
        )
        self._frozen: tuple[tuple, FrozenEncoder, Directions | CompiledDirections] | None = None
        self._steady: tuple[tuple, State] | None = None
        self._carried: State | None = None
        self._trainings = 0  # passes with gradients: after one, an optimiser may have changed the weights

    @classmethod
    def from_files(
        cls,
        options: str | PathLike[str],
        weights: str | PathLike[str],
        state: str = "warm",
        token_budget: int | None = None,
        precision: str = "fp32",
    ) -> BiLM:
        """A frozen biLM from options.json and weights (official HDF5 or our safetensors).

        If the processor lacks bfloat16, `precision` "bf16" becomes "fp32", and one line says so.
        """
        usable = granted(precision)
        digests = check_files(options, weights)
        with torch.inference_mode(False):
            # sizes only: nothing is allocated before the file is known to match
            with torch.device("meta"), SkipInitialValues():
                bilm = cls(Options.read(options), state, token_budget)
            load_weights(bilm, bilm.options, weights)
        bilm.precision, bilm.weights_path = usable, Path(weights)
        if bilm.weights_path in digests:
            bilm.sha256 = digests[bilm.weights_path]
        return bilm.requires_grad_(False).eval()

    @classmethod
    def open(cls, name: str | PathLike[str] = "open", state: str = "warm") -> BiLM:
        """A frozen biLM by its name or its folder: `BiLM.open("open").encode([["Ida", "sang"]])`.

        Args:
            name: "open" (trained on 74 million tokens of open text) or "mini", which come with the project; or a folder
                with an options file and weights in the official layout, such as one that `pretrain` wrote; or
                "owner/name" of such a model on the Hugging Face hub.
            state: the initial state of every sentence: "warm", "zero" or "carry" (see `BiLM`).
        """
        if not isinstance(name, str | PathLike):
            raise UserError(f'{name!r} is not a biLM: give "open", "mini" or the path of a folder')
        return cls.from_files(*files_of(name), state)

    @property
    def width(self) -> int:
        """2P, width of the vectors of every layer."""
        return 2 * self.options.lstm.projection_dim

    @property
    def n_layers(self) -> int:
        """L + 1: the token layer and the LSTM layers."""
        return self.options.lstm.n_layers + 1

    @cached_property
    def sha256(self) -> str | None:
        """Digest of the weights file; None for a biLM not made from a file."""
        return None if self.weights_path is None else sha256(self.weights_path)

    def export(
        self,
        options: str | PathLike[str],
        weights: str | PathLike[str],
        dtype: torch.dtype = torch.float32,
    ) -> None:
        """Writes options.json and weights, in the official format (.hdf5) or ours (.safetensors).

        Args:
            options, weights: the files.
            dtype: of the numbers in the file.
        """
        self.options.write(options)
        export_weights(self, self.options, weights, dtype)

    @uncompiled
    @torch.no_grad()
    def encode(self, sentences: Iterable[Sequence[str]]) -> list[Tensor]:
        """All layers of sentences.

        Args:
            sentences: token lists; with state "carry" one batch, whose row k continues row k of the previous call.

        Returns:
            A float32 tensor (L+1, tokens, 2P) for each sentence, in the order given.
        """
        sentences = _listed(sentences)
        answers: list[Tensor] = [torch.empty(0)] * len(sentences)
        for indices, layers in self.batches(sentences):
            for i, piece in zip(indices, layers.split([len(sentences[i]) for i in indices], dim=1), strict=True):
                answers[i] = copied(piece.float())  # (L+1, tokens, 2P), free of its batch
        return answers

    @torch.no_grad()
    def batches(self, sentences: Sequence[Sequence[str]]) -> Iterator[tuple[list[int], Tensor]]:
        """The work of `encode`, batch by batch, longest sentences first: indices and (L+1, their tokens, 2P)."""
        if self.state == "carry":  # row k must stay row k, so the batch is used as given
            if sentences:
                yield list(range(len(sentences))), self._whole(sentences)
            return
        lengths = [len(sentence) + 2 for sentence in sentences]
        budget = self.token_budget or (TOKENS if self._device.type == "cpu" else DEVICE_TOKENS)
        for indices in budgeted(lengths, budget):
            yield indices, self._whole([sentences[i] for i in indices])

    def _whole(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """`_run`, with a one-line error if memory runs out."""
        tokens = sum(map(len, sentences))
        with explained(lambda: f"computing layers of {len(sentences)} sentences, {tokens} tokens", SMALLER):
            return self._run(sentences)

    @uncompiled
    def layers(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """All layers as one zero-padded batch, with gradients if the parameters require them.

        Returns:
            (B, L+1, T, 2P) on the module's device, T the longest sentence.
        """
        sentences = _listed(sentences)
        return padded(self._run(sentences), [len(sentence) for sentence in sentences])

    def forward(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """The same as `layers`."""
        return self.layers(sentences)

    def difference(self, sentences: Sequence[Sequence[str]]) -> float:
        """The largest difference of the layers of some sentences from the same layers in fp32."""
        answers = []
        for precision in (self.precision, "fp32"):
            bilm = copy.copy(self)  # with the same weights
            bilm.precision, bilm._carried = precision, None
            answers.append(bilm.encode(sentences))
        pairs = zip(*answers, strict=True)
        return max((float((a - b).abs().max()) for a, b in pairs if a.numel()), default=0.0)

    def reset_state(self) -> None:
        """Drops the state that "carry" has kept: the next batch starts from zeros."""
        self._carried = None

    def forget_words(self) -> None:
        """Drops the token vectors kept between batches, so that the next batch computes all of its own."""
        if self._frozen is not None:
            self._frozen[1].forget()

    # One batch: sentence by sentence outside, packed inside (see `Packing`).

    def _run(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """(L+1, N, 2P) float32 for the N words of the batch, one sentence after another."""
        if not sentences:
            return self.encoder.characters.weight.new_zeros(self.n_layers, 0, self.width)
        with torch.autocast(self._device.type, enabled=False):
            if self._trained():
                layers = self._compute(sentences)
                self._trainings += 1
                return layers
            with torch.inference_mode(False), torch.no_grad():  # tensors kept between calls must be ordinary ones
                compiled = isinstance(self._functions(prepared=True)[1], CompiledDirections)
                with torch_alone() if compiled else nullcontext():
                    return self._compute(sentences)

    def _trained(self) -> bool:
        return torch.is_grad_enabled() and any(p.requires_grad for p in self.parameters())

    def _compute(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        packing = Packing([len(sentence) + 2 for sentence in sentences], self._device)
        ids: dict[str, int] = {}
        marked = (word for sentence in sentences for word in (SENTENCE_BEGIN, *sentence, SENTENCE_END))
        index = np.fromiter((ids.setdefault(word, len(ids)) for word in marked), np.int64)  # (N + 2B,)
        vectors, directions = self._functions(prepared=not self._trained())
        token = vectors(list(ids))[on_device(index, self._device)]  # (N + 2B, P)
        layers, ends = directions(token, packing, self._starts(packing))
        if self.state == "carry":
            assert self._carried is not None
            for kept, end in zip(self._carried, ends, strict=True):
                kept[:, :, packing.rows] = end.detach().to(kept.dtype)
        return layers.transpose(0, 1)

    def _functions(self, prepared: bool) -> tuple[Callable[[list[str]], Tensor], Directions | CompiledDirections]:
        """The token encoder and LSTM layers to run: the modules themselves, or optimised (`prepared`)."""
        skip = self.options.lstm.use_skip_connections
        if not prepared:
            return self.encoder.words, Directions(self.directions, skip)  # type: ignore[arg-type]
        version = self._weights_version()
        if self._frozen is None or self._frozen[0] != version:
            half = self.precision == "bf16"
            directions = frozen_directions(self.directions, skip, half)  # type: ignore[arg-type]
            self._frozen = version, FrozenEncoder(self.encoder, half), directions
        return self._frozen[1], self._frozen[2]

    def _starts(self, packing: Packing) -> State:
        """States before the first step, rows in packed order."""
        rows = len(packing.rows)
        if self.state == "warm":
            return State(*(x.expand(-1, -1, rows, -1) for x in self._warm()))
        if self.state == "zero":
            return self.zeros(rows)
        carried = self._carried or self.zeros(rows)  # rows beyond this batch keep their states
        missing = max(0, rows - carried.h.shape[2])
        self._carried = State(*(F.pad(x, (0, 0, 0, missing)) for x in carried))
        return State(*(x.index_select(2, packing.rows) for x in self._carried))

    def zeros(self, rows: int) -> State:
        """Zero states of this many sequences, of the weights' type, whatever torch's default."""
        zeros, lstm = self.encoder.characters.weight.new_zeros, self.options.lstm
        return State(*(zeros(2, lstm.n_layers, rows, size) for size in (lstm.projection_dim, lstm.dim)))

    @torch.no_grad()
    def _warm(self) -> State:
        """The state after eight empty sentences from zeros, one row; it changes only with the weights."""
        version = self._weights_version()
        if self._steady is None or self._steady[0] != version:
            vectors, directions = self._functions(prepared=not any(p.requires_grad for p in self.parameters()))
            marks = vectors([SENTENCE_BEGIN, SENTENCE_END])  # (2, P)
            packing, states = Packing([2], self._device), self.zeros(1)
            for _ in range(BREAKS):
                states = directions(marks, packing, states)[1]
            self._steady = version, states
        return self._steady[1]

    @property
    def _device(self) -> torch.device:
        return self.encoder.characters.weight.device

    def _weights_version(self) -> tuple:
        """Changes whenever a parameter is replaced or written to, and after a pass with gradients.

        The latter because torch's fused optimisers change parameters without changing their `_version`. Writes through
        `.data` go unnoticed.
        """
        written = ((p.data_ptr(), 0 if p.is_inference() else p._version) for p in self.parameters())
        return self.precision, self._trainings, *written

    def _apply(self, fn: Callable, recurse: bool = True) -> BiLM:
        """For `to`, `half` and the like: moves the state that "carry" keeps; caches are rebuilt."""
        self._frozen = self._steady = None
        if self._carried is not None:
            self._carried = State(*map(fn, self._carried))
        return super()._apply(fn, recurse)

    def __getstate__(self) -> dict:
        """For copies and other processes: leaves out caches that cannot be copied and are rebuilt from the weights."""
        return {**self.__dict__, "_frozen": None, "_steady": None}


def _listed(sentences: Any) -> list[list[str]]:
    """Sentences as lists of words. Raises `UserError` for anything else, such as texts not split into words."""
    found = []
    for number, sentence in enumerate(sentences if isinstance(sentences, Iterable) else [sentences]):
        several = isinstance(sentence, Iterable) and not isinstance(sentence, str)
        words = list(sentence) if several else [sentence]
        if not several or not all(isinstance(word, str) for word in words):
            raise UserError(f'sentences[{number}] is not a list of words; split texts first, as in [["Ida", "sang"]]')
        found.append(words)
    return found
