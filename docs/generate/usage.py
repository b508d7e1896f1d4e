"""How the project is used: commands, sweeps, and the answers of the trained heads, their formats and scores."""

from __future__ import annotations

import importlib
import json
import re
import textwrap
from pathlib import Path
from typing import Any

import elmo_bench
from elmo_bench.commands.command import HEADINGS, command, summary
from elmo_bench.configuration import pages, tables
from elmo_bench.configuration.tables import in_order
from elmo_bench.records.store import full_runs, read_all
from elmo_bench.reporting.pages.cards import card
from elmo_bench.reporting.section import pipes
from elmo_bench.reporting.statistics.outcomes import by_scale
from elmo_bench.reporting.tables.tables import overview
from elmo_bench.system.places import RECORDED, ROOT

INPUT: dict[str, dict[str, Any]] = {
    "ner": {"text": "Ida sang in Oslo."},
    "snli": {"premise": "A man plays a guitar.", "hypothesis": "A person makes music."},
    "sst5": {"text": "A fine film."},
    "srl": {"text": "Ida sang in Oslo.", "predicates": [1]},
    "coref": {"text": "Ida has a cat. She likes it."},
    "squad": {"context": "Ida Berg was born in Oslo in 1901.", "question": "Where was Ida Berg born?"},
}


def formats() -> str:
    """What a line of the input and of the output holds, by task, as `predict --help` says it."""
    known = {task: importlib.import_module(f"tasks.{task}").PREDICT for task in in_order(pages.tasks())}
    parts = ("input", "output", "official")
    rows = [
        (f"[{task}](../tasks/{task}/README.md)", *(text[part].replace("<", "\\<") for part in parts))
        for task, text in known.items()
    ]
    return pipes(("task", "a line of the input", "what `prediction` holds", "`format=official`"), rows)


def prediction(task: str) -> str:
    """An input, and what `predict task=TASK` writes for it; numbers are rounded."""
    answer = elmo_bench.load(task, accelerator="cpu").predict([INPUT[task]])[0]
    rounded = json.loads(json.dumps(answer), parse_float=lambda number: round(float(number), 2))
    text = json.dumps(rounded, ensure_ascii=False)
    text = textwrap.fill(text, 110, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False)
    return f"```json\n{text}\n```"


def cards() -> dict[Path, str]:
    """The cards of the heads, by their files."""
    folders = {task: ROOT / "models" / "heads" / task for task in in_order(pages.tasks())}
    return {
        folder / "README.md": card(folder, task, importlib.import_module(f"tasks.{task}"), RECORDED)
        for task, folder in folders.items()
    }


def gains(scale: str) -> str:
    """What the biLM of a scale gives to the tasks, by the reference runs."""
    first, *_ = overview({scale: by_scale(full_runs(read_all(RECORDED, scale)))[scale]})
    return pipes(first.header, first.rows)


def perplexity(name: str) -> str:
    """The perplexities of a biLM on its texts of dev, from its card."""
    known = json.loads((ROOT / "models" / name / "card.json").read_text(encoding="utf-8"))["perplexity"]
    ways = ("forward", "backward", "mean")
    rows = [(f"`{text}`", f"{of['tokens']:,}", *(f"{of[way]:.1f}" for way in ways)) for text, of in known.items()]
    return pipes(("text", "predictions", *ways), rows)


def commands() -> str:
    """The commands under their headings, with what they do and the page to read on, and the targets of `make`."""
    parts = []
    for heading, names in HEADINGS.items():
        on = ((name, command(name).page) for name in names)
        rows = [(f"`elmo-bench {name}`", summary(name), f"[{page}]({page}.md)") for name, page in on]
        title = heading if heading == "biLM" else heading.capitalize()
        parts += [f"### {title}", pipes(("command", "what it does", "more"), rows)]
    targets = re.findall(r"^([a-z-]+):.*## (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    rows = [(f"`make {name}`", what) for name, what in targets]
    return "\n\n".join([*parts, "## Targets of make", pipes(("target", "what it does"), rows)])


def sweeps() -> str:
    """The sweeps and their titles."""
    names = sorted(path.stem for path in (ROOT / "conf" / "sweep").glob("*.yaml"))
    return pipes(("sweep", "what it compares"), [(f"`{name}`", tables.table(name).title) for name in names])
