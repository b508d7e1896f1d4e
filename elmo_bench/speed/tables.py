"""The figures of the benchmark as tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from elmo_bench.speed import growth
from elmo_bench.speed.encode import BATCH

Figures = dict[str, Any]


def show(figures: Figures, console: Console) -> None:
    """Prints what was measured, part by part."""
    console.print(f"text: {figures['text']}; tokens are counted without <S> and </S>")
    for part in figures["seconds"]:
        for shown in SHOWN[part](figures):
            console.print(shown)
    console.print("seconds: " + ", ".join(f"{part} {seconds:.0f}" for part, seconds in figures["seconds"].items()))


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(columns[0], *(Column(name, justify="right") for name in columns[1:]), title=title)
    for row in rows:
        table.add_row(*row)
    return table


def _encode(figures: Figures) -> list[Table | str]:
    best = max(figures["gemm"], key=lambda row: row["gflops"])
    ways = "reference, tokens/s", "torch alone", "encode"
    columns = "size", "MFLOP a token", *ways, "of the bound, at best", "words known"
    rows, lines = [], []
    for size, row in figures["sizes"].items():
        rates = {way: f"{rate:,.0f}" for way, rate in row["tokens_a_second"].items()}
        work, share = f"{row['mflop_a_token']:.1f}", f"{row['share_of_bound']:.1%}"
        rows.append([size, work, rates["reference"], rates["plain"], rates["encode"], share, rates["known"]])
        places = {place: ", ".join(f"{rate:,.0f}" for rate in each.values()) for place, each in row["threads"].items()}
        lines += [
            f"{size}: encode is {row['times_reference']:.1f} times as fast as the reference, and "
            f"{row['times_plain']:.2f} times as fast as without the compiled functions; {_bf16(row['bf16'])}",
            f"{size}: tokens/s with one and two threads: {places['idle']}; beside one busy process: {places['busy']}",
        ]
    product = f"best fp32 product: {best['gflops']:.0f} GFLOP/s ({'x'.join(map(str, best['shape']))})"
    return [product, _table(f"words to layers, batches of {BATCH} sentences", columns, rows), *lines]


def _bf16(row: Figures | None) -> str:
    if row is None:
        return "there are no instructions for precision=bf16"
    times, difference = f"{row['times_fp32']:.2f}", f"{row['largest_difference']:.2g}"
    return f"products in bf16 make it {times} times as fast and change the layers by at most {difference}"


def _steps(figures: Figures) -> list[Table | str]:
    columns = "task", "tokens/s", "MFLOP a token", "of the bound"
    rows = [
        [row["task"], f"{row['tokens_a_second']:,.0f}", f"{row['mflop_a_token']:.1f}", f"{row['share_of_bound']:.0%}"]
        for row in figures["steps"]
    ]
    return [_table("training steps at scale=open on one core, ELMo from the cache", columns, rows)] if rows else []


def _pretraining(figures: Figures) -> list[Table | str]:
    lines: list[Table | str] = []
    for row in figures["pretraining"]:
        lines.append(
            f"pretraining ({row['page']}, {row['device']}, {row['threads']} threads): {row['tokens_a_second']:,.0f} "
            f"tokens/s, {row['share_of_bound']:.0%} of the bound ({row['mflop_a_token']:.1f} MFLOP a token at "
            f"{row['best_gflops']:,.0f} GFLOP/s in {row['dtype']}), peak memory {row['peak_mib']:,.0f} MiB"
        )
        if row["device"] != "cpu":
            lines.append(f"ten epochs of the 1B Word Benchmark at this rate: {row['hours_of_ten_epochs']:,.0f} hours")
    return lines


def _growth(figures: Figures) -> list[Table | str]:
    columns = "what grows", *map(str, range(1, growth.SIZES + 1)), "slope"
    rows = []
    for name, row in figures["growth"].items():
        pairs = zip(row["sizes"], row["seconds"], strict=True)
        rows.append([name, *(f"{size:,}: {seconds:.2f}" for size, seconds in pairs), f"{row['slope']:.2f}"])
    return [_table("CPU seconds at four sizes, each twice the one before", columns, rows)]


def _memory(figures: Figures) -> list[Table | str]:
    memory = figures["memory"]
    peaks = [f"{peak:.0f} MiB for {number} sentences" for number, peak in memory["sentences_and_peak_mib"].items()]
    rows = [
        [task, *(f"{row[key]:,.0f}" for key in ("rows", "words", "peak_mib"))] for task, row in figures["heads"].items()
    ]
    title = "one training step at the sizes of scale=paper, ELMo from the cache"
    table = _table(title, ("task", "rows", "longest row, words", "peak memory, MiB"), rows)
    return [f"peak memory of encoding ({memory['size']}): {', '.join(peaks)}", *([table] if rows else [])]


SHOWN = {"encode": _encode, "steps": _steps, "pretraining": _pretraining, "growth": _growth, "memory": _memory}
