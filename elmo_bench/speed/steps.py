"""Training steps of a task on one core, and their memory.

ELMo's layers are random numbers, rounded as the cache stores them. The bound is the best matrix product in the same
process, divided by three times the products that the rows need in a forward pass, each row alone: no padding.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import FlopCounterMode

from elmo_bench.configuration import composing
from elmo_bench.running.module import BenchModule
from elmo_bench.speed import cases
from elmo_bench.speed.bound import best_product
from elmo_bench.speed.cases import Case, Chosen, RandomLayers, update
from elmo_bench.speed.measuring import in_turn
from elmo_bench.system.machine import keep_freed_memory, peak_mib
from elmo_bench.system.storage import json_text
from elmo_bench.task import Batch
from elmo_bench.text.tokens import lengths

ROUNDS = 3  # on one core, of which the best counts
ROWS = 4  # of a batch, whose products are counted
PASSES = 3  # the work of forward and backward pass, in forward passes


def on_one_core(case: Case) -> dict[str, float]:
    """Tokens a second, MFLOP a token, the share of the bound.

    Time is the process's own, so that other work on the machine matters little.
    """
    module, batches = case.module(), case.batches
    optimizer = module.configure_optimizers()

    def epoch() -> None:
        for batch in batches:
            update(module, case.task, optimizer, module(batch).loss)

    epoch()  # a warm-up
    seconds = min(in_turn({"epoch": epoch}, ROUNDS, time.process_time)["epoch"])
    tokens = sum(len(s) for batch in batches for text in batch.texts.values() for s in text.sentences)
    work, best = flops(case, batches), best_product(clock=time.process_time)
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


PRODUCTS: dict[Any, Callable[..., int]] = {  # of oneDNN
    # its LSTM: every row of x times the input's and the state's weights
    torch.ops.aten.mkldnn_rnn_layer: lambda x, w, u, *_, **__: 2 * x[0] * x[1] * (w.numel() + u.numel()),
    torch.ops.mkldnn._linear_pointwise: lambda x, *_, out_shape, **__: 2 * x.numel() * out_shape[-1],
}


def measured(task: str, data_root: str, number: int) -> dict[str, Any]:
    """Of some batches of scale=open, with layers as wide as those of its biLM."""
    keep_freed_memory()
    torch.set_num_threads(1)
    data = ["scale=open", f"data_root={data_root}"]
    options = composing.run_config(["task=ner", "arm=baseline", *data]).scale.options
    assert options is not None
    source = RandomLayers(2 * json_text.read(options)["lstm"]["projection_dim"])
    return {"task": task, **on_one_core(Case(cases.choose(task, data, "open", number), "elmo", source, data))}


def peak(chosen: Chosen) -> dict[str, Any]:
    """Rows and words of the longest row of the first batch; peak MiB of this process after a step without optimizer."""
    case = Case(chosen)
    batch = case.batches[0]
    case.module()(batch).loss.backward()
    words = max(lengths(batch.rows, case.reader.fields))
    return {"rows": len(batch.rows), "words": words, "peak_mib": peak_mib()}
