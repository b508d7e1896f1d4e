"""The computation of `TokenEncoder` and `ProjectedLSTM`, optimised for fixed weights.

Three things make it fast: every distinct word is encoded once, with convolutions as matrix products over windows cut to
the lengths of the words; the weights of all products are packed once; and each direction of the LSTMs has its own
thread, because the products of one step are too small for torch to split. If there is a compiler, compiled functions do
all this, with all threads at work on every step; otherwise torch's products do: see `nn/kernels/`.

`ELMO_BENCH_KERNELS=0` turns the compiled functions off. With `precision=bf16` the factors of all products are rounded
to bfloat16, 8 significant bits; sums, states and the functions between the products remain float32. With AMX, products
are then several times as fast; with AVX512-BF16 alone they may not be.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from threading import Lock
from typing import TypeVar

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from elmo_bench.bilm.encoder import Highway, SkipInitialValues, TokenEncoder, character_table, used_characters
from elmo_bench.bilm.lstm import Directions, ProjectedLSTM, State
from elmo_bench.bilm.options import ACTIVATIONS, Options
from elmo_bench.nn.kernels.library import EncoderWeights, Kernels, Linear, Weights, load, most_threads
from elmo_bench.nn.packing import Packing, blocks, on_device
from elmo_bench.nn.recurrent import FORGET_BIAS
from elmo_bench.system.errors import UserError

ROWS = 16  # the fewest rows of a product: for fewer, MKL uses other routines, which add in another order


class FixedLinear:
    """x -> x W^T + b for a frozen weight; on a CPU, a row's result has the same bits whatever the number of rows.

    Args:
        weight: (out, in).
        bias: (out,) or None.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None):
        self.weight, self.bias = weight.detach().contiguous(), None if bias is None else bias.detach()

    def __call__(self, x: Tensor) -> Tensor:
        """(N, in) -> (N, out); N is at least 1."""
        return F.linear(_at_least(x), self.weight, self.bias)[: len(x)]

    def add_to(self, total: Tensor, x: Tensor) -> Tensor:
        """total + x W^T; the bias is not added."""
        return torch.addmm(_at_least(total), _at_least(x), self.weight.t())[: len(x)]


def _at_least(x: Tensor) -> Tensor:
    """(N, D) -> (at least ROWS, D), padded with rows of zeros."""
    return x if len(x) >= ROWS else F.pad(x, (0, 0, 0, ROWS - len(x)))


CHUNK = 128  # words encoded at once by a thread: their intermediate results nearly fit into the second-level cache
LEAST = 16  # the fewest words that are worth a thread
WINDOWS = 8192  # windows of characters that torch processes at once
TILE = 512  # rows per product of torch


class CompiledEncoder:
    """Character ids -> token vectors."""

    def __init__(self, encoder: TokenEncoder, kernels: Kernels):
        self.kernels, self.width = kernels, encoder.options.lstm.projection_dim
        features = encoder.options.char_cnn.n_filters
        missing = -features % (kernels.panel // 2)
        projection, odd = encoder.projection, encoder.options.char_cnn.embedding.dim % 2 if kernels.half else 0
        self.weights = EncoderWeights(
            kernels.factors(encoder.characters.weight).contiguous(),
            list(encoder.options.char_cnn.filters),
            encoder.activation is torch.tanh,
            features,
            features + missing,
            [
                self._packed(F.pad(weight.permute(0, 2, 1), (0, odd)).flatten(1), bias)
                for weight, bias in map(_linear, encoder.convolutions)
            ],
            [self._highway(*_highway(highway), missing) for highway in encoder.highways],
            [
                self._packed(F.pad(weight, (0, missing)), bias)
                for weight, bias in ([_linear(projection)] if isinstance(projection, nn.Linear) else [])
            ],
        )

    def _highway(self, transform: Linear, carry: Linear, missing: int) -> Linear:
        parts = transform, carry
        weight = self._in_turn([F.pad(weight, (0, missing, 0, missing)) for weight, _ in parts])
        return self._packed(weight, self._in_turn([F.pad(bias, (0, missing)) for _, bias in parts]))

    def _in_turn(self, parts: list[Tensor]) -> Tensor:
        """Transform and carry, alternating half panels."""
        halves = [part.unflatten(0, (-1, self.kernels.panel // 2)) for part in parts]
        return torch.stack(halves, dim=1).flatten(0, 2)

    def _packed(self, weight: Tensor, bias: Tensor) -> Linear:
        return self.kernels.packed(weight), F.pad(bias.detach(), (0, -len(bias) % self.kernels.panel)).contiguous()

    def __call__(self, table: np.ndarray, used: np.ndarray) -> Tensor:
        """(U, K) ids and (U,) numbers of characters that are not padding -> (U, P)."""
        threads = max(1, min(most_threads(), len(table) // LEAST))
        ids, lengths = (torch.from_numpy(array.astype(np.int32)) for array in (table, used))
        return self.kernels.encode(ids, lengths, self.weights, CHUNK, threads)[:, : self.width]


class PlainEncoder:
    """Character ids -> token vectors by torch's products."""

    def __init__(self, encoder: TokenEncoder):
        self.widths, self.numbers = zip(*encoder.options.char_cnn.filters, strict=True)
        self.activation, self.padding = encoder.activation, encoder.padding_columns()
        self.embedding, projection = encoder.characters.weight.detach(), encoder.projection
        convolutions = [_linear(convolution) for convolution in encoder.convolutions]
        self.convolutions = [  # (number, width * char_dim)
            FixedLinear(weight.permute(0, 2, 1).flatten(1), bias) for weight, bias in convolutions
        ]
        self.highways = [  # transform and carry in one product: (2F, F)
            FixedLinear(*(torch.cat(both) for both in zip(*_highway(highway), strict=True)))
            for highway in encoder.highways
        ]
        self.project = FixedLinear(*_linear(projection)) if isinstance(projection, nn.Linear) else None

    def __call__(self, table: np.ndarray, used: np.ndarray) -> Tensor:
        """(U, K) ids and (U,) numbers of characters that are not padding -> (U, P)."""
        order = np.argsort(used, kind="stable")
        features = self.embedding.new_empty(len(table), sum(self.numbers))
        for group in _groups(used[order], self.padding):
            rows = order[group]
            width = int(used[rows].max()) + self.padding
            ids = torch.from_numpy(table[rows, :width].astype(np.int64)).to(features.device)
            maxima = self._maxima(F.embedding(ids, self.embedding))
            features[torch.from_numpy(rows).to(features.device)] = self.activation(maxima)
        return torch.cat([self._highways(tile) for tile in features.split(TILE)])

    def _highways(self, x: Tensor) -> Tensor:
        """(n, F) -> (n, P)."""
        for highway in self.highways:
            transform, carry = highway(x).chunk(2, dim=-1)
            x = torch.lerp(x, transform.relu_(), carry.sigmoid_())
        return x if self.project is None else self.project(x)

    def _maxima(self, x: Tensor) -> Tensor:
        """(n, K, char_dim) -> (n, F): each window is one row of a product, TILE rows at a time."""
        n, length, dim = x.shape
        pooled = x.new_empty(n, sum(self.numbers))
        for width, product, maxima in zip(
            self.widths, self.convolutions, pooled.split(self.numbers, dim=1), strict=True
        ):
            places = length - width + 1
            windows = x.as_strided((n, places, width * dim), (length * dim, dim, 1))
            words = max(TILE // places, 1)  # per tile
            for start in range(0, n, words):
                some = windows[start : start + words]
                out = product(some.flatten(0, 1))  # (words * places, number)
                torch.amax(out.view(len(some), places, -1), dim=1, out=maxima[start : start + words])
        return pooled


def _groups(lengths: np.ndarray, padding: int) -> Iterator[slice]:
    """Runs of words of similar length (ascending), with at most WINDOWS windows in total."""
    start = 0
    for i, length in enumerate(lengths):
        if length > lengths[start] + 4 or (i - start + 1) * (length + padding) > WINDOWS:
            yield slice(start, i)
            start = i
    if len(lengths):
        yield slice(start, len(lengths))


def _highway(highway: nn.Module) -> tuple[Linear, Linear]:
    assert isinstance(highway, Highway)
    return _linear(highway.transform), _linear(highway.carry)


def _linear(layer: nn.Module) -> Linear:
    assert isinstance(layer, nn.Linear | nn.Conv1d)
    assert layer.bias is not None
    return layer.weight.detach(), layer.bias.detach()


class CompiledDirections:
    """Called like `Directions`, but without gradients; both directions use all of torch's threads."""

    def __init__(self, stacks: Sequence[Iterable[ProjectedLSTM]], skip: bool, kernels: Kernels):
        layers = [layer for layers in stacks for layer in layers]
        self.kernels, self.skip, self.clips = kernels, skip, layers[0].clips
        self.width, self.cells = layers[0].projection.shape
        # Padding that fills the last panel of outputs and the last vector of cells; always zero.
        self.padding = -self.width % kernels.panel, -self.cells % kernels.step
        self.weights = [self._weights(layer) for layer in layers]

    @torch.no_grad()
    def _weights(self, layer: ProjectedLSTM) -> Weights:
        width, cells = self.padding
        bias = layer.bias.clone()
        bias[2 * self.cells : 3 * self.cells] += FORGET_BIAS
        return Weights(
            self.kernels.packed(self._sorted(F.pad(layer.input, (0, width)))),
            self._sorted(bias[:, None])[:, 0].contiguous(),
            self.kernels.packed(self._sorted(F.pad(layer.recurrent, (0, width)))),
            self.kernels.packed(F.pad(layer.projection, (0, cells, 0, width))),
        )

    def _sorted(self, weight: Tensor) -> Tensor:
        """(4C, n) in the gate order i, j, f, o -> for each vector of cells its gates in the order i, f, o, j."""
        missing, lanes = -self.cells % self.kernels.step, self.kernels.lanes
        i, j, f, o = (F.pad(gate, (0, 0, 0, missing)).unflatten(0, (-1, lanes)) for gate in weight.chunk(4))
        return torch.stack([i, f, o, j], dim=1).flatten(0, 2)

    def __call__(self, token: Tensor, packing: Packing, starts: State) -> tuple[Tensor, State]:
        h, c = (  # copies, because they are overwritten
            F.pad(part, (0, missing)).clone(memory_format=torch.contiguous_format)
            for part, missing in zip(starts, self.padding, strict=True)
        )
        inside, width = packing.inside, self.width + self.padding[0]
        places = inside.new_full((len(token),), -1)
        places[inside] = torch.arange(len(inside))
        order = torch.stack([order for order, _ in packing.orders])
        layers = token.new_empty(len(inside), h.shape[1] + 1, 2, width)
        if self.padding[0]:
            token = F.pad(token, (0, self.padding[0]))
        layers[:, 0] = token.index_select(0, inside)[:, None]
        self.kernels.lstm(
            token, order, places[order], torch.tensor(packing.batch_sizes), self.weights, self.clips, self.skip, h, c,
            layers, most_threads(),
        )  # fmt: skip
        return layers[..., : self.width].flatten(2), State(h[..., : self.width], c[..., : self.cells])


class FrozenLSTM:
    """One direction of one layer, as `Directions` calls it."""

    def __init__(self, layer: ProjectedLSTM):
        with torch.no_grad():
            i, j, f, o = layer.bias.chunk(4)
            self.input = FixedLinear(self._sorted(layer.input), torch.cat([i, f + FORGET_BIAS, o, j]))
            self.recurrent = FixedLinear(self._sorted(layer.recurrent))
            self.projection = FixedLinear(layer.projection)
        self.cell_clip, self.proj_clip = layer.clips
        self.dim = layer.projection.shape[1]

    @staticmethod
    def _sorted(weight: Tensor) -> Tensor:
        """Gates i, j, f, o -> i, f, o, j: the three sigmoids side by side."""
        i, j, f, o = weight.chunk(4)
        return torch.cat([i, f, o, j])

    def __call__(self, x: Tensor, batch_sizes: Sequence[int], state: State) -> tuple[Tensor, State]:
        output = x.new_empty(len(x), state.h.shape[1])
        h_last, c_last = torch.empty_like(state.h), torch.empty_like(state.c)
        (h, c), running, done = state, len(state.h), 0
        for block in blocks(batch_sizes, x.device):
            products, start = self.input(x[done : done + sum(block)]), 0  # (rows, 4C)
            for n in block:
                h_last[n:running], c_last[n:running] = h[n:], c[n:]  # these ended at the previous step
                h, c = self._step(products[start : start + n], h[:n], c[:n])
                output[done : done + n] = h
                running, start, done = n, start + n, done + n
        h_last[:running], c_last[:running] = h, c
        return output, State(h_last, c_last)

    def _step(self, gates: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        gates = self.recurrent.add_to(gates, h)  # (n, 4C)
        i, f, o = gates[:, : 3 * self.dim].sigmoid_().chunk(3, dim=-1)
        c = torch.addcmul(i * gates[:, 3 * self.dim :].tanh_(), f, c).clamp_(-self.cell_clip, self.cell_clip)
        h = self.projection(torch.tanh(c).mul_(o)).clamp_(-self.proj_clip, self.proj_clip)
        return h, c


PRECISIONS = ("fp32", "bf16")
M = TypeVar("M", bound=nn.Module)
# Numbers of filters, cells and outputs that are no multiples of the vector width.
LSTM = {"dim": 40, "projection_dim": 24, "cell_clip": 0.5, "proj_clip": 0.2, "use_skip_connections": True}
CNN = {"embedding": {"dim": 8}, "filters": [[1, 8], [2, 70], [7, 20]], "n_highway": 1}
NEAR, NEAR_HALF = 1e-5, 0.02  # largest difference from torch that the check accepts, in float32 and in bfloat16


@cache
def kernels(half: bool = False) -> Kernels | None:
    """The compiled functions; None without a compiler, if they are turned off, or if their results are wrong.

    Args:
        half: those that multiply in bfloat16; also None if the processor or the compiler has no instructions for it.
    """
    found, near = load(half), NEAR_HALF if half else NEAR
    return found if found and all(difference < near for difference in differences(found)) else None


def granted(asked: str) -> str:
    """The precision to compute in: "bf16" if requested and supported; if unsupported, one line on stderr says why."""
    if asked not in PRECISIONS:
        raise UserError(f"precision is {asked!r}; known: {', '.join(PRECISIONS)}")
    if asked == "bf16" and kernels(half=True) is None:
        why = "no instructions for bfloat16 (AMX or AVX512-BF16), or no compiler that knows them"
        print(f"precision=bf16: {why}; computing in fp32", file=sys.stderr)
        return "fp32"
    return asked


def differences(kernels: Kernels) -> Iterator[float]:
    """The largest difference of each function from torch's results, on small random input."""
    draws = torch.Generator().manual_seed(0)  # torch's global generator may belong to a training in another thread

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=draws).float()

    with torch.no_grad():
        for activation in ACTIVATIONS:
            options = Options.parse({"lstm": LSTM, "char_cnn": CNN | {"activation": activation}})
            encoder = _drawn(partial(TokenEncoder, options), 0.1, draws)
            ids, used = torch.randint(1, 262, (4, 50), generator=draws), torch.tensor([3, 6, 13, 50])
            ids[torch.arange(50) >= used[:, None]] = 261
            encoders = CompiledEncoder(encoder, kernels), PlainEncoder(encoder)
            yield _apart(*(way(ids.numpy(), used.numpy()) for way in encoders))
        sizes = [LSTM[key] for key in ("projection_dim", "dim", "projection_dim", "cell_clip", "proj_clip")]
        stacks = [[_drawn(partial(ProjectedLSTM, *sizes), 1.0, draws) for _ in range(2)] for _ in range(2)]
        token, packing = drawn(23, 24), Packing([4, 2, 2, 4, 3, 2, 2, 2, 2])
        starts = State(drawn(2, 2, 9, 24), drawn(2, 2, 9, 40))
        plain = Directions([map(FrozenLSTM, layers) for layers in stacks], True)
        ways = CompiledDirections(stacks, True, kernels), plain
        (layers, ends), (there, there_ends) = (way(token, packing, starts) for way in ways)
        yield _apart(layers, there)
        yield from map(_apart, ends, there_ends)


def _drawn(make: Callable[[], M], deviation: float, draws: torch.Generator) -> M:
    """A module in float32, whatever torch's default, with random parameters; `deviation` is that of its biases."""
    with torch.device("meta"), SkipInitialValues():
        module = make()
    parameters = {
        name: torch.empty(each.shape, dtype=torch.float32).normal_(
            std=deviation if each.dim() == 1 else each.shape[1:].numel() ** -0.5, generator=draws
        )
        for name, each in module.named_parameters()
    }
    # `to_empty` of a module on "meta" would import sympy, which takes a second.
    module.load_state_dict(parameters, assign=True)
    return module


def _apart(a: Tensor, b: Tensor) -> float:
    return float((a - b).abs().max())


REMEMBERED_WORDS = 16384  # token vectors kept between batches
WORDS = 2048  # words encoded at once


def for_weight(weight: Tensor, half: bool) -> Kernels | None:
    """The compiled functions, if there are any for this weight: float32 on a CPU."""
    return kernels(half) if weight.device.type == "cpu" and weight.dtype == torch.float32 else None


class FrozenEncoder:
    """Words -> token vectors; each distinct word is computed once and remembered, up to a limit.

    Args:
        encoder: its modules.
        half: multiply in bfloat16 if the compiled functions can.
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
