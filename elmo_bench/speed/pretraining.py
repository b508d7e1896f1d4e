"""How fast pretraining is, against the best product of the same run."""

from __future__ import annotations

import csv
import tempfile
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch

from elmo_bench.bilm.options import Options
from elmo_bench.bilm.pretraining.parallel import choose_device
from elmo_bench.bilm.pretraining.recipe import Recipe
from elmo_bench.bilm.pretraining.run import make_recipe
from elmo_bench.bilm.pretraining.trainer import Trainer
from elmo_bench.configuration import composing
from elmo_bench.nn.numerics import bfloat16_pays
from elmo_bench.speed.bound import best_product, encoder_flops, lstm_flops
from elmo_bench.speed.inputs import read_sentences
from elmo_bench.speed.measuring import device_name
from elmo_bench.system import places
from elmo_bench.system.machine import peak_mib

PASSES = 3  # a product forward, and one for each of its two gradients
VOCABULARY = places.CONF / "pretrain" / "open.words.txt"
EPOCH = 768_648_884  # tokens of the 1B Word Benchmark that the release read ten times


def batch_flops(options: Options, words: Sequence[str], tokens: int, negatives: int) -> float:
    """Products of one update, forward and backward, both directions: each distinct word once, no padding."""
    softmax = 2 * 2 * tokens * options.lstm.projection_dim * negatives
    return PASSES * (encoder_flops(options, words) + tokens * lstm_flops(options) + softmax)


def speed(
    recipe: Recipe, sentences: Sequence[Sequence[str]], updates: int, device: torch.device, compile: bool
) -> dict[str, Any]:
    """Trains on the sentences for some updates; the rate is that of the last fifty.

    Returns:
        tokens a second (counted once for both directions), the work of a token, the share of the bound: what the best
        product of the recipe's type allows.
    """
    size = recipe.rows * recipe.steps
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = "".join(" ".join(sentence) + "\n" for sentence in sentences)
        (folder / "text.txt").write_text(text, encoding="utf-8")
        recipe = recipe.model_copy(update={"text": [("text.txt", None)], "heldout": [], "tokens": updates * size})
        trainer = Trainer(recipe, folder, folder / "run", 1e9, compile, device=device)
        given = [np.unique(np.concatenate([chunk.inputs for chunk in pair])) for pair in islice(trainer._chunks(), 20)]
        words = [[trainer.corpus.types[i] for i in types] for types in given]
        flops = [batch_flops(trainer.lm.bilm.options, each, size, recipe.negatives) for each in words]
        best = best_product(device, trainer.lm.dtype)
        trainer.fit()
        with open(folder / "run" / "log.csv", encoding="utf-8") as file:
            rate = float(list(csv.DictReader(file))[-1]["tokens_a_second"])
        best = max(best, best_product(device, trainer.lm.dtype))
    mflop = sum(flops) / len(flops) / size / 1e6
    return {
        "tokens_a_second": rate,
        "mflop_a_token": mflop,
        "best_gflops": best / 1e9,
        "dtype": str(trainer.lm.dtype).removeprefix("torch."),
        "share_of_bound": rate * mflop * 1e6 / best,
        "threads": torch.get_num_threads(),
        "rows": recipe.rows,
        "device": device_name(device),
    }


def measured(
    page: str, updates: int, data_root: str | None, device: str = "auto", compile: bool = True
) -> dict[str, Any]:
    """Of a file in conf/pretrain, on the open text or on made-up words; in float32 where bfloat16 does not pay.

    Returns:
        What `speed` does, the peak memory of this process or GPU in MiB, and the hours of the release's ten epochs of
        the 1B Word Benchmark at this rate.
    """
    place = choose_device(device)
    sentences, _ = read_sentences(data_root, 5000)
    overrides = [f"pretrain={page}", "root=."]
    if page in ("small", "medium", "original"):  # one GPU's rows, and a list of words in place of a billion tokens
        overrides += ["recipe.rows=128", "recipe.vocabulary=65536", f"+recipe.words={VOCABULARY}"]
    recipe = make_recipe(composing.compose(overrides, "pretrain").recipe)
    if recipe.bfloat16 and not bfloat16_pays(place):
        recipe = recipe.model_copy(update={"bfloat16": False})
    found = speed(recipe, sentences, updates, place, compile)
    peak = torch.cuda.max_memory_allocated(place) / 2**20 if place.type == "cuda" else peak_mib()
    hours = 10 * EPOCH / found["tokens_a_second"] / 3600
    return {"page": page, **found, "peak_mib": peak, "hours_of_ten_epochs": hours}
