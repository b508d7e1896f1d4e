"""Words to layers: the speed of `BiLM.encode`, beside a reference, with products in bf16, on a busy machine."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from statistics import median
from timeit import timeit
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.characters import SENTENCE_BEGIN, SENTENCE_END, character_table
from elmo_bench.bilm.kernels import checked
from elmo_bench.bilm.lstm import ProjectedLSTM
from elmo_bench.nn.recurrent import FORGET_BIAS
from elmo_bench.speed.bound import batch_flops
from elmo_bench.speed.inputs import Sentence

BATCH = 32
CLOSE = 1e-4  # largest difference between two orders of summation, at the original size

Batch = Sequence[Sentence]
Encode = Callable[[Batch], list[Tensor]]


def batches_of(sentences: Sequence[Sentence]) -> list[Batch]:
    """Consecutive batches; a last incomplete one is left out."""
    return [sentences[i : i + BATCH] for i in range(0, len(sentences) - BATCH + 1, BATCH)]


def speed(bilm: BiLM, batches: Sequence[Batch], rounds: int) -> dict[str, Any]:
    """Speed from words to layers in four ways, alternating on each batch so that the machine's load affects all alike.

    "reference" is `reference`, "encode" ours with no token vectors remembered, "plain" the same
    without the compiled functions, and "known" ours with all token vectors of the batch remembered, which shows the
    LSTMs alone. Medians over the rounds; the reference, several times as slow as all else, has one. "encode" at its
    best is for the comparison with the best product. Tokens are words of the sentences, without the marks around
    them.
    """
    plain = without_kernels(bilm)

    ways: dict[str, Encode] = {
        "reference": partial(reference, bilm),
        "plain": partial(_afresh, plain),
        "encode": partial(_afresh, bilm),
        "known": bilm.encode,
    }
    difference = _difference(*(way(batches[0]) for way in ways.values()))  # also a warm-up of each way
    seconds: dict[str, list[list[float]]] = {name: [[] for _ in batches] for name in ways}
    for _ in range(rounds):
        for number, batch in enumerate(batches):
            for name, way in ways.items():
                if name != "reference" or not seconds[name][number]:
                    seconds[name][number].append(_seconds(way, batch))
    tokens = _tokens(batches)
    took = {name: sum(map(median, times)) for name, times in seconds.items()}
    return {
        "tokens": tokens,
        "mflop_a_token": sum(batch_flops(bilm.options, batch) for batch in batches) / tokens / 1e6,
        "tokens_a_second": {name: tokens / total for name, total in took.items()},
        "best_tokens_a_second": tokens / sum(map(min, seconds["encode"])),
        "times_reference": took["reference"] / took["encode"],
        "times_plain": took["plain"] / took["encode"],
        "largest_difference": difference,
    }


def halves(bilm: BiLM, batches: Sequence[Batch], rounds: int) -> dict[str, float] | None:
    """Products in bfloat16: how many times as fast `encode` is as in fp32, alternating on each batch, and how far off.

    None where there are no instructions for them. Where they are slower too, `precision=bf16` stays with fp32.
    """
    if checked.kernels(half=True) is None:
        return None
    half = copy.copy(bilm)
    half.precision = "bf16"
    difference = half.difference(batches[0])  # also a warm-up
    seconds = [[_seconds(_afresh, way, batch) for way in (bilm, half)] for _ in range(rounds) for batch in batches]
    full, halved = map(median, zip(*seconds, strict=True))
    return {"times_fp32": full / halved, "largest_difference": difference}


def threads(bilm: BiLM, batches: Sequence[Batch], rounds: int) -> dict[str, dict[str, float]]:
    """Tokens a second of `encode` with one and two threads, on the machine as it is and beside one busy process.

    All four alternate on each batch; medians.
    """
    before, seconds = torch.get_num_threads(), {place: {1: [], 2: []} for place in ("idle", "busy")}
    try:
        for number, batch in enumerate([batches[0], *list(batches) * rounds]):  # the first one is a warm-up
            for place, rows in seconds.items():
                with _busy_process() if place == "busy" else nullcontext():
                    for count, took in rows.items():
                        torch.set_num_threads(count)
                        took += [_seconds(_afresh, bilm, batch)] if number else []
    finally:
        torch.set_num_threads(before)
    tokens = _tokens(batches) / len(batches)
    return {place: {str(n): tokens / median(took) for n, took in rows.items()} for place, rows in seconds.items()}


@contextmanager
def _busy_process() -> Iterator[None]:
    """Beside it runs a process that computes all the time."""
    code = "print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()


def without_kernels(bilm: BiLM) -> BiLM:
    """A copy of a frozen biLM that computes as with ELMO_BENCH_KERNELS=0."""
    plain = copy.deepcopy(bilm)
    with patch.dict(os.environ, {"ELMO_BENCH_KERNELS": "0"}):
        checked.kernels.cache_clear()
        plain.encode([["a"]])  # chooses its functions
    checked.kernels.cache_clear()
    return plain


def _afresh(bilm: BiLM, batch: Batch) -> list[Tensor]:
    bilm.forget_words()
    return bilm.encode(batch)


def _tokens(batches: Sequence[Batch]) -> int:
    return sum(len(sentence) for batch in batches for sentence in batch)


def _seconds(way: Callable[..., Any], *arguments: Any) -> float:
    return timeit(partial(way, *arguments), number=1)


def _difference(*answers: list[Tensor]) -> float:
    """The largest difference between the first and any other; raises if it exceeds CLOSE."""
    first, *others = answers
    largest = max(float((a - b).abs().max()) for other in others for a, b in zip(first, other, strict=True))
    if not largest < CLOSE or not all(torch.isfinite(layers).all() for layers in first):
        raise RuntimeError(f"two ways to the same layers differ by {largest}")
    return largest


@torch.no_grad()
def reference(bilm: BiLM, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
    """The same as `BiLM.encode` with state "zero", straight from the paper: (L+1, tokens, 2P) for each sentence.

    Nothing is optimised: every token of the padded batch is encoded separately, with all its characters; every step of
    the LSTMs computes every row, whether its sentence has ended or not.
    """
    lengths = torch.tensor([len(sentence) + 2 for sentence in sentences])
    steps = int(lengths.max())
    rows = [[SENTENCE_BEGIN, *s, SENTENCE_END, *[""] * (steps - len(s) - 2)] for s in sentences]
    table = character_table([word for row in rows for word in row], bilm.options.char_cnn.max_characters_per_token)
    token = bilm.encoder(torch.from_numpy(table).long()).unflatten(0, (len(rows), steps))  # (B, T, P)
    forward = _direction(bilm, 0, token)
    turned = _turn(lengths, steps)[:, :, None].expand_as(token)
    backward = [layer.gather(1, turned) for layer in _direction(bilm, 1, token.gather(1, turned))]
    layers = [torch.cat(pair, dim=-1) for pair in zip([token, *forward], [token, *backward], strict=True)]
    stacked = torch.stack(layers)  # (L+1, B, T, 2P)
    return [stacked[:, row, 1 : length - 1] for row, length in enumerate(lengths.tolist())]


def _turn(lengths: Tensor, steps: int) -> Tensor:
    """(B, T) indices that reverse each sequence and leave its padding in place; their own inverse."""
    places = torch.arange(steps)[None]  # (1, T)
    return torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)


def _direction(bilm: BiLM, direction: int, x: Tensor) -> list[Tensor]:
    """(B, T, P) -> the same for every layer."""
    outputs = []
    for number, layer in enumerate(bilm.directions[direction]):  # type: ignore[arg-type]
        out = _lstm(layer, x)
        x = out + x if number and bilm.options.lstm.use_skip_connections else out
        outputs.append(x)
    return outputs


def _lstm(layer: ProjectedLSTM, x: Tensor) -> Tensor:
    cell_clip, proj_clip = layer.clips
    h, c = x.new_zeros(len(x), layer.projection.shape[0]), x.new_zeros(len(x), layer.projection.shape[1])
    outputs = []
    for step in x.unbind(1):  # (B, P)
        i, j, f, o = (F.linear(step, layer.input, layer.bias) + F.linear(h, layer.recurrent)).chunk(4, dim=-1)
        c = torch.sigmoid(f + FORGET_BIAS) * c + torch.sigmoid(i) * torch.tanh(j)
        c = c.clamp(-cell_clip, cell_clip)
        h = F.linear(torch.sigmoid(o) * torch.tanh(c), layer.projection).clamp(-proj_clip, proj_clip)
        outputs.append(h)
    return torch.stack(outputs, dim=1)
