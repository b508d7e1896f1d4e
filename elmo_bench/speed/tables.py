"""Prints the figures of the benchmark."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from elmo_bench.speed import device_tables, growth, verification
from elmo_bench.speed.measure import BATCH

Figures = dict[str, Any]


def show(figures: Figures, console: Console) -> None:
    """Prints what was measured, part by part."""
    console.print(f"text: {figures['text']}; tokens are counted without <S> and </S>")
    for part in figures["seconds"]:
        SHOWN[part](figures, console)
    console.print("seconds: " + ", ".join(f"{part} {seconds:.0f}" for part, seconds in figures["seconds"].items()))


def _encode(figures: Figures, console: Console) -> None:
    best = max(figures["gemm"], key=lambda row: row["gflops"])
    shape = "x".join(map(str, best["shape"]))
    console.print(f"best fp32 product: {best['gflops']:.0f} GFLOP/s ({best['kernel']}, {shape})")
    columns = "MFLOP a token", "reference, tokens/s", "torch alone", "encode", "of the bound, at best", "words known"
    table = _table("size", f"words to layers, batches of {BATCH} sentences", columns)
    for size, row in figures["sizes"].items():
        rates = {way: f"{rate:,.0f}" for way, rate in row["tokens_a_second"].items()}
        work, share = f"{row['mflop_a_token']:.1f}", f"{row['share_of_bound']:.1%}"
        table.add_row(size, work, rates["reference"], rates["plain"], rates["encode"], share, rates["known"])
    console.print(table)
    for size, row in figures["sizes"].items():
        console.print(
            f"{size}: encode is {row['times_reference']:.1f} times as fast as the reference, and "
            f"{row['times_plain']:.2f} times as fast as without the compiled functions; {_bf16(row['bf16'])}"
        )
        rates = {place: ", ".join(f"{rate:,.0f}" for rate in each.values()) for place, each in row["threads"].items()}
        console.print(
            f"{size}: tokens/s with one and two threads: {rates['idle']}; beside one busy process: {rates['busy']}"
        )


def _bf16(row: Figures | None) -> str:
    if row is None:
        return "there are no instructions for precision=bf16"
    times, difference = f"{row['times_fp32']:.2f}", f"{row['largest_difference']:.2g}"
    return f"products in bf16 make it {times} times as fast and change the layers by at most {difference}"


def _verification(figures: Figures, console: Console) -> None:
    for size, row in figures["verification"]["opening"].items():
        console.print(verification.told(size, row))
    for scale, share in figures["verification"]["runs"].items():
        console.print(f"verification in a run of NER with ELMo at scale={scale}: {share:.2%} of its time")


def _cache(figures: Figures, console: Console) -> None:
    cache = figures["cache"]
    write, compute, read = (f"{cache['tokens_a_second'][way]:,.0f}" for way in ("write", "compute", "read"))
    console.print(
        f"cached layers ({cache['size']}, {cache['bytes_a_token']:,.0f} bytes a token): a second epoch is "
        f"{cache['times_computing']:.0f} times as fast as computing (tokens/s: write {write}, compute {compute}, "
        f"read {read})"
    )
    console.print(
        f"reading cached layers of a batch: {cache['bytes_a_second']['read'] / 1e9:.1f} GB/s, "
        f"{cache['share_of_copy']:.0%} of a plain copy; in the first epoch, which checks them, "
        f"{cache['bytes_a_second']['first'] / 1e9:.1f} GB/s"
    )


def _sweep(figures: Figures, console: Console) -> None:
    row = figures["sweep"]
    console.print(
        f"layers of a four-point sweep ({row['size']}), from an empty cache: {row['times_expected']:.2f} times one "
        "epoch of computing them and three of reading them"
    )


def _growth(figures: Figures, console: Console) -> None:
    columns = *map(str, range(1, growth.SIZES + 1)), "slope"
    table = _table("what grows", "CPU seconds at four sizes, each twice the one before", columns)
    for name, row in figures["growth"].items():
        pairs = zip(row["sizes"], row["seconds"], strict=True)
        table.add_row(name, *(f"{size:,}: {seconds:.2f}" for size, seconds in pairs), f"{row['slope']:.2f}")
    console.print(table)


def _memory(figures: Figures, console: Console) -> None:
    memory = figures["memory"]
    peaks = [f"{peak:.0f} MiB for {number} sentences" for number, peak in memory["sentences_and_peak_mib"].items()]
    console.print(f"peak memory ({memory['size']}): {', '.join(peaks)}")


def _attention(figures: Figures, console: Console) -> None:
    for task, rows in figures["attention"].items():
        columns = "words", "rows in the budget", "MiB", "rows without it", "MiB"
        table = _table("", f"{task}, sizes of scale=paper, without ELMo: peak memory of one batch", columns)
        for within, without in zip(rows[::2], rows[1::2], strict=True):
            numbers = (f"{row[key]:.0f}" for row in (within, without) for key in ("rows", "peak_mib"))
            table.add_row(within["mode"], str(within["words"]), *numbers)
        console.print(table)


def _heads(figures: Figures, console: Console) -> None:
    columns = "rows", "words of the longest", "peak memory, MiB"
    table = _table("", "a training step at the sizes of scale=paper, ELMo from the cache", columns)
    for task, row in figures["heads"].items():
        table.add_row(task, *(f"{row[key]:,.0f}" for key in ("rows", "words", "peak_mib")))
    console.print(table)


def _steps(figures: Figures, console: Console) -> None:
    columns = (
        "tokens/s",
        "MFLOP a token",
        "of the bound",
        "operations a step",
        "waits of a GPU a step",
    )
    table = _table("", "training steps at scale=open on one core, ELMo from the cache", columns)
    for row in figures["steps"]:
        counts = (f"{row[key]:,.0f}" for key in ("operations_a_step", "waits_a_step"))
        speed = f"{row['tokens_a_second']:,.0f}", f"{row['mflop_a_token']:.1f}"
        table.add_row(row["task"], *speed, f"{row['share_of_bound']:.0%}", *counts)
    if figures["steps"]:
        console.print(table)


def _loading(figures: Figures, console: Console) -> None:
    for row in figures["loading"]:
        console.print(
            f"reading all data of {row['task']}: peak memory {row['peak_mib']:,.0f} MiB, {row['seconds']:.0f} CPU "
            f"seconds for {sum(row['rows'].values()):,} rows"
        )


def _stack(figures: Figures, console: Console) -> None:
    row = figures["stack"]
    rates = ", ".join(f"{name} {rate:.1f}" for name, rate in row["sentences_a_second"].items())
    console.print(
        f"recurrent stack of SRL ({row['size']['layers']} layers of {row['size']['hidden']}, forward and backward): "
        f"{row['times_reference']:.2f} times the reference, {row['times_library']:.2f} times nn.LSTM "
        f"(sentences/s: {rates})"
    )


def _waiting(figures: Figures, console: Console) -> None:
    for row in figures["waiting"]:
        console.print(
            f"{row['task']}, scale=open, +ELMo: {row['waiting']:.1%} of a training step of "
            f"{row['seconds_a_step']:.2f} s waits for its batch and its layers"
        )


def _pretraining(figures: Figures, console: Console) -> None:
    for row in figures["pretraining"]:
        console.print(
            f"pretraining ({row['page']}, {row['device']}, {row['threads']} threads): {row['tokens_a_second']:,.0f} "
            f"tokens/s, {row['share_of_bound']:.0%} of the bound ({row['mflop_a_token']:.1f} MFLOP a token at "
            f"{row['best_gflops']:,.0f} GFLOP/s in {row['dtype']}), peak memory {row['peak_mib']:,.0f} MiB"
        )
        if row["device"] != "cpu":
            console.print(f"ten epochs of the 1B Word Benchmark at this rate: {row['hours_of_ten_epochs']:,.0f} hours")


def _gpu(figures: Figures, console: Console) -> None:
    for table in device_tables.tables(figures["gpu"]):
        console.print(table.rich())


def _table(first: str, title: str, columns: tuple[str, ...]) -> Table:
    table = Table(first, title=title)
    for column in columns:
        table.add_column(column, justify="right")
    return table


SHOWN = {
    "encode": _encode,
    "verification": _verification,
    "cache": _cache,
    "sweep": _sweep,
    "growth": _growth,
    "memory": _memory,
    "attention": _attention,
    "heads": _heads,
    "steps": _steps,
    "loading": _loading,
    "stack": _stack,
    "waiting": _waiting,
    "pretraining": _pretraining,
    "gpu": _gpu,
}
