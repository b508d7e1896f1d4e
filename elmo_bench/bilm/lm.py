"""The bidirectional language model objective (paper, section 3.1): training chunks, sampled and full softmax.

Token encoder and softmax are shared by both directions; the LSTMs are separate. The training loss normalises over a
sample of the vocabulary, the perplexity over all of it, so that the two are not comparable.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from elmo_bench.bilm.card import check_files
from elmo_bench.bilm.corpus import UNKNOWN, Corpus, Stream
from elmo_bench.bilm.encoder import TokenEncoder, character_table, used_characters
from elmo_bench.bilm.lstm import State
from elmo_bench.bilm.model import BiLM
from elmo_bench.nn.numerics import product
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.files import open_text

FARTHEST = 700  # nats; their exponential is finite


class Chunk(NamedTuple):
    """The next T steps of B rows of one direction."""

    inputs: np.ndarray  # (B, T) word types
    targets: Tensor  # (T * B,) int64 vocabulary ids, time-major as the LSTM's packed rows


def chunks(stream: Stream, rows: int, steps: int, first: int = 0, rest: bool = False) -> Iterator[Chunk]:
    """The chunks of a stream cut into `rows` parallel pieces, `steps` at a time, starting with chunk number `first`.

    With `rest`, the remainder at the end is a shorter chunk; otherwise it is dropped.
    """
    length = len(stream.inputs) // rows
    inputs, targets = (array[: rows * length].reshape(rows, length) for array in stream)
    for start in range(first * steps, length - (0 if rest else steps - 1), steps):
        piece = np.ascontiguousarray(targets[:, start : start + steps].T).reshape(-1)
        yield Chunk(inputs[:, start : start + steps], torch.from_numpy(piece).long())


class Words(NamedTuple):
    """The distinct words of some inputs."""

    characters: list[Tensor]  # groups of words, each (n, K) character ids
    indices: list[Tensor]  # of each input, (B, T) int64 into the words of all groups


class WordTypes:
    """Character ids of every word type of a corpus, one table for all chunks."""

    def __init__(self, types: list[str], encoder: TokenEncoder):
        self.ids = character_table(types, encoder.options.char_cnn.max_characters_per_token)  # (types, K)
        self.used = used_characters(self.ids)
        self.padding = encoder.padding_columns()

    def distinct(self, *inputs: np.ndarray, groups: int = 3) -> Words:
        """The distinct types of the inputs, which are (B, T) each.

        The types are sorted by length into groups, each cut to its longest, which saves time on short words.
        """
        types, index = np.unique(np.concatenate([x.reshape(-1) for x in inputs]), return_inverse=True)
        order = np.argsort(self.used[types], kind="stable")
        types, index = types[order], np.argsort(order)[index]
        tables = []
        for part in np.array_split(types, min(groups, len(types))):
            width = min(self.ids.shape[1], int(self.used[part].max()) + self.padding)
            tables.append(torch.from_numpy(self.ids[part, :width]).long())
        pieces = np.split(index, np.cumsum([x.size for x in inputs])[:-1])
        return Words(tables, [torch.from_numpy(p.reshape(x.shape)) for p, x in zip(pieces, inputs, strict=True)])


class Negatives(NamedTuple):
    """A sample of the vocabulary without repetition, with the log of the expected count of each id."""

    ids: Tensor  # (K,) int64
    log_expected: Tensor  # (K,)
    tries: int

    @classmethod
    def draw(cls, number: int, vocabulary: int, generator: np.random.Generator) -> Negatives:
        """Draws log-uniformly over ids sorted by frequency, as the release's sampled softmax did."""
        tries, sample = 0, np.zeros(0, dtype=np.int64)
        while len(sample) < number:
            drawn = np.exp(generator.random(4 * number) * math.log(vocabulary + 1)).astype(np.int64) - 1
            drawn = np.concatenate([sample, np.minimum(drawn, vocabulary - 1)])
            place = np.empty(vocabulary, dtype=np.int64)
            place[drawn[::-1]] = np.arange(len(drawn))[::-1]  # each id's first position, since it is written last
            first = np.flatnonzero(place[drawn] == np.arange(len(drawn)))
            tries += int(first[number - 1]) + 1 - len(sample) if len(first) >= number else 4 * number
            sample = drawn[first[:number]]
        ids = torch.from_numpy(sample)
        return cls(ids, log_expected(ids, vocabulary, tries), tries)


def log_expected(ids: Tensor, vocabulary: int, tries: int) -> Tensor:
    """log(1 - (1 - p)^tries) for the log-uniform p of each id; float32, the shape of `ids`."""
    p = torch.log1p(1.0 / (ids.double() + 1)) / math.log(vocabulary + 1)
    return torch.log(-torch.expm1(tries * torch.log1p(-p))).float()


def sampled_nll(
    h: Tensor, rows: Tensor, biases: Tensor, targets: Tensor, log_targets: Tensor, negatives: Tensor, log_sample: Tensor
) -> Tensor:
    """Mean negative log-likelihood under sampled softmax.

    Args:
        h: (N, P) outputs of the top layer; their dtype is that of the products.
        rows, biases: (R, P) and (R,), from the softmax.
        targets, negatives: (N,) and (K,) positions among the rows, the negatives all different; a negative that equals
            a word's target is masked for that word.
        log_targets, log_sample: log expected counts of targets and negatives.
    """
    return _SampledNll.apply(h, rows, biases, targets, log_targets, negatives, log_sample)  # type: ignore[return-value]


LOWEST = -1e30  # the score of a masked negative, whose probability is 0
WORDS = 256  # words scored at once, so that their scores of all negatives stay in the cache


class _SampledNll(torch.autograd.Function):
    """Scores, log-sum-exp and its gradient, some words at a time; `forward` already computes the gradient."""

    @staticmethod
    def forward(
        ctx: Any, h: Tensor, rows: Tensor, biases: Tensor, targets: Tensor, log_targets: Tensor, negatives: Tensor,
        log_sample: Tensor,
    ) -> Tensor:  # fmt: skip
        n, others = len(h), rows.index_select(0, negatives).to(h.dtype)  # (K, P), faster than rows[...]
        right = rows.index_select(0, targets).float()  # (N, P)
        true = (h.float() * right).sum(1) + biases[targets] - log_targets  # (N,)
        correction = biases[negatives] - log_sample  # (K,)
        place = torch.full((len(rows),), -1, device=h.device).index_copy_(
            0, negatives, torch.arange(len(negatives), device=h.device)
        )
        masked = place[targets]  # (N,) the negative that is the word's target, or -1
        to_h, to_others = torch.empty_like(right), right.new_zeros(right.shape[1], len(others))
        to_bias, to_true, losses = torch.zeros_like(correction), torch.empty_like(true), torch.empty_like(true)
        for first in range(0, n, WORDS):
            here = slice(first, min(first + WORDS, n))
            words = h[here]
            scores = product(words, others.t()).float().add_(correction)  # (n, K)
            at, hit = masked[here, None].clamp(min=0), masked[here, None] >= 0  # (n, 1)
            scores.scatter_(1, at, scores.gather(1, at).masked_fill(hit, LOWEST))
            most, scores = scores.amax(1), torch.softmax(scores, 1)
            all_others = most - scores.amax(1).log()  # (n,) log-sum-exp of the negatives
            together = torch.logaddexp(all_others, true[here])
            losses[here] = together - true[here]
            scale = (all_others - together).exp() / n
            to_true[here] = torch.expm1(true[here] - together) / n
            exact = scores.to(h.dtype)
            to_h[here] = product(exact, others).float() * scale[:, None]
            to_others += product((words * scale[:, None].to(h.dtype)).t(), exact)
            to_bias.addmv_(scores.t(), scale)
        to_h.addcmul_(to_true[:, None], right)
        given = right.new_empty(n + len(others), right.shape[1])  # in parts: `cat` is slow with transposed ones
        torch.mul(h.float(), to_true[:, None], out=given[:n])
        given[n:] = to_others.t()
        at = torch.cat([targets, negatives])
        to_rows = torch.ops.aten.embedding_dense_backward(given, at, len(rows), -1, False)
        to_biases = torch.zeros_like(biases).index_add_(0, at, torch.cat([to_true, to_bias]))
        ctx.save_for_backward(to_h.to(h.dtype), to_rows, to_biases)
        return losses.mean()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return *(gradients[0].to(part.dtype) * part for part in ctx.saved_tensors), None, None, None, None


class BidirectionalLM(nn.Module):
    """A biLM with its softmax.

    Args:
        bilm: the model to train and export.
        vocabulary: number of words of the softmax, which are sorted by frequency.
        dtype: of the matrix products in training; bfloat16 halves their time if the processor supports it.
    """

    def __init__(self, bilm: BiLM, vocabulary: int, dtype: torch.dtype = torch.float32):
        super().__init__()
        self.bilm = bilm
        self.dtype = dtype
        self.softmax = nn.Embedding(vocabulary, bilm.options.lstm.projection_dim, sparse=True)
        self.softmax_bias = nn.Embedding(vocabulary, 1, sparse=True)
        nn.init.normal_(self.softmax.weight, std=bilm.options.lstm.projection_dim**-0.5)
        nn.init.zeros_(self.softmax_bias.weight)

    def outputs(
        self,
        words: Words,
        states: State,
        dtype: torch.dtype = torch.float32,
        drop: Callable[[Tensor], Tensor] = lambda x: x,
    ) -> Tensor:
        """Top-layer outputs of both directions, (2, T * B, P); updates `states` in place.

        Args:
            words: the input of the directions.
            states: the states of both directions' layers.
            dtype: of the matrix products.
            drop: dropout as in the release: on every layer's input, also when a residual connection adds it, and on
                the output.
        """
        device = self.softmax.weight.device
        vectors = self.bilm.encoder(*(table.to(device) for table in words.characters), dtype=dtype).to(dtype)  # (U, P)
        rows, steps = words.indices[0].shape
        places = torch.stack([index.t().reshape(-1) for index in words.indices])  # (2, T * B)
        h = F.embedding(places.to(device), vectors)  # (2, T * B, P)
        directions = [list(layers.children()) for layers in self.bilm.directions]
        for number, layers in enumerate(zip(*directions, strict=True)):
            h, outputs = drop(h), []
            for direction, (layer, x) in enumerate(zip(layers, h, strict=True)):
                start = State(*(part[direction, number].clone() for part in states))
                output, end = layer(x, [rows] * steps, start)
                outputs.append(output)
                for part, last in zip(states, end, strict=True):
                    part[direction, number] = last
            out = torch.stack(outputs)
            h = out + h if number and self.bilm.options.lstm.use_skip_connections else out
        return drop(h)

    @torch.no_grad()
    def perplexity(
        self, corpus: Corpus, vocabulary: list[str], rows: int = 32, steps: int = 32, name: str = "the text"
    ) -> dict[str, Any]:
        """Full-softmax perplexities of a held-out text, given the true history; unknown words count as `<UNK>`.

        The text is read in `rows` parallel pieces with carried state, as in training, on the softmax's device.

        Returns:
            forward, backward, and mean, the average of the two as in the paper (section 3.4); tokens, the number of
            predictions of each direction, including sentence ends; unknown_words, the number of words of the text that
            the vocabulary lacks; pieces, the mean negative log-likelihoods of each piece in nats, forward and backward,
            for intervals of the perplexities.
        """
        streams = corpus.streams(vocabulary)
        rows = max(1, min(rows, len(streams[0].inputs) // (4 * steps)))
        types = WordTypes(corpus.types, self.bilm.encoder)
        states, totals, count = self.bilm.zeros(rows), np.zeros((2, rows)), 0
        for pair in zip(*(chunks(stream, rows, steps, rest=True) for stream in streams), strict=True):
            words = types.distinct(*(chunk.inputs for chunk in pair))
            for direction, h in enumerate(self.outputs(words, states)):
                logits = h @ self.softmax.weight.t() + self.softmax_bias.weight.t()  # (N, V)
                targets = pair[direction].targets.to(logits.device)
                lost = F.cross_entropy(logits, targets, reduction="none").view(-1, rows)  # (T, rows)
                totals[direction] += lost.double().sum(0).cpu().numpy()
            count += pair[0].targets.numel()
        pieces = totals * rows / count  # all pieces have the same length
        nats = pieces.mean(1)  # (2,)
        if not nats.max() < FARTHEST:
            remedy = "if it was trained here, lower the learning rate"
            raise UserError(f"the biLM has no finite perplexity on {name}; {remedy}")
        forward, backward = map(math.exp, nats)
        return {
            "forward": forward,
            "backward": backward,
            "mean": (forward + backward) / 2,
            "tokens": count,
            "unknown_words": corpus.unknown(vocabulary)[0],
            "pieces": pieces.round(6).tolist(),
        }


def load_lm(folder: Path) -> tuple[BidirectionalLM, list[str]]:
    """A biLM with its softmax, and the vocabulary, from a folder that `pretrain` wrote; raises as `read_lm` does."""
    return read_lm(folder / "options.json", folder / "weights.hdf5")


def read_lm(options: Path, weights: Path) -> tuple[BidirectionalLM, list[str]]:
    """A biLM with its softmax, and the vocabulary; both lie beside the weights."""
    path, vocabulary = softmax_files(weights.parent)
    check_files(vocabulary, path)
    bilm = BiLM.from_files(options, weights, state="carry")
    words = read_vocabulary(vocabulary)
    lm = BidirectionalLM(bilm, len(words))
    limits.regular(path)
    try:
        softmax = load_file(path)
        lm.softmax.load_state_dict({"weight": softmax["weight"]})
        lm.softmax_bias.load_state_dict({"weight": softmax["bias"][:, None]})
    except (OSError, SafetensorError, KeyError, IndexError, RuntimeError) as error:
        raise UserError(f"not the softmax of this biLM and vocabulary ({error})", path) from None
    if not all(part.weight.isfinite().all() for part in (lm.softmax, lm.softmax_bias)):
        raise UserError("the softmax has values that are not finite; the file is damaged", path)
    return lm, words


def read_vocabulary(path: Path, size: int | None = None) -> list[str]:
    """The words of a softmax, one per line."""
    with open_text(path) as lines:
        words = list(filter(None, map(str.strip, lines)))
    if UNKNOWN not in words:
        raise UserError(f"no line {UNKNOWN}; a vocabulary for the softmax needs one", path)
    if size is not None and (twice := next((word for word, n in Counter(words).items() if n > 1), None)):
        raise UserError(f"the word {twice!r} occurs twice; a vocabulary has each word once", path)
    if size is not None and len(words) != size:
        raise UserError(f"{len(words)} words, but recipe.vocabulary={size}; set recipe.vocabulary={len(words)}", path)
    return words


def softmax_files(folder: Path) -> tuple[Path, Path]:
    """The softmax and its vocabulary beside a biLM's weights."""
    return folder / "softmax.safetensors", folder / "vocabulary.txt"


def has_softmax(folder: Path) -> bool:
    """Whether there is a softmax, or a part of one, beside a biLM's weights; the official files have none."""
    return any(path.exists() for path in softmax_files(folder))
