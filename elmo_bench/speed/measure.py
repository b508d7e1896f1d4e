"""The measurements; each returns a dictionary of numbers."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from elmo_bench.bilm import BiLM
from elmo_bench.kernels import checked
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.speed import cases, reading, reference
from elmo_bench.speed.flops import batch_flops
from elmo_bench.speed.text import Sentence

BATCH = 32
CLOSE = 1e-4  # largest difference between two orders of summation, at the original size

Batch = Sequence[Sentence]
Encode = Callable[[Batch], list[Tensor]]


def batches_of(sentences: Sequence[Sentence], size: int = BATCH) -> list[Batch]:
    """Consecutive batches; a last incomplete one is left out."""
    return [sentences[i : i + size] for i in range(0, len(sentences) - size + 1, size)]


def speed(bilm: BiLM, batches: Sequence[Sequence[Sentence]], rounds: int) -> dict[str, Any]:
    """Speed from words to layers in four ways, alternating on each batch so that the machine's load affects all alike.

    "reference" is the unoptimised implementation, "encode" ours with no token vectors remembered, "plain" the same
    without the compiled functions, and "known" ours with all token vectors of the batch remembered, which shows the
    LSTMs alone. Medians over the rounds; the reference, several times as slow as all else, has one. "encode" at its
    best is for the comparison with the best product. Tokens are words of the sentences, without the marks around
    them.
    """
    plain = without_kernels(bilm)

    ways: dict[str, Encode] = {
        "reference": lambda batch: reference.encode(bilm, batch),
        "plain": lambda batch: _afresh(plain, batch),
        "encode": lambda batch: _afresh(bilm, batch),
        "known": bilm.encode,
    }
    difference = _difference(*(way(batches[0]) for way in ways.values()))  # also a warm-up of each way
    seconds: dict[str, list[list[float]]] = {name: [[] for _ in batches] for name in ways}
    for _ in range(rounds):
        for number, batch in enumerate(batches):
            for name, way in ways.items():
                if name != "reference" or not seconds[name][number]:
                    seconds[name][number].append(_seconds(way, batch))
    tokens = sum(len(sentence) for batch in batches for sentence in batch)
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
    seconds = [
        [_seconds(lambda batch, way=way: _afresh(way, batch), batch) for way in (bilm, half)]
        for _ in range(rounds)
        for batch in batches
    ]
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
                        took += [_seconds(lambda batch: _afresh(bilm, batch), batch)] if number else []
    finally:
        torch.set_num_threads(before)
    tokens = sum(len(sentence) for batch in batches for sentence in batch) / len(batches)
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


def _afresh(bilm: BiLM, batch: Batch) -> list[Tensor]:
    bilm.forget_words()
    return bilm.encode(batch)


def without_kernels(bilm: BiLM) -> BiLM:
    """A copy of a frozen biLM that computes as with ELMO_BENCH_KERNELS=0."""
    plain = copy.deepcopy(bilm)
    with patch.dict(os.environ, {"ELMO_BENCH_KERNELS": "0"}):
        checked.kernels.cache_clear()
        plain.encode([["a"]])  # chooses its functions
    checked.kernels.cache_clear()
    return plain


def cached(bilm: BiLM, sentences: Sequence[Sentence], folder: Path, rounds: int) -> dict[str, Any]:
    """An epoch over cached layers compared with computing them, in shuffled batches of 32, token vectors remembered."""
    tokens = sum(map(len, sentences))
    writer = ActivationCache(BilmLayers.of(bilm), folder)
    writer.console.quiet = True
    written = _seconds(writer.prepare, sentences)
    order = random.Random(0).sample(sentences, len(sentences))
    batches = batches_of(order, min(BATCH, len(order)))
    reader = ActivationCache(BilmLayers.of(bilm), folder)  # as a later run opens it

    def epoch(layers: Callable[[Batch], Tensor]) -> Callable[[Any], None]:
        def run(_: Any) -> None:
            for batch in batches:
                layers(batch)

        return run

    rows = [[[sentence] for sentence in batch] for batch in batches]
    started = time.perf_counter()
    stored = [reader.read(batch).vectors.numpy() for batch in rows]
    checked = time.perf_counter() - started  # the first reading compares every block with its checksum
    nbytes = sum(numbers.nbytes for numbers in stored)
    plain = _seconds_of(lambda: [numbers.copy() for numbers in stored], rounds)
    ready = _seconds_of(lambda: [reader.read(batch) for batch in rows], rounds)
    computed = _seconds(epoch(bilm.layers), None)
    read = median(_seconds(epoch(reader.layers), None) for _ in range(rounds))
    in_epoch = sum(len(sentence) for batch in batches for sentence in batch)
    return {
        "tokens": tokens,
        "bytes_a_token": sum(file.stat().st_size for file in writer.folder.glob("*.bin")) / tokens,
        "tokens_a_second": {"write": tokens / written, "compute": in_epoch / computed, "read": in_epoch / read},
        "times_computing": computed / read,
        "bytes_a_second": {"copy": nbytes / plain, "read": nbytes / ready, "first": nbytes / checked},
        "share_of_copy": plain / ready,
    }


def memory(options: Path, weights: Path, data_root: Path | None, sentences: int) -> dict[str, Any]:
    """Peak memory, in MiB, of a process that encodes a corpus and of one that encodes a corpus four times as long."""
    peaks = {}
    for number in (sentences, 4 * sentences):
        command = [sys.executable, "-m", "elmo_bench.speed.memory", str(options), str(weights), str(number)]
        done = subprocess.run([*command, str(data_root or "")], capture_output=True, text=True, check=True)
        peaks[str(number)] = float(done.stdout)
    return {"sentences_and_peak_mib": peaks}


def pretraining(page: str, updates: int, data_root: Path | None) -> dict[str, Any]:
    """A pretraining's rate by a page of conf/pretrain, its share of the bound, and the peak memory of its process."""
    command = [sys.executable, "-m", "elmo_bench.speed.pretraining", page, str(updates), str(data_root or ""), "auto"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def attention(task: str, words: Sequence[int]) -> list[dict[str, Any]]:
    """Peak memory, in MiB, of a process that trains on, or predicts, one batch of rows with the given numbers of words.

    Each is measured with the limit on padded tokens from the task's page, and without it; once where both allow as many
    rows.
    """
    rows = []
    for length in words:
        number = {bounded: reading.number(task, length, bounded) for bounded in (True, False)}
        for mode in ("train", "answer"):
            peaks = {size: _reading(task, length, mode, size) for size in dict.fromkeys(number.values())}
            rows += [
                {"words": length, "mode": mode, "bounded": bounded, "rows": size, "peak_mib": peaks[size]}
                for bounded, size in number.items()
            ]
    return rows


def _reading(task: str, words: int, mode: str, rows: int) -> float:
    command = [sys.executable, "-m", "elmo_bench.speed.reading", task, str(words), mode, str(rows)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def waiting(tasks: Sequence[str], data_root: Path, batches: int = 20) -> list[dict[str, Any]]:
    """The share of a training step at scale=open that waits for its batch and its cached layers."""
    rows = []
    for task in tasks:
        command = [sys.executable, "-m", "elmo_bench.speed.waiting", task, str(data_root), str(batches)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        rows.append(json.loads(done.stdout.splitlines()[-1]))
    return rows


def steps(task: str, data_root: Path, batches: int = 6) -> dict[str, Any]:
    """The speed of training steps of a task at scale=open on one core."""
    command = [sys.executable, "-m", "elmo_bench.speed.steps", task, str(data_root), str(batches)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def loading(task: str, data_root: Path) -> dict[str, Any]:
    """The peak memory, in MiB, and the CPU seconds of a process that reads all data of a task."""
    command = [sys.executable, "-m", "elmo_bench.speed.loading", task, str(data_root)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def head(task: str, data: Sequence[str]) -> dict[str, Any]:
    """Rows, words of the longest row, and peak memory in MiB of one training step with ELMo at the paper's sizes.

    Args:
        task: its name.
        data: overrides that choose the data.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "batch.json"
        cases.write(cases.choose(task, data), file)
        command = [sys.executable, "-m", "elmo_bench.speed.heads", str(file)]
        return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def _seconds_of(way: Callable[[], Any], rounds: int) -> float:
    return median(_seconds(lambda _: way(), None) for _ in range(rounds))


def _seconds(way: Callable[[Any], Any], argument: Any) -> float:
    started = time.perf_counter()
    way(argument)
    return time.perf_counter() - started


def _difference(*answers: list[Tensor]) -> float:
    """The largest difference between the first and any other; raises if it exceeds CLOSE."""
    first, *others = answers
    largest = max(float((a - b).abs().max()) for other in others for a, b in zip(first, other, strict=True))
    if not largest < CLOSE or not all(torch.isfinite(layers).all() for layers in first):
        raise RuntimeError(f"two ways to the same layers differ by {largest}")
    return largest
