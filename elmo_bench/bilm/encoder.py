"""The context-free token encoder: characters -> convolutions -> highways -> projection (paper, section 3.4).

Character ids are those of the released biLMs (bilm-tf's `UnicodeCharsVocabulary`): a token becomes its UTF-8 bytes
between a begin and an end mark, truncated and padded to a fixed length. Every id is shifted by one, so that 0 can mean
"no token".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from elmo_bench.bilm.options import Options
from elmo_bench.nn.char_cnn import largest
from elmo_bench.nn.numerics import Linear

BOS, EOS = 256, 257  # begin and end of sentence: tokens of one "character"
WORD_BEGIN, WORD_END, PADDING = 258, 259, 260
N_CHARACTERS = 262  # 0 (masking) and 261 shifted ids

SENTENCE_BEGIN, SENTENCE_END = "<S>", "</S>"  # the release's names; a token with this spelling is read as the mark
MARKS = {SENTENCE_BEGIN: BOS, SENTENCE_END: EOS}


def character_table(tokens: Iterable[str], length: int = 50) -> np.ndarray:
    """Ids of tokens.

    Args:
        tokens: any strings; characters that UTF-8 cannot encode (lone surrogates) are left out, as in the release.
        length: ids per token, including marks and padding.

    Returns:
        (n, length) int16, never 0.
    """
    tokens = list(tokens)
    encoded = [b"?" if token in MARKS else token.encode("utf-8", "ignore")[: length - 2] for token in tokens]
    lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
    rows = np.repeat(np.arange(len(encoded)), lengths)
    places = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # within the token
    ids = np.full((len(encoded), length), PADDING + 1, dtype=np.int16)
    ids[:, 0] = WORD_BEGIN + 1
    ids[rows, 1 + places] = np.frombuffer(b"".join(encoded), dtype=np.uint8).astype(np.int16) + 1
    ids[np.arange(len(encoded)), 1 + lengths] = WORD_END + 1
    for row, token in enumerate(tokens):
        if token in MARKS:
            ids[row, 1] = MARKS[token] + 1
    return ids


def used_characters(ids: np.ndarray) -> np.ndarray:
    """(n,) number of ids in each row that are not padding, including marks."""
    return (ids != PADDING + 1).sum(axis=1)


class SkipInitialValues(TorchFunctionMode):
    """Draws no random initial values: on "meta", torch would import its compiler for them, which takes a second."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        return None if function is nn.init.normal_ else function(*args, **(kwargs or {}))


class Highway(nn.Module):
    """g * relu(W_transform x) + (1 - g) * x with g = sigmoid(W_carry x).

    The release calls g "carry" although it gates the transform; we keep its names.
    """

    def __init__(self, size: int):
        super().__init__()
        self.transform = Linear(size, size)
        self.carry = Linear(size, size)
        nn.init.normal_(self.transform.weight, std=size**-0.5)
        nn.init.normal_(self.carry.weight, std=size**-0.5)
        nn.init.zeros_(self.transform.bias)
        nn.init.constant_(self.carry.bias, -2.0)  # starts close to the identity, as in the release

    def forward(self, x: Tensor) -> Tensor:
        gate = torch.sigmoid(self.carry(x))  # (N, F)
        return x + gate * (F.relu(self.transform(x)) - x)  # (N, F)


class TokenEncoder(nn.Module):
    """Token vectors from characters only; every distinct word needs to be encoded only once."""

    def __init__(self, options: Options):
        super().__init__()
        self.options = options
        cnn, size = options.char_cnn, options.lstm.projection_dim
        self.characters = nn.Embedding(N_CHARACTERS, cnn.embedding.dim)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(cnn.embedding.dim, number, kernel_size=width) for width, number in cnn.filters
        )
        self.highways = nn.ModuleList(Highway(cnn.n_filters) for _ in range(cnn.n_highway))
        projects = cnn.n_filters != size  # as in bilm-tf: no projection for equal widths
        self.projection = Linear(cnn.n_filters, size) if projects else nn.Identity()
        self.activation = F.relu if cnn.activation == "relu" else torch.tanh
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.characters.weight, -1.0, 1.0)
        for convolution in self.convolutions:
            assert isinstance(convolution, nn.Conv1d)
            assert convolution.bias is not None
            nn.init.uniform_(convolution.weight, -0.05, 0.05)
            nn.init.zeros_(convolution.bias)
        if isinstance(self.projection, nn.Linear):
            nn.init.normal_(self.projection.weight, std=self.options.char_cnn.n_filters**-0.5)
            nn.init.zeros_(self.projection.bias)

    def forward(self, *groups: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        """Encodes words.

        Args:
            groups: (n, K) character ids of words; K may differ between groups. Columns of padding only may be cut, as
                long as `padding_columns()` of them remain (so that the maximum still includes a window of padding
                only).
            dtype: of the matrix products (bfloat16 in training); default: that of the parameters.

        Returns:
            (N, P) token vectors, the groups one after another.
        """
        dtype = dtype or self.characters.weight.dtype
        with torch.autocast(groups[0].device.type, dtype=dtype, enabled=dtype == torch.bfloat16):
            x = torch.cat([self._convolve(ids) for ids in groups])  # (N, F)
            for highway in self.highways:
                x = highway(x)
            return self.projection(x)

    def _convolve(self, ids: Tensor) -> Tensor:
        """(n, K) -> (n, F): every filter's maximum over the windows of a word, including one window of padding only."""
        used = (ids != PADDING + 1).sum(1)  # (n,)
        places = [(0, (used + 1).clamp(max=ids.shape[1] - w + 1)) for w, _ in self.options.char_cnn.filters]
        return self.activation(largest(self.characters(ids), self.convolutions, places))

    def words(self, words: Sequence[str]) -> Tensor:
        """(N, P) token vectors, with gradients; ids are cut to the longest word."""
        table = character_table(words, self.options.char_cnn.max_characters_per_token)
        width = int(used_characters(table).max()) + self.padding_columns()
        return self(torch.from_numpy(table[:, :width]).long().to(self.characters.weight.device))

    def padding_columns(self) -> int:
        """Columns of padding to keep when ids are cut: the widest filter needs one window of padding only."""
        return max(width for width, _ in self.options.char_cnn.filters)
