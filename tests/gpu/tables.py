"""The figures of a device as tables of Markdown."""

from collections.abc import Mapping
from typing import Any

from elmo_bench.speed.tables import Table
from tests.gpu import steps

Parts = Mapping[str, Mapping[str, Any]]  # of a device, by their names


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
