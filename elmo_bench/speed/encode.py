"""Words to layers: the speed of `BiLM.encode`, beside a reference, with products in bf16, on a busy machine."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.benchmark.utils.common import set_torch_threads

from elmo_bench.bilm import BiLM, frozen
from elmo_bench.bilm.encoder import SENTENCE_BEGIN, SENTENCE_END, character_table
from elmo_bench.nn.recurrent import FORGET_BIAS
from elmo_bench.speed.measuring import Sentence, batch_flops, best_product, in_turn

BATCH = 32
CLOSE = 1e-4  # largest difference between two orders of summation, at the original size
HALF_CLOSE = 0.05  # with products in bfloat16
THREADS = 1, 2

Batch = Sequence[Sentence]
Encode = Callable[[Batch], list[Tensor]]


def speed(size: str, bilm: BiLM, batches: Sequence[Batch], rounds: int) -> list[dict[str, Any]]:
    """Compares the ways from words to layers, alternating on each batch.

    "reference" is `reference`, "encode" ours without remembered token vectors, "torch alone" the same without the
    compiled functions, and "words known" ours with all token vectors of the batch remembered, which shows the LSTMs
    alone; "bf16" has products in bfloat16, if the processor has instructions for them. One and two threads are also
    measured beside a process that computes without a pause.

    Returns:
        For each way: tokens a second (words without sentence marks), by the medians of the rounds; its speed relative
        to the reference; its best share of the bound; the largest difference of a layer from the reference.

    Raises:
        RuntimeError: a way computes other layers.
    """
    best = best_product()
    half = copy.copy(bilm)
    half.precision = "bf16"
    encode = partial(afresh, bilm)
    with _busy_process() as busy:
        ways: dict[str, Encode] = {
            "reference": partial(reference, bilm),
            "torch alone": partial(afresh, without_kernels(bilm)),
            "encode": encode,
            "words known": bilm.encode,
            **({"bf16": partial(afresh, half)} if frozen.kernels(half=True) else {}),
            **{f"threads: {n}": partial(_with_threads, n, None, encode) for n in THREADS},
            **{f"threads: {n}, busy": partial(_with_threads, n, busy, encode) for n in THREADS},
        }
        answers = {name: torch.cat(way(batches[0]), dim=1) for name, way in ways.items()}  # also warms up each way
        differences = {name: float((answer - answers["reference"]).abs().max()) for name, answer in answers.items()}
        wrong = {name: far for name, far in differences.items() if not far < (HALF_CLOSE if name == "bf16" else CLOSE)}
        if wrong:
            raise RuntimeError(f"the layers differ from those of the reference: {wrong}")
        taken = [in_turn({name: partial(way, batch) for name, way in ways.items()}, rounds) for batch in batches]
    tokens = sum(len(sentence) for batch in batches for sentence in batch)
    work = sum(batch_flops(bilm.options, batch) for batch in batches)
    best = max(best, best_product())
    seconds = {name: sum(median(each[name]) for each in taken) for name in ways}
    return [
        {
            "size": size,
            "way": name,
            "tokens_a_second": tokens / seconds[name],
            "times_reference": seconds["reference"] / seconds[name],
            "share_of_bound": work / sum(min(each[name]) for each in taken) / best,
            "difference": differences[name],
            "mflop_a_token": work / tokens / 1e6,
            "best_gflops": best / 1e9,
        }
        for name in ways
    ]


@contextmanager
def _busy_process() -> Iterator[subprocess.Popen]:
    """A process that computes without a pause; stopped (SIGSTOP) until it is needed."""
    code = "print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        try:
            yield process
        finally:
            process.kill()


def _with_threads(number: int, busy: subprocess.Popen | None, way: Encode, batch: Batch) -> list[Tensor]:
    """The layers of a batch, computed on this many threads beside the busy process, if there is one."""
    with set_torch_threads(number):
        if busy is None:
            return way(batch)
        busy.send_signal(signal.SIGCONT)
        try:
            return way(batch)
        finally:
            busy.send_signal(signal.SIGSTOP)


def without_kernels(bilm: BiLM) -> BiLM:
    """A copy of a frozen biLM that computes as with ELMO_BENCH_KERNELS=0."""
    plain = copy.deepcopy(bilm)
    with patch.dict(os.environ, {"ELMO_BENCH_KERNELS": "0"}):
        frozen.kernels.cache_clear()
        plain.encode([["a"]])  # chooses its functions
    frozen.kernels.cache_clear()
    return plain


def afresh(bilm: BiLM, batch: Batch) -> list[Tensor]:
    """The layers of a batch, without remembered token vectors."""
    bilm.forget_words()
    return bilm.encode(batch)


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
    places = torch.arange(steps)[None]  # (1, T)
    # (B, T) indices that reverse each sequence but not its padding; their own inverse
    turned = torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)
    turned = turned[:, :, None].expand_as(token)
    backward = [layer.gather(1, turned) for layer in _direction(bilm, 1, token.gather(1, turned))]
    layers = [torch.cat(pair, dim=-1) for pair in zip([token, *forward], [token, *backward], strict=True)]
    stacked = torch.stack(layers)  # (L+1, B, T, 2P)
    return [stacked[:, row, 1 : length - 1] for row, length in enumerate(lengths.tolist())]


def _direction(bilm: BiLM, direction: int, x: Tensor) -> list[Tensor]:
    """(B, T, P) -> the same for every layer."""
    layers = []
    for number, layer in enumerate(bilm.directions[direction]):  # type: ignore[arg-type]
        cell_clip, proj_clip = layer.clips
        h, c = (x.new_zeros(len(x), size) for size in layer.projection.shape)
        outputs = []
        for step in x.unbind(1):  # (B, P)
            i, j, f, o = (F.linear(step, layer.input, layer.bias) + F.linear(h, layer.recurrent)).chunk(4, dim=-1)
            c = torch.sigmoid(f + FORGET_BIAS) * c + torch.sigmoid(i) * torch.tanh(j)
            c = c.clamp(-cell_clip, cell_clip)
            h = F.linear(torch.sigmoid(o) * torch.tanh(c), layer.projection).clamp(-proj_clip, proj_clip)
            outputs.append(h)
        out = torch.stack(outputs, dim=1)
        x = out + x if number and bilm.options.lstm.use_skip_connections else out
        layers.append(x)
    return layers
