"""Training steps of a task at scale=open on one core: `... TASK DATA_ROOT N`.

ELMo's layers are random numbers, rounded as the cache stores them. The bound is the best matrix product in the same
process, divided by three times the products that the rows need in a forward pass, each row alone: no padding.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from elmo_bench.configuration import pages, schema
from elmo_bench.running.module import BenchModule
from elmo_bench.speed import cases
from elmo_bench.speed.bound import best_product
from elmo_bench.speed.cases import Case, RandomLayers, update
from elmo_bench.system.machine import keep_freed_memory
from elmo_bench.system.storage import json_text
from elmo_bench.task import Batch

ROUNDS = 3  # on one core, of which the best counts
ROWS = 4  # of a batch, whose products are counted
PASSES = 3  # the work of forward and backward pass, in forward passes


def on_one_core(case: Case) -> dict[str, float]:
    """Tokens a second, MFLOP a token, the share of the bound.

    Time is the process's own, so that other work on the machine matters little.
    """
    module, batches = case.module(), case.batches
    optimizer, took = module.configure_optimizers(), []
    for _ in range(ROUNDS + 1):
        started = time.process_time()
        for batch in batches:
            update(module, case.task, optimizer, batch)
        took.append(time.process_time() - started)
    seconds = min(took[1:])  # the first round is a warm-up
    tokens = sum(len(s) for batch in batches for text in batch.texts.values() for s in text.sentences)
    work, best = flops(case, batches), best_product(clock=time.process_time).flops
    return {
        "tokens_a_second": tokens / seconds,
        "mflop_a_token": work / tokens / 1e6,
        "share_of_bound": work / seconds / best,
    }


def flops(case: Case, batches: Sequence[Batch]) -> float:
    """The products that updates on these batches need, each row alone, from some rows of each; counted on the CPU."""
    module, total = case.module(), 0.0
    for batch in batches:
        some = batch.rows[:: max(1, len(batch.rows) // ROWS)]
        total += products(module, (case.batch([row]) for row in some)) * len(batch.rows) / len(some)
    return total


def products(module: BenchModule, batches: Iterable[Batch]) -> float:
    """The operations of the products of a forward and a backward pass over batches on the CPU."""
    counted = FlopCounterMode(display=False, custom_mapping=PRODUCTS)
    with counted:
        for batch in batches:
            module(batch)
    return PASSES * counted.get_total_flops()


def _recurrent(x: torch.Size, *weights: torch.Size, out_shape: Any, **_: Any) -> int:
    """oneDNN's LSTM: every row of x times the input's and the state's weights."""
    return 2 * x[0] * x[1] * (weights[0].numel() + weights[1].numel())


def _pointwise(x: torch.Size, *_: Any, out_shape: torch.Size, **__: Any) -> int:
    return 2 * x.numel() * out_shape[-1]


PRODUCTS = {torch.ops.aten.mkldnn_rnn_layer: _recurrent, torch.ops.mkldnn._linear_pointwise: _pointwise}


def open_width(data: Sequence[str]) -> int:
    """Numbers of a layer of the biLM that scale=open names."""
    scale = schema.typed(pages.compose(["task=ner", "arm=baseline", *data])).scale
    assert scale.options is not None
    return 2 * json_text.read(scale.options)["lstm"]["projection_dim"]


def main(task: str, data_root: str, number: str) -> None:
    """Measures steps on some batches of scale=open and prints the figures as JSON."""
    keep_freed_memory()
    torch.set_num_threads(1)
    data = ["scale=open", f"data_root={data_root}"]
    case = Case(cases.choose(task, data, "open", int(number)), "elmo", RandomLayers(open_width(data)), data)
    print(json_text.dumps({"task": task, **on_one_core(case)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
