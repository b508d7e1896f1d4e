"""Measuring speed and memory: the text to encode, the best matrix product, calls in turn and in processes."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from itertools import accumulate
from pathlib import Path
from timeit import timeit
from typing import Any, TypeVar

import torch
from torch.utils.benchmark import timer

from elmo_bench.bilm.encoder import SENTENCE_BEGIN, SENTENCE_END, character_table, used_characters
from elmo_bench.bilm.options import Options
from elmo_bench.system import console, processes
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import open_text, write_text

SHORTEST, LONGEST = 5, 50  # tokens of a sentence
FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
# (rows, in, out): square products, and the biLM's own (highway, projections' gradients).
SHAPES = ((1024, 1024, 1024), (2048, 2048, 2048), (512, 2048, 4096), (1280, 128, 4096))
LARGE = (8192, 8192, 8192)  # too much for a CPU, but the fastest for a GPU
REPEATS = 7
CPU = torch.device("cpu")
Sentence = Sequence[str]
Name = TypeVar("Name")


def read_sentences(data_root: Path | str | None, number: int) -> tuple[list[Sentence], str]:
    """`number` sentences of 5 to 50 tokens, drawn at random, and a description of their source.

    They come from the open data if available, otherwise they are generated.
    """
    files = sorted(Path(data_root, "lm").glob("dev.*.txt*")) if data_root else []
    draw = random.Random(1)
    if not files:
        return generated(number, draw), "made-up words by Zipf's law (no data_root/lm)"
    sentences: list[Sentence] = []
    for path in files:
        with open_text(path) as lines:
            tokenized = (line.split() for line in lines)
            sentences += [words for words in tokenized if SHORTEST <= len(words) <= LONGEST]
    draw.shuffle(sentences)
    return sentences[:number], ", ".join(path.name.split(".")[1] for path in files)


def generated(number: int, draw: random.Random) -> list[Sentence]:
    """Sentences with lengths and word frequencies close to those of written English."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = ["".join(draw.choices(letters, range(26, 0, -1), k=1 + min(i, 9) // 2 + draw.randrange(7)))
                  for i in range(20_000)]  # fmt: skip
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(vocabulary))))
    lengths = [min(LONGEST, max(SHORTEST, round(draw.gammavariate(3, 7)))) for _ in range(number)]
    return [draw.choices(vocabulary, cum_weights=weights, k=length) for length in lengths]


def official(dim: int, projection: int, highways: int) -> Options:
    """The options of a released biLM of this size."""
    lstm = {"dim": dim, "projection_dim": projection, "n_layers": 2, "cell_clip": 3, "proj_clip": 3}
    cnn = {"embedding": {"dim": 16}, "filters": FILTERS, "n_highway": highways, "max_characters_per_token": 50}
    return Options.parse({"lstm": {**lstm, "use_skip_connections": True}, "char_cnn": cnn})


SMALL, ORIGINAL = official(1024, 128, 1), official(4096, 512, 2)  # 13.6 and 93.6 million parameters


# The bound: the best rate of a matrix product on a device, and the operations that a batch needs.


@torch.no_grad()
def best_product(
    place: torch.device = CPU,
    dtype: torch.dtype = torch.float32,
    shapes: Sequence[tuple[int, int, int]] | None = None,
    clock: Callable[[], float] = timer,
) -> float:
    """Operations per second of the fastest of some matrix products, each repeated.

    Args:
        dtype: the type of the matrices; float32 without TF32.
        shapes: rows, in, out of each product; None: the device's default.
        clock: `time.process_time` for one thread on a busy machine.
    """

    shapes = shapes or (SHAPES if place.type == "cpu" else (*SHAPES, LARGE))
    products = {}
    for rows, inputs, outputs in shapes:
        factors = torch.randn(rows, inputs, device=place), torch.randn(inputs, outputs, device=place)
        products[rows, inputs, outputs] = partial(torch.mm, *(factor.to(dtype) for factor in factors))
    taken = in_turn(products, REPEATS, clock)
    return max(2 * math.prod(shape) / min(seconds) for shape, seconds in taken.items())


def batch_flops(options: Options, sentences: Sequence[Sequence[str]]) -> float:
    """The fewest operations for a batch: each distinct word encoded once, one LSTM step per token, no padding.

    Sentence marks count, too: they are words to encode and steps of the LSTMs. Pointwise operations, a few per cent,
    are left out, which makes the bound a little stricter.
    """
    words = {word for sentence in sentences for word in sentence}
    if sentences:
        words |= {SENTENCE_BEGIN, SENTENCE_END}
    steps = sum(len(sentence) + 2 for sentence in sentences)
    return encoder_flops(options, sorted(words)) + steps * lstm_flops(options)


def encoder_flops(options: Options, words: Sequence[str]) -> float:
    """Convolutions over the windows with a character, and over one window of padding; highways; projection."""
    n, p, k = options.char_cnn.n_filters, options.lstm.projection_dim, options.char_cnn.max_characters_per_token
    used = used_characters(character_table(words, k))
    total = 0.0
    for width, number in options.char_cnn.filters:
        windows = sum(min(int(characters) + 1, k - width + 1) for characters in used)
        total += 2 * windows * width * options.char_cnn.embedding.dim * number
    return total + len(words) * (options.char_cnn.n_highway * 4 * n * n + (2 * n * p if n != p else 0))


def lstm_flops(options: Options) -> float:
    """For one token, in all layers and both directions: input, recurrent and projection products."""
    p, c = options.lstm.projection_dim, options.lstm.dim
    return 2 * options.lstm.n_layers * 2 * (2 * p * 4 * c + c * p)


# Calls in turn, and in a process of their own.


def in_turn(
    ways: Mapping[Name, Callable[[], Any]], rounds: int, clock: Callable[[], float] = timer
) -> dict[Name, list[float]]:
    """The seconds of calls, each called once per round, so that the load of the machine affects all of them alike.

    Args:
        clock: torch's, which waits for a GPU; `time.process_time` reduces the effect of other programs.
    """
    taken = [[timeit(way, timer=clock, number=1) for way in ways.values()] for _ in range(rounds)]
    return {name: [seconds[i] for seconds in taken] for i, name in enumerate(ways)}


def in_own_process(function: Callable[..., Any], *arguments: Any, limit: float | None = None) -> Any:
    """The result of a module's function in a separate process, with its own peak memory.

    Args:
        arguments: these and the result are JSON.
        limit: the time limit in seconds.

    Raises:
        subprocess.SubprocessError: the process failed, or did not end within the limit.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "call.json"
        write_text(file, json_text.dumps([function.__module__, function.__name__, arguments]))
        command = processes.python(__name__, str(file))
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
    return json.loads(done.stdout.splitlines()[-1])


def device_name(device: torch.device) -> str:
    """The manufacturer's name of a GPU, or "cpu"."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else device.type


if __name__ == "__main__":

    def answer() -> None:
        """Prints the result of the function named in the file."""
        module, name, arguments = json_text.read(sys.argv[1])
        print(json_text.dumps(getattr(import_module(module), name)(*arguments)))

    console.report(answer)
