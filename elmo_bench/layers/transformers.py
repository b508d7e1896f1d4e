"""The hidden states of a local Hugging Face model as layers: `bilm=transformers bilm.path=FOLDER`.

Needs the extra `transformers`. Nothing is downloaded or unpickled, and no code in the folder is run.
Words are split into the model's word pieces, and long sentences into windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from elmo_bench.configuration.keys import valid
from elmo_bench.layers import model_folder
from elmo_bench.layers.source import Sentences
from elmo_bench.nn.packing import budgeted, padded
from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.places import expanded

Pieces = list[int]  # the pieces of one word


class Window(NamedTuple):
    """One input of a model: a sentence, or a part of a long one.

    Attributes:
        ids: all pieces, including the tokenizer's special tokens around them.
        starts: the position of each word's first piece in `ids`.
        counts: the number of pieces of each word, at least 1.
    """

    ids: list[int]
    starts: list[int]
    counts: list[int]


class WordPieces:
    """A tokenizer's pieces of single words.

    Every word has at least one piece: a word for which the tokenizer gives no piece (empty, or only control characters)
    is read as the unknown piece, or as "?" if the tokenizer has no unknown piece.

    Args:
        tokenizer: a fast one of `transformers`.
        limit: maximum number of pieces, special tokens included, that the model reads at once; None: no limit.
    """

    def __init__(self, tokenizer: Any, limit: int | None):
        self.tokenizer = tokenizer
        sample = tokenizer([["a"]], is_split_into_words=True)
        ids = sample["input_ids"][0]
        inside = [place for place, word in enumerate(sample.word_ids(0)) if word is not None]
        if not inside:
            raise UserError("the tokenizer has no piece for the letter a, nor an unknown piece")
        self.before, self.after = ids[: inside[0]], ids[inside[-1] + 1 :]  # special tokens
        self.room = None if limit is None else limit - len(self.before) - len(self.after)
        if self.room is not None and self.room < 1:
            raise UserError(f"the model reads at most {limit} pieces, which leaves no room beside its special tokens")
        unknown = tokenizer.unk_token_id
        self.unknown: Pieces = [unknown] if unknown is not None else self._encode(["?"])[0][:1]

    def windows(self, sentences: Sentences) -> list[list[Window]]:
        """The windows of each sentence: one, or the fewest possible for a sentence beyond the limit.

        A sentence is cut between words, without overlap; only a word that is longer than a window loses its last
        pieces. An empty sentence has no window.
        """
        words = list(dict.fromkeys(word for sentence in sentences for word in sentence))
        pieces = dict(zip(words, self._encode(words), strict=True))
        return [list(self._windows([pieces[word] for word in sentence])) for sentence in sentences]

    def _encode(self, words: Sequence[str]) -> list[Pieces]:
        """The pieces of each word, without special tokens."""
        if not words:
            return []
        texts = [[word.encode("utf-8", "replace").decode()] for word in words]  # a lone surrogate becomes "?"
        encoded = self.tokenizer(texts, is_split_into_words=True, add_special_tokens=False, verbose=False)["input_ids"]
        return [ids or self.unknown for ids in encoded]

    def _windows(self, words: Sequence[Pieces]) -> Iterator[Window]:
        chosen: list[Pieces] = []
        size = 0
        for pieces in words:
            pieces = pieces[: self.room]
            if self.room is not None and size + len(pieces) > self.room:
                yield self._window(chosen)
                chosen, size = [], 0
            chosen.append(pieces)
            size += len(pieces)
        if chosen:
            yield self._window(chosen)

    def _window(self, words: Sequence[Pieces]) -> Window:
        ids, starts = list(self.before), []
        for pieces in words:
            starts.append(len(ids))
            ids += pieces
        return Window(ids + self.after, starts, [len(pieces) for pieces in words])


def pool(hidden: Tensor, starts: Tensor, counts: Tensor, pooling: str) -> Tensor:
    """The vectors of words from the vectors of their pieces.

    Args:
        hidden: (L, P, W), all layers of all pieces.
        starts: (N,) position in P of each word's first piece; the others follow it.
        counts: (N,) number of pieces of each word.
        pooling: "first" takes the first piece's vector; "mean" the mean over the word's pieces.

    Returns:
        (L, N, W).
    """
    vectors = hidden[:, starts]
    if pooling == "first":
        return vectors
    for k in range(1, int(counts.max())):  # each word at most once per iteration: the order of the sums is fixed
        longer = (counts > k).nonzero().squeeze(1)  # (n,)
        vectors = vectors.index_add(1, longer, hidden[:, starts[longer] + k])
    return vectors / counts[:, None]


POOLINGS = ("first", "mean")


class TransformersLayers:
    """All hidden states of a model, its word pieces pooled to words.

    The tokenizer adds its special tokens around every sentence; their vectors are left out. Words are tokenized one by
    one, as if after a space. A word without any piece is read as the unknown piece, and a sentence longer than the
    model's maximum is read in several windows (`WordPieces`). Of an encoder-decoder model (T5, BART), only the encoder
    is used.

    Args:
        path: a folder written by `save_pretrained` of model and tokenizer, with the weights as safetensors.
        pooling: "first" takes the vector of a word's first piece, "mean" the mean over its pieces.
        token_budget: maximum number of pieces, padding included, that the model reads at once; limits the working
            memory, and changes the layers only by rounding.

    Attributes:
        n_layers: the embedding layer and the hidden layers; layer 0 is the model's `hidden_states[0]`.
        width: the model's hidden size.
        sha256: a digest of the folder's configuration, weights and tokenizer.
    """

    cacheable = True
    doubled_first_layer = False

    def __init__(self, path: StrPath, pooling: str = "first", token_budget: int = 4096):
        valid(Literal[*POOLINGS], pooling, "bilm.pooling")
        self.path, self.pooling, self.token_budget = expanded(path), pooling, token_budget
        self.sha256 = model_folder.sha256(self.path)
        self.module: Any = load_model(self.path)
        tokenizer = load_tokenizer(self.path)
        self.padding: int = tokenizer.pad_token_id or 0
        try:
            if (size := len(tokenizer)) > (known := self.module.get_input_embeddings().num_embeddings):
                raise UserError(f"the tokenizer has {size} pieces, the model {known}; do they belong together?")
            self.pieces = WordPieces(tokenizer, longest(self.module, tokenizer))
            with torch.no_grad():
                states = self._hidden_states(self.pieces.windows([["a"]])[0])  # (n_layers, 1, S, W)
        except UserError as error:
            raise UserError(error.message, self.path) from None
        except Exception as error:  # models for other kinds of input fail in many ways
            raise UserError(f"this model gives no hidden states for text ({error})", self.path) from error
        self.n_layers, self.width = states.shape[0], states.shape[-1]

    @property
    def settings(self) -> dict[str, Any]:
        return {"source": "transformers", "pooling": self.pooling}

    def layers(self, sentences: Sentences) -> Tensor:
        """(B, n_layers, T, W) float32 on the model's device, zero-padded, with gradients if the parameters require
        them.

        The rest of the batch changes a sentence's vectors only by rounding (padding is masked).
        """
        return padded(self._run(sentences), [len(sentence) for sentence in sentences])

    @torch.no_grad()
    def batches(self, sentences: Sentences) -> Iterator[tuple[list[int], Tensor]]:
        """Indices and (n_layers, their words, W), longest sentences first."""
        for indices in budgeted([len(sentence) for sentence in sentences], self.token_budget, padded=True):
            yield indices, self._run([sentences[i] for i in indices])

    def _run(self, sentences: Sentences) -> Tensor:
        """(n_layers, N, W) for the N words of the sentences, one sentence after another."""
        if any(isinstance(sentence, str) for sentence in sentences):
            raise TypeError("a sentence is a list of tokens, not a string; split it first")
        with torch.autocast(self._device.type, enabled=False):
            if torch.is_grad_enabled() and any(p.requires_grad for p in self.module.parameters()):
                return self._compute(sentences)
            with torch.inference_mode(False), torch.no_grad():  # if a model keeps tensors, they must be ordinary ones
                return self._compute(sentences)

    def _compute(self, sentences: Sentences) -> Tensor:
        windows = [window for windows in self.pieces.windows(sentences) for window in windows]
        if not windows:
            return torch.zeros(self.n_layers, 0, self.width, device=self._device)
        vectors: list[Tensor] = [torch.empty(0)] * len(windows)
        for indices in budgeted([len(window.ids) for window in windows], self.token_budget, padded=True):
            chosen = [windows[i] for i in indices]
            pieces = self._words(chosen).split([len(window.starts) for window in chosen], dim=1)
            for i, piece in zip(indices, pieces, strict=True):
                vectors[i] = piece
        return torch.cat(vectors, dim=1)

    def _words(self, windows: Sequence[Window]) -> Tensor:
        """(n_layers, N, W) for the N words of the windows."""
        hidden = self._hidden_states(windows)  # (n_layers, B, S, W)
        row = hidden.shape[2]
        starts = [row * number + start for number, window in enumerate(windows) for start in window.starts]
        counts = [count for window in windows for count in window.counts]
        places = torch.tensor([starts, counts], device=hidden.device)  # (2, N)
        return pool(hidden.flatten(1, 2), places[0], places[1], self.pooling)

    def _hidden_states(self, windows: Sequence[Window]) -> Tensor:
        """(n_layers, B, S, W), S the number of pieces in the longest window."""
        size = max(len(window.ids) for window in windows)
        ids = [window.ids + [self.padding] * (size - len(window.ids)) for window in windows]
        mask = [[1] * len(window.ids) + [0] * (size - len(window.ids)) for window in windows]
        inputs, attention_mask = torch.tensor([ids, mask], device=self._device)  # (B, S) each
        answer = self.module(input_ids=inputs, attention_mask=attention_mask, output_hidden_states=True)
        return torch.stack(answer.hidden_states).float()

    @property
    def _device(self) -> torch.device:
        return next(self.module.parameters()).device


def load_model(path: Path) -> Any:
    """The frozen model of a folder in float32, without a task's head."""
    library = _library()
    try:
        model, report = library.AutoModel.from_pretrained(
            path, local_files_only=True, use_safetensors=True, trust_remote_code=False, dtype=torch.float32,
            output_loading_info=True,
        )  # fmt: skip
    except Exception as error:  # the library's errors have no common base class
        raise UserError(f"not a model that transformers can load ({_first_line(error)})", path) from error
    if missing := sorted(name for name in report["missing_keys"] if "pooler" not in name):  # a pooler is not used
        raise UserError(f"the weights lack {missing[0]!r}; do they belong to this config.json?", path)
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    if broken := next((name for name, value in model.named_parameters() if not torch.isfinite(value).all()), None):
        raise UserError(f"{broken!r} contains values that are not finite; the file is damaged", path)
    return model.requires_grad_(False).eval()


def load_tokenizer(path: Path) -> Any:
    """The fast tokenizer of a folder, for words given one by one."""
    library = _library()
    try:
        tokenizer = library.AutoTokenizer.from_pretrained(
            path, local_files_only=True, trust_remote_code=False, use_fast=True, add_prefix_space=True
        )
    except Exception as error:
        raise UserError(f"not a tokenizer that transformers can load ({_first_line(error)})", path) from error
    if not tokenizer.is_fast:
        raise UserError("has no fast tokenizer (tokenizer.json), which is needed to map pieces to words", path)
    return tokenizer


def longest(model: Any, tokenizer: Any) -> int | None:
    """Maximum number of pieces that a model reads at once; None without a limit."""
    positions = getattr(model.config, "max_position_embeddings", None)  # not every model has it
    bounds = [tokenizer.model_max_length]  # a huge number if the tokenizer has no limit
    if positions and positions > 0:
        # RoBERTa's first position comes after its padding index
        tables = (part for part in model.modules() if isinstance(part, nn.Embedding))
        indices = (table.padding_idx for table in tables if table.num_embeddings == positions)
        bounds.append(positions - max((index + 1 for index in indices if index is not None), default=0))
    return min(bounds) if min(bounds) < 10**9 else None


def _library() -> ModuleType:
    """`transformers`, with its progress bars and logs off."""
    try:
        import transformers
    except ImportError as error:
        raise UserError("bilm=transformers needs an extra: pip install 'elmo_bench[transformers]'") from error
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    return transformers


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
