"""What was measured on a device, as tables of text: for the terminal and for a Markdown file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rich.table import Table as RichTable

from elmo_bench.speed import on_device

Parts = Mapping[str, Mapping[str, Any]]  # by their names


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


def tables(parts: Parts) -> list[Table]:
    """One table for each kind of part that was measured."""
    made = [_roof(parts), _encode(parts), _steps(parts), _table1(parts), _pretraining(parts)]
    return [table for table in made if table.rows]


def _roof(parts: Parts) -> Table:
    found = [part for part in parts.values() if "roof" in part]
    rows = [
        [precision, f"{max(part['roof']['flops'][precision] for part in found) / 1e12:,.2f}"]
        for precision in (found[0]["roof"]["flops"] if found else ())
    ]
    if found:
        rows.append(["copy, TB/s", f"{max(part['roof']['copied_bytes'] for part in found) / 1e12:,.2f}"])
    return Table(f"Best rates of this device ({found[0]['device'] if found else ''})", ("product", "TFLOP/s"), rows)


def _encode(parts: Parts) -> Table:
    rows = [
        [f"{row['token_budget']:,}", f"{row['tokens_a_second']:,.0f}", f"{row['share_of_bound']:.1%}",
         f"{row['peak_mib']:,.0f}"]
        for part in parts.values() for row in part.get("encode", ())
    ]  # fmt: skip
    columns = "tokens computed at once", "tokens/s", "of the best product", "peak memory, MiB"
    return Table("Words to layers, float32", columns, rows)


def _steps(parts: Parts) -> Table:
    columns = (
        "task", "arm", "precision", "rows a step", "ms a step", "of the best product", "waits", "peak memory, MiB",
        "hours a run, at most",
    )  # fmt: skip
    rows = [
        [row["task"], row["arm"], row["precision"], f"{row['rows_a_step']:.1f}", f"{1000 * row['seconds_a_step']:.1f}",
         f"{row['share_of_bound']:.1%}", str(row["waits_a_step"]), f"{row['peak_mib']:,.0f}", f"{row['hours']:.2f}"]
        for row in _measured(parts)
    ]  # fmt: skip
    return Table("Training steps, ELMo from the cache; hours for all epochs of the page", columns, rows)


def _table1(parts: Parts) -> Table:
    found = _measured(parts)
    tasks = list(dict.fromkeys(row["task"] for row in found))
    rows = [[precision, f"{hours:,.1f}"] for precision, hours in on_device.table1(found).items() if tasks]
    return Table(f"Table 1, all arms and seeds, at most: {', '.join(tasks)}", ("precision", "device hours"), rows)


def _measured(parts: Parts) -> list[dict[str, Any]]:
    return [row for part in parts.values() for row in part.get("steps", ())]


def _pretraining(parts: Parts) -> Table:
    columns = "size", "products in", "tokens/s", "of the best product", "peak memory, MiB", "hours of ten epochs"
    rows = [
        [row["page"], row["dtype"], f"{row['tokens_a_second']:,.0f}", f"{row['share_of_bound']:.1%}",
         f"{row['peak_mib']:,.0f}", f"{row['hours_of_ten_epochs']:,.0f}"]
        for part in parts.values() if (row := part.get("pretraining"))
    ]  # fmt: skip
    return Table("Pretraining; ten epochs of the 1B Word Benchmark", columns, rows)
