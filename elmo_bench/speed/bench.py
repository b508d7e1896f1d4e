"""The speed of the biLM compared with the best that this machine can do.

Also the speed of SRL's recurrent stack, compared with a reference implementation and `torch.nn.LSTM`, that of
pretraining, compared with the best matrix product of its own type, and the memory and the training steps of each
task's model.

Random weights in the official format, fp32, all cores, batches of 32 sentences of 5 to 50 tokens. The upper bound is
the best rate of an fp32 matrix product in the same run, divided by the operations that a batch needs (`flops`). Nothing
else should run at the same time: ratios are robust to a busy machine, shares of the bound are not.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.speed import gemm, heads, measure, reading, stack, verification
from elmo_bench.speed.text import read_sentences

FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]


class Plan(NamedTuple):
    """What is measured: sizes with their numbers of batches, and the amounts for the other parts."""

    sizes: dict[str, tuple[Options, int]]
    rounds: int = 3
    cached: int = 320  # sentences
    corpus: int = 500  # sentences of the corpus; the longer corpus has four times as many
    stack: tuple[stack.Size, int] = (stack.Size(), 2)  # of the recurrent stack of SRL, and number of batches
    contexts: Sequence[int] = (400, 800)  # words of a paragraph, for the memory of attention
    pretraining: Sequence[str] = ("open",)  # pages of conf/pretrain; with a GPU the paper's size too
    updates: int = 150  # of each pretraining
    waiting: Sequence[str] = ("squad", "snli")  # tasks at scale=open
    heads: bool = True  # the memory of each task's model at scale=paper, and training steps at scale=open


def official(dim: int, projection: int, highways: int) -> Options:
    """A size of the release."""
    lstm = {"dim": dim, "projection_dim": projection, "n_layers": 2, "cell_clip": 3, "proj_clip": 3}
    cnn = {"embedding": {"dim": 16}, "filters": FILTERS, "n_highway": highways, "max_characters_per_token": 50}
    return Options.parse({"lstm": {**lstm, "use_skip_connections": True}, "char_cnn": cnn})


PLAN = Plan({"small": (official(1024, 128, 1), 6), "original": (official(4096, 512, 2), 3)})


def bench(plan: Plan, data_root: Path | None, step: Callable[[str], None]) -> dict[str, Any]:
    """All measurements; `step` is called with what comes next. The cache is measured with the last size."""
    batches_needed = [plan.stack[1], *(number for _, number in plan.sizes.values())]
    most = max(plan.cached, measure.BATCH * max(batches_needed))
    sentences, source = read_sentences(data_root, most)
    rates, sizes, opening = [], {}, {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for size, (options, number) in plan.sizes.items():
            step("matrix products")
            rates += gemm.rates()
            files = _random(options, folder, size)
            step(f"{size}: verification")
            opening[size] = verification.opening(*files, plan.rounds)
            step(f"{size}: drawing weights")
            bilm = BiLM.from_files(*files, state="zero")
            batches = measure.batches_of(sentences)[:number]
            step(f"{size}: reference and encode, alternating")
            sizes[size] = measure.speed(bilm, batches, plan.rounds, lambda size=size: step(f"{size}: next batch"))
        step(f"{size}: cached layers")
        cache = {"size": size, **measure.cached(bilm, sentences[: plan.cached], folder / "cache", plan.rounds)}
        step("memory of a corpus, and of one four times as long")
        first = next(iter(plan.sizes))
        memory = {"size": first, **measure.memory(*_paths(folder, first), data_root, plan.corpus)}
        step("memory of attention over long paragraphs")
        attention = {task: measure.attention(task, plan.contexts) for task in reading.tasks()}
    heads_measured = {}
    scale = ["scale=open", f"data_root={data_root}"] if data_root else ["scale=mini"]
    for task in heads.tasks("open" if data_root else "mini") if plan.heads else ():
        step(f"memory of a training step of {task}")
        heads_measured[task] = measure.head(task, scale)
    step("the recurrent stack of SRL")
    lengths = [[len(sentence) for sentence in batch] for batch in measure.batches_of(sentences)[: plan.stack[1]]]
    recurrent = stack.speed(lengths, plan.rounds, plan.stack[0])
    waiting = []
    if data_root is not None and plan.waiting:
        step("training steps that wait for layers")
        waiting = measure.waiting(plan.waiting, data_root)
    steps = []
    for task in heads.tasks("open") if data_root is not None and plan.heads else ():
        step(f"training steps of {task}")
        steps.append(measure.steps(task, data_root))
    pretraining = []
    for page in [*plan.pretraining, *(["original"] if plan.pretraining and torch.cuda.is_available() else [])]:
        step(f"pretraining: {page}")
        pretraining.append(measure.pretraining(page, plan.updates, data_root))
    best = max(rates)
    for row in sizes.values():
        rate = row["tokens_a_second"]["encode"] * row["mflop_a_token"] * 1e6
        row["share_of_bound"] = rate / best.flops
    return {
        "text": source,
        "gemm": [{"gflops": rate.flops / 1e9, "kernel": rate.kernel, "shape": rate.shape} for rate in rates],
        "best_gemm_gflops": best.flops / 1e9,
        "sizes": sizes,
        "verification": opening,
        "cache": cache,
        "memory": memory,
        "stack": recurrent,
        "attention": attention,
        "waiting": waiting,
        "heads": heads_measured,
        "steps": steps,
        "pretraining": pretraining,
    }


def _paths(folder: Path, size: str) -> tuple[Path, Path]:
    return folder / f"{size}.json", folder / f"{size}.hdf5"


def _random(options: Options, folder: Path, size: str) -> tuple[Path, Path]:
    """A biLM as it is before training, in the official format."""
    torch.manual_seed(0)
    BiLM(options).export(*_paths(folder, size))
    return _paths(folder, size)


def show(measured: dict[str, Any], console: Console) -> None:
    """Prints the figures."""
    best = max(measured["gemm"], key=lambda row: row["gflops"])
    console.print(
        f"best fp32 product: {best['gflops']:.0f} GFLOP/s ({best['kernel']}, {'x'.join(map(str, best['shape']))})\n"
        f"text: {measured['text']}; tokens are counted without <S> and </S>"
    )
    table = Table("size", title=f"words to layers, batches of {measure.BATCH} sentences")
    for column in (
        "MFLOP a token",
        "reference, tokens/s",
        "encode, tokens/s",
        "of the bound",
        "times reference",
        "words known",
    ):
        table.add_column(column, justify="right")
    for size, row in measured["sizes"].items():
        reference, encode, known = (f"{row['tokens_a_second'][way]:,.0f}" for way in ("reference", "encode", "known"))
        share, times = f"{row['share_of_bound']:.1%}", f"{row['times_reference']:.1f}"
        table.add_row(size, f"{row['mflop_a_token']:.1f}", reference, encode, share, times, known)
    console.print(table)
    for size, row in measured["verification"].items():
        console.print(verification.told(size, row))
    cache, memory = measured["cache"], measured["memory"]
    write, compute, read = (f"{cache['tokens_a_second'][way]:,.0f}" for way in ("write", "compute", "read"))
    console.print(
        f"cached layers ({cache['size']}, {cache['bytes_a_token']:,.0f} bytes a token): a second epoch is "
        f"{cache['times_computing']:.0f} times as fast as computing (tokens/s: write {write}, compute {compute}, "
        f"read {read})"
    )
    peaks = [f"{peak:.0f} MiB for {number} sentences" for number, peak in memory["sentences_and_peak_mib"].items()]
    console.print(f"peak memory ({memory['size']}): {', '.join(peaks)}")
    for task, rows in measured["attention"].items():
        table = Table("", title=f"{task}, sizes of scale=paper, without ELMo: peak memory of one batch")
        for column in ("words", "rows in the budget", "MiB", "rows without it", "MiB"):
            table.add_column(column, justify="right")
        for within, without in zip(rows[::2], rows[1::2], strict=True):
            figures = (f"{row[key]:.0f}" for row in (within, without) for key in ("rows", "peak_mib"))
            table.add_row(within["mode"], str(within["words"]), *figures)
        console.print(table)
    console.print(
        f"reading cached layers of a batch: {cache['bytes_a_second']['read'] / 1e9:.1f} GB/s, "
        f"{cache['share_of_copy']:.0%} of a plain copy; in the first epoch, which checks them, "
        f"{cache['bytes_a_second']['first'] / 1e9:.1f} GB/s"
    )
    for row in measured["waiting"]:
        console.print(
            f"{row['task']}, scale=open, +ELMo: {row['waiting']:.1%} of a training step of "
            f"{row['seconds_a_step']:.2f} s waits for its batch and its layers"
        )
    if measured["heads"]:
        table = Table("", title="a training step at the sizes of scale=paper, ELMo from the cache")
        for column in ("rows", "words of the longest", "peak memory, MiB"):
            table.add_column(column, justify="right")
        for task, row in measured["heads"].items():
            table.add_row(task, *(f"{row[key]:,.0f}" for key in ("rows", "words", "peak_mib")))
        console.print(table)
    if measured["steps"]:
        table = Table("", title="training steps at scale=open on one core, ELMo from the cache")
        for column in ("tokens/s", "MFLOP a token", "of the bound", "operations a step", "waits of a GPU a step"):
            table.add_column(column, justify="right")
        for row in measured["steps"]:
            figures = (f"{row[key]:,.0f}" for key in ("operations_a_step", "waits_a_step"))
            speed = f"{row['tokens_a_second']:,.0f}", f"{row['mflop_a_token']:.1f}", f"{row['share_of_bound']:.0%}"
            table.add_row(row["task"], *speed, *figures)
        console.print(table)
    for row in measured["pretraining"]:
        console.print(
            f"pretraining ({row['page']}, {row['device']}, {row['threads']} threads): {row['tokens_a_second']:,.0f} "
            f"tokens/s, {row['share_of_bound']:.0%} of the bound ({row['mflop_a_token']:.1f} MFLOP a token at "
            f"{row['best_gflops']:,.0f} GFLOP/s in {row['dtype']}), peak memory {row['peak_mib']:,.0f} MiB"
        )
        if row["device"] != "cpu":
            console.print(f"ten epochs of the 1B Word Benchmark at this rate: {row['hours_of_ten_epochs']:,.0f} hours")
    row = measured["stack"]
    rates = ", ".join(f"{name} {rate:.1f}" for name, rate in row["sentences_a_second"].items())
    console.print(
        f"recurrent stack of SRL ({row['size']['layers']} layers of {row['size']['hidden']}, forward and backward): "
        f"{row['times_reference']:.2f} times the reference, {row['times_library']:.2f} times nn.LSTM "
        f"(sentences/s: {rates})"
    )
