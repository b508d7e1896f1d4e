"""Ours beside the paper's, from the records: `python -m elmo_bench.report` writes results/README.md and report.html.

After the tables of the runs come the figures, each a JSON file beside its picture in results/figures. The same records
and figures give the same bytes.
"""

from __future__ import annotations

import base64
import html
import json
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench import cli
from elmo_bench.errors import UserError
from elmo_bench.labels import arm, is_default
from elmo_bench.records import Record, grouped, mean_and_deviation, read_all, write_text

INTRODUCTION = (
    "Written by `make report` from the records under `runs/`, one a finished run. Figures are percent, mean ± sample "
    "standard deviation over the seeds; dev is that of the selected epoch. A number belongs to its scale: numbers of "
    "different scales, or of different biLMs, do not compare."
)
HEADER = ("arm", "biLM", "seeds", "dev {m}", "test {m}", "paper, test", "s_j of the layers; γ", "time a run")
SCALES = ("paper", "open", "mini")


class Section(NamedTuple):
    """A table for one task at one scale, or with a picture below it."""

    title: str
    note: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    remarks: list[str]
    picture: Path | None = None


def sections(records: Iterable[Record]) -> list[Section]:
    """A section for every task and scale that has records: real data first, mini last."""
    places: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        places.setdefault((record["scale"], record["task"]), []).append(record)
    order = {scale: i for i, scale in enumerate(SCALES)}
    return [section(places[place]) for place in sorted(places, key=lambda p: (order.get(p[0], 9), p))]


def section(records: list[Record]) -> Section:
    """The table of one task at one scale: the baseline, +ELMo as the task's page has it, then the variants."""
    groups = sorted(grouped(records).values(), key=_order)
    newest = max(records, key=lambda record: record["finished"])
    metric = newest["config"]["task"]["monitor"]
    return Section(
        title=f"{newest['task']}, scale {newest['scale']}",
        note=newest["config"]["scale"]["note"],
        header=tuple(cell.format(m=metric) for cell in HEADER),
        rows=[_row(group, metric) for group in groups],
        remarks=[*_gains(groups, metric), *_details(groups, metric), *_machines(records)],
    )


def figures(results_root: str | Path) -> list[Section]:
    """A section for every JSON file of the folder `figures`.

    Raises:
        UserError: a file that is none of a figure's.
    """
    found = []
    for path in sorted((Path(results_root) / "figures").glob("*.json")):
        try:
            page = json.loads(path.read_text(encoding="utf-8"))
            rows = [tuple(row) for row in page["rows"]]
            section = Section(
                page["title"], page["note"], tuple(page["header"]), rows, [], path.parent / page["picture"]
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UserError(f"not a readable figure ({error!r}); remove it and make it again", path) from None
        found.append(section)
    return found


def _order(group: list[Record]) -> tuple:
    baseline = group[0]["config"]["elmo"]["where"] == "none"
    return (
        not baseline,
        not is_default(group[0]["variant"]),
        group[0]["bilm"]["name"] or "",
        arm(group[0]),
        group[0]["group"],
    )


def _row(group: list[Record], metric: str) -> tuple[str, ...]:
    return (
        arm(group[0]),
        group[0]["bilm"]["name"] or "-",
        _ranges([record["seed"] for record in group]),
        _scores(group, "dev", metric),
        _scores(group, "test", metric),
        _paper(group[0], metric),
        _weights(group),
        _time(mean_and_deviation([record["seconds"] for record in group])[0]),
    )


def _scores(group: list[Record], split: str, metric: str) -> str:
    mean, deviation = mean_and_deviation([record["metrics"][split][metric] for record in group])
    return f"{mean:.2f}" + ("" if deviation is None else f" ± {deviation:.2f}")


def _paper(record: Record, metric: str) -> str:
    """The paper's figure, beside its own two arms only."""
    figures = record["config"]["task"].get("paper") or {}
    baseline = record["config"]["elmo"]["where"] == "none"
    if not is_default(record["variant"]) or record["bilm"]["name"] == "untrained":
        return ""
    figure = figures.get("baseline" if baseline else "elmo")
    if isinstance(figure, dict):
        figure = figure.get(metric)
    deviation = None if baseline else figures.get("elmo_deviation")
    return "" if figure is None else f"{figure}" + ("" if deviation is None else f" ± {deviation}")


def _weights(group: list[Record]) -> str:
    """Mean layer weights and gamma at the selected epochs, for each place."""
    cells = []
    for place in group[0]["layer_weights"]:
        chosen = [record["layer_weights"][place][record["epoch"] - 1] for record in group]
        s = " ".join(f"{sum(column) / len(column):.2f}" for column in zip(*chosen, strict=True))
        gamma = mean_and_deviation([record["gamma"][place][record["epoch"] - 1] for record in group])[0]
        cells.append(f"{place}: {s}; {gamma:.2f}")
    return ", ".join(cells)


def _gains(groups: list[list[Record]], metric: str) -> list[str]:
    """What ELMo as the task's page has it adds to each baseline with the same other settings."""
    remarks = []
    for group, baseline in product(groups, groups):
        if not _compares(group[0], baseline[0]):
            continue
        (before, d0), (after, d1) = (
            mean_and_deviation([record["metrics"]["test"][metric] for record in g]) for g in (baseline, group)
        )
        spread = "" if d0 is None or d1 is None else f" (the two deviations together: {d0 + d1:.2f})"
        gain = f"{after - before:+.2f} test {metric}{spread}"
        remarks.append(f"{arm(group[0])}, biLM {group[0]['bilm']['name']}, against the {arm(baseline[0])}: {gain}.")
    figures = groups[0][0]["config"]["task"].get("paper") or {}
    if remarks and all(isinstance(figures.get(key), (int, float)) for key in ("baseline", "elmo")):
        remarks.append(f"The paper's gain: {figures['elmo'] - figures['baseline']:+.2f}.")
    return remarks


def _compares(record: Record, baseline: Record) -> bool:
    """Whether they differ in ELMo alone, or in the word vectors besides."""
    if record["config"]["elmo"]["where"] == "none" or baseline["config"]["elmo"]["where"] != "none":
        return False
    one, other = ({key: value for key, value in r["variant"].items() if key != "vectors"} for r in (record, baseline))
    return not any(key.startswith("elmo.") for key in one) and {**one, "elmo.where": "none"} == other


def _details(groups: list[list[Record]], metric: str) -> list[str]:
    """What else the metric says of test, for each arm, and the most memory that a run of it took."""
    remarks = []
    for group in groups:
        others = [f"{name} {_scores(group, 'test', name)}" for name in group[0]["metrics"]["test"] if name != metric]
        peaks = [record["peak_memory_mib"] for record in group if record.get("peak_memory_mib")]
        told = [f"test {', '.join(others)}"] if others else []
        told += [f"peak memory {max(peaks):,} MiB"] if peaks else []
        if told:
            bilm = group[0]["bilm"]["name"]
            remarks.append(f"{arm(group[0])}{f', biLM {bilm}' if bilm else ''}: {'; '.join(told)}.")
    return remarks


def _machines(records: list[Record]) -> list[str]:
    described = {(m.get("gpu") or m["cpu"], m["cores"], m["threads"], m["accelerator"])
                 for m in (record["machine"] for record in records)}  # fmt: skip
    shown = [
        f"{name} ({cores} cores, {threads} threads, {accelerator})"
        for name, cores, threads, accelerator in sorted(described)
    ]
    dirty = sum(bool(record.get("dirty")) for record in records)
    return [
        f"Machine: {'; '.join(shown)}."
        + (f" {dirty} of {len(records)} runs: code with uncommitted changes." if dirty else "")
    ]


def _ranges(seeds: list[int]) -> str:
    """[1, 2, 3, 7] -> "1-3, 7"."""
    parts: list[list[int]] = []
    for seed in sorted(seeds):
        if parts and seed == parts[-1][-1] + 1:
            parts[-1].append(seed)
        else:
            parts.append([seed])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _time(seconds: float) -> str:
    return (
        f"{seconds:.0f} s"
        if seconds < 120
        else f"{seconds / 60:.0f} min"
        if seconds < 7200
        else f"{seconds / 3600:.1f} h"
    )


def markdown(tables: list[Section]) -> str:
    """results/README.md."""
    parts = ["# Results", INTRODUCTION]
    for table in tables:
        lines = [_pipe(table.header), _pipe(["---"] * len(table.header)), *map(_pipe, table.rows)]
        parts += [f"## {table.title}", table.note, "\n".join(lines)]
        if table.remarks:
            parts.append("\n".join(f"- {line}" for line in table.remarks))
        if table.picture:
            parts.append(f"![{table.title}](figures/{table.picture.name})")
    return "\n\n".join(parts if tables else [*parts, "No run is recorded yet."]) + "\n"


def _pipe(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222}"
    "table{border-collapse:collapse;font-variant-numeric:tabular-nums}td,th{padding:.3rem .7rem;text-align:left;"
    "border-bottom:1px solid #ddd}th{border-bottom:2px solid #888}h2{margin-top:2.5rem}.note{color:#555}"
)


def page(tables: list[Section]) -> str:
    """results/report.html: one page that needs no other file."""
    body = [f"<h1>Results</h1><p>{html.escape(INTRODUCTION.replace('`', ''))}</p>"]
    for table in tables:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table.header)
        rows = "\n".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in table.rows
        )
        remarks = "".join(f"<li>{html.escape(line)}</li>" for line in table.remarks)
        picture = _embedded(table.picture) if table.picture else ""
        body.append(
            f'<h2>{html.escape(table.title)}</h2>\n<p class="note">{html.escape(table.note)}</p>\n'
            f"<table>\n<tr>{head}</tr>\n{rows}\n</table>\n<ul>{remarks}</ul>{picture}"
        )
    return (
        '<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>elmo_bench: results</title>'
        f"<style>{STYLE}</style></head>\n<body>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )


def _embedded(picture: Path) -> str:
    """The picture within the page. Raises `UserError` where it is missing."""
    try:
        data = base64.b64encode(picture.read_bytes()).decode()
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); make the figure again", picture) from None
    return f'<img alt="{html.escape(picture.stem)}" src="data:image/png;base64,{data}" style="max-width:100%">'


def show(tables: list[Section]) -> None:
    """Prints the tables; whole lines where the output is no terminal."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 200, highlight=False)
    for section in tables:
        table = Table(*section.header, title=section.title, title_justify="left")
        for row in section.rows:
            table.add_row(*row)
        console.print(table)
        for line in (section.note, *section.remarks):
            console.print(line, markup=False, soft_wrap=True)


def refresh(results_root: str | Path) -> list[Section]:
    """Writes README.md and report.html anew from all records."""
    tables = [*sections(read_all(results_root)), *figures(results_root)]
    write_text(Path(results_root) / "README.md", markdown(tables))
    write_text(Path(results_root) / "report.html", page(tables))
    return tables


def main() -> None:
    """The entry point."""
    given: dict[str, Any] = cli.arguments(sys.argv[1:], (), ("results_root",))
    results_root = given.get("results_root") or cli.ROOT / "results"
    show(refresh(results_root))
    print(f"written: {Path(results_root) / 'README.md'}, report.html")


if __name__ == "__main__":
    cli.report(main)
