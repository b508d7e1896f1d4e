"""Records and tables in the formats of a paper and of pandas: CSV and parquet, LaTeX (booktabs) and Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from elmo_bench.records.frame import frame_of
from elmo_bench.records.record import Record
from elmo_bench.reporting import charts
from elmo_bench.reporting.pages import report
from elmo_bench.reporting.section import Section, inert
from elmo_bench.system.storage.files import write_bytes

MATHS = {"±": r"$\pm$", "−": "$-$", "×": r"$\times$", "→": r"$\rightarrow$", "≥": r"$\geq$", "≤": r"$\leq$",
         "γ": r"$\gamma$", "σ": r"$\sigma$", "α": r"$\alpha$", "ρ": r"$\rho$", "λ": r"$\lambda$"}  # fmt: skip
LATEX = str.maketrans({
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{sign: rf"\{sign}" for sign in "&%$#_{}"}, **MATHS,
})  # fmt: skip


def export(records: Sequence[Record], results_root: Path, output: Path) -> list[Path]:
    """Writes runs.csv and runs.parquet, a row for each run, split and metric, each table as .tex and .md, and the
    paper's figures as .svg and .pdf.

    Raises:
        UserError: a record or a study that cannot be read; a file that cannot be written.
    """
    table, named = frame_of(records), Counter[str]()
    made = report.made(records, results_root)
    contents = {"runs.csv": table.to_csv(index=False).encode(), "runs.parquet": table.to_parquet(index=False)}
    contents |= charts.files(made.pictures)
    for section in made.sections:
        stem = re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-")[:80]
        named[stem] += 1
        name = f"tables/{stem}" + (f"-{named[stem]}" if named[stem] > 1 else "")
        contents |= {f"{name}.tex": latex(section).encode(), f"{name}.md": inert(section.markdown() + "\n").encode()}
    for name, content in contents.items():
        write_bytes(output / name, content)
    return [output / name for name in contents]


def latex(section: Section) -> str:
    r"""A table as LaTeX, for \usepackage{booktabs}: the title as its caption, note and remarks as comments."""
    from pandas import DataFrame

    rows = [[_tex(cell) for cell in row] for row in section.rows]
    frame = DataFrame(rows, columns=range(len(section.header)))
    body = frame.to_latex(
        index=False, header=list(map(_tex, section.header)), escape=False, caption=_tex(section.title),
        column_format="l" + "r" * (len(section.header) - 1), position="t",
    )  # fmt: skip
    said = (line for text in (section.note, *section.remarks) for line in text.splitlines())
    return "".join(f"% {line}\n" for line in said) + body


def _tex(cell: str) -> str:
    return " ".join(cell.replace("`", "").split()).translate(LATEX)
