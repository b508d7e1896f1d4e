"""The figures of a device as tables of Markdown."""

import json
from collections.abc import Mapping
from typing import Any

from elmo_bench.reporting.section import Section
from tests.gpu import steps

Parts = Mapping[str, Mapping[str, Any]]  # of a device, by their names
# By the kind of part the title of its table, and by the head of each column what stands there of a row of figures.
TABLES = json.loads("""{
    "encode": ["Words to layers, float32", {
        "tokens computed at once": "{token_budget:}", "tokens/s": "{tokens_a_second:,.0f}",
        "of the best product": "{share_of_bound:.1%}", "peak memory, MiB": "{peak_mib:,.0f}"
    }],
    "steps": ["Training steps, ELMo from the cache; hours for all epochs", {
        "task": "{task}", "arm": "{arm}", "precision": "{precision}", "rows a step": "{rows_a_step:.1f}",
        "ms a step": "{ms_a_step:.1f}", "of the best product": "{share_of_bound:.1%}", "waits": "{waits_a_step}",
        "peak memory, MiB": "{peak_mib:,.0f}", "hours a run, at most": "{hours:.2f}"
    }],
    "pretraining": ["Pretraining; ten epochs of the 1B Word Benchmark", {
        "size": "{page}", "products in": "{dtype}", "tokens/s": "{tokens_a_second:,.0f}",
        "of the best product": "{share_of_bound:.1%}", "peak memory, MiB": "{peak_mib:,.0f}",
        "hours of ten epochs": "{hours_of_ten_epochs:,.0f}"
    }],
    "run": ["Whole runs of some batches, by the command train", {
        "run": "{run}", "ms a step": "{ms_a_step:.1f}", "tokens/s": "{tokens_a_second:,.0f}",
        "seconds before and after": "{seconds_before_and_after:.1f}", "peak memory, MiB": "{peak_mib:,.0f}",
        "loss": "{loss:.4f}", "resumed": "{resumed}"
    }]
}""")


def of_device(parts: Parts) -> list[Section]:
    """One table for each kind of part that was measured."""
    made = [_roof(parts), *(_table(parts, kind) for kind in TABLES), _table1(parts)]
    return [table for table in made if table.rows]


def _roof(parts: Parts) -> Section:
    found = [part for part in parts.values() if "roof" in part]
    rows = [
        (precision, f"{max(part['roof'][precision] for part in found) / 1e12:,.2f}")
        for precision in (found[0]["roof"] if found else ())
    ]
    title = f"Best rates of this device ({found[0]['device'] if found else ''})"
    return Section(title, "", ("product", "TFLOP/s"), rows)


def _table(parts: Parts, kind: str) -> Section:
    title, columns = TABLES[kind]
    rows = [tuple(text.format(**row) for text in columns.values()) for row in _rows(parts, kind)]
    return Section(title, "", tuple(columns), rows)


def _rows(parts: Parts, kind: str) -> list[dict[str, Any]]:
    """The rows of figures of all parts of a kind; a part has several or one."""
    found = [part[kind] for part in parts.values() if kind in part]
    rows = [row for each in found for row in (each if isinstance(each, list) else [each])]
    resumed = {True: "the same", False: "differs", None: ""}
    return [
        {**row, "ms_a_step": 1000 * row.get("seconds_a_step", 0), "resumed": resumed[row.get("same")]} for row in rows
    ]


def _table1(parts: Parts) -> Section:
    found = _rows(parts, "steps")
    tasks = list(dict.fromkeys(row["task"] for row in found))
    rows = [(precision, f"{hours:,.1f}") for precision, hours in steps.table1(found).items() if tasks]
    return Section(f"Table 1, all arms and seeds, at most: {', '.join(tasks)}", "", ("precision", "device hours"), rows)
