"""The figures of the benchmark and of a device as tables of text: for the terminal and for a Markdown file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table as RichTable

from elmo_bench.speed import growth, steps
from elmo_bench.speed.encode import BATCH

Figures = dict[str, Any]
Parts = Mapping[str, Mapping[str, Any]]  # of a device, by their names


class Table(NamedTuple):
    """Cells of text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> str:
        """For a file: the title, then the cells."""
        lines = [self.columns, ["---:" if number else "---" for number in range(len(self.columns))], *self.rows]
        return f"{self.title}\n\n" + "".join(f"| {' | '.join(line)} |\n" for line in lines)

    def rich(self) -> RichTable:
        """For a terminal."""
        table = RichTable(title=self.title)
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if number else "left")
        for row in self.rows:
            table.add_row(*row)
        return table


def show(figures: Figures, console: Console) -> None:
    """Prints what was measured, part by part."""
    console.print(f"text: {figures['text']}; tokens are counted without <S> and </S>")
    for part in figures["seconds"]:
        for told in SHOWN[part](figures):
            console.print(told.rich() if isinstance(told, Table) else told)
    console.print("seconds: " + ", ".join(f"{part} {seconds:.0f}" for part, seconds in figures["seconds"].items()))


def _encode(figures: Figures) -> list[Table | str]:
    best = max(figures["gemm"], key=lambda row: row["gflops"])
    columns = (
        "size",
        "MFLOP a token",
        "reference, tokens/s",
        "torch alone",
        "encode",
        "of the bound, at best",
        "words known",
    )
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
    return [product, Table(f"words to layers, batches of {BATCH} sentences", columns, rows), *lines]


def _bf16(row: Figures | None) -> str:
    if row is None:
        return "there are no instructions for precision=bf16"
    times, difference = f"{row['times_fp32']:.2f}", f"{row['largest_difference']:.2g}"
    return f"products in bf16 make it {times} times as fast and change the layers by at most {difference}"


def _steps(figures: Figures) -> list[Table | str]:
    columns = (
        "task", "tokens/s", "MFLOP a token", "of the bound", "operations a step", "waits of a GPU a step",
    )  # fmt: skip
    rows = [
        [row["task"], f"{row['tokens_a_second']:,.0f}", f"{row['mflop_a_token']:.1f}", f"{row['share_of_bound']:.0%}",
         f"{row['operations_a_step']:,}", f"{row['waits_a_step']:,}"]
        for row in figures["steps"]
    ]  # fmt: skip
    return [Table("training steps at scale=open on one core, ELMo from the cache", columns, rows)] if rows else []


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
    return [Table("CPU seconds at four sizes, each twice the one before", columns, rows)]


def _memory(figures: Figures) -> list[Table | str]:
    memory = figures["memory"]
    peaks = [f"{peak:.0f} MiB for {number} sentences" for number, peak in memory["sentences_and_peak_mib"].items()]
    rows = [
        [task, *(f"{row[key]:,.0f}" for key in ("rows", "words", "peak_mib"))] for task, row in figures["heads"].items()
    ]
    title = "one training step at the sizes of scale=paper, ELMo from the cache"
    table = Table(title, ("task", "rows", "longest row, words", "peak memory, MiB"), rows)
    return [f"peak memory of encoding ({memory['size']}): {', '.join(peaks)}", *([table] if rows else [])]


def _gpu(figures: Figures) -> list[Table | str]:
    return [*of_device(figures["gpu"])]


SHOWN = {
    "encode": _encode,
    "steps": _steps,
    "pretraining": _pretraining,
    "growth": _growth,
    "memory": _memory,
    "gpu": _gpu,
}


def of_device(parts: Parts) -> list[Table]:
    """One table for each kind of part that was measured."""
    made = [
        _roof_on_device(parts),
        _encode_on_device(parts),
        _steps_on_device(parts),
        _table1(parts),
        _pretraining_on_device(parts),
        _runs_on_device(parts),
    ]
    return [table for table in made if table.rows]


def _roof_on_device(parts: Parts) -> Table:
    found = [part for part in parts.values() if "roof" in part]
    rows = [
        [precision, f"{max(part['roof'][precision] for part in found) / 1e12:,.2f}"]
        for precision in (found[0]["roof"] if found else ())
    ]
    return Table(f"Best rates of this device ({found[0]['device'] if found else ''})", ("product", "TFLOP/s"), rows)


def _encode_on_device(parts: Parts) -> Table:
    rows = [
        [f"{row['token_budget']:,}", f"{row['tokens_a_second']:,.0f}", f"{row['share_of_bound']:.1%}",
         f"{row['peak_mib']:,.0f}"]
        for part in parts.values() for row in part.get("encode", ())
    ]  # fmt: skip
    columns = "tokens computed at once", "tokens/s", "of the best product", "peak memory, MiB"
    return Table("Words to layers, float32", columns, rows)


def _steps_on_device(parts: Parts) -> Table:
    columns = (
        "task", "arm", "precision", "rows a step", "ms a step", "of the best product", "waits", "peak memory, MiB",
        "hours a run, at most",
    )  # fmt: skip
    rows = [
        [row["task"], row["arm"], row["precision"], f"{row['rows_a_step']:.1f}", f"{1000 * row['seconds_a_step']:.1f}",
         f"{row['share_of_bound']:.1%}", str(row["waits_a_step"]), f"{row['peak_mib']:,.0f}", f"{row['hours']:.2f}"]
        for row in _measured(parts)
    ]  # fmt: skip
    return Table("Training steps, ELMo from the cache; hours for all epochs", columns, rows)


def _table1(parts: Parts) -> Table:
    found = _measured(parts)
    tasks = list(dict.fromkeys(row["task"] for row in found))
    rows = [[precision, f"{hours:,.1f}"] for precision, hours in steps.table1(found).items() if tasks]
    return Table(f"Table 1, all arms and seeds, at most: {', '.join(tasks)}", ("precision", "device hours"), rows)


def _measured(parts: Parts) -> list[dict[str, Any]]:
    return [row for part in parts.values() for row in part.get("steps", ())]


def _pretraining_on_device(parts: Parts) -> Table:
    columns = "size", "products in", "tokens/s", "of the best product", "peak memory, MiB", "hours of ten epochs"
    rows = [
        [row["page"], row["dtype"], f"{row['tokens_a_second']:,.0f}", f"{row['share_of_bound']:.1%}",
         f"{row['peak_mib']:,.0f}", f"{row['hours_of_ten_epochs']:,.0f}"]
        for part in parts.values() if (row := part.get("pretraining"))
    ]  # fmt: skip
    return Table("Pretraining; ten epochs of the 1B Word Benchmark", columns, rows)


def _runs_on_device(parts: Parts) -> Table:
    columns = "run", "ms a step", "tokens/s", "seconds before and after", "peak memory, MiB", "loss", "resumed"
    rows = [
        [row["run"], f"{1000 * row['seconds_a_step']:.1f}", f"{row['tokens_a_second']:,.0f}",
         f"{row['seconds_before_and_after']:.1f}", f"{row['peak_mib']:,.0f}", f"{row['loss']:.4f}",
         {True: "the same", False: "differs"}.get(row.get("same"), "")]
        for part in parts.values() if (row := part.get("run"))
    ]  # fmt: skip
    return Table("Whole runs of some batches, by the command train", columns, rows)
