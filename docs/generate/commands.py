"""All commands and targets, as their own help says them."""

from __future__ import annotations

import re

from elmo_bench.__main__ import TITLES, summary
from elmo_bench.commands.command import HEADINGS, command
from elmo_bench.configuration import tables
from elmo_bench.reporting.section import pipes
from elmo_bench.system.places import ROOT

PAGE = {"commands": "this page"}


def table() -> str:
    """The commands under their headings, with what they do and the page to read on, and the targets of `make`."""
    parts = []
    for heading, names in HEADINGS.items():
        pages = ((name, command(name).page) for name in names)
        rows = [(f"`elmo-bench {name}`", summary(name), f"[{page}]({page}.md)") for name, page in pages]
        title = TITLES.get(heading, heading.capitalize())
        parts += [f"### {title}", pipes(("command", "what it does", "more"), rows)]
    targets = re.findall(r"^([a-z-]+):.*## (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    rows = [(f"`make {name}`", what) for name, what in targets]
    return "\n\n".join([*parts, "## Targets of make", pipes(("target", "what it does"), rows)])


def sweeps() -> str:
    """The sweeps and their titles."""
    names = sorted(path.stem for path in (ROOT / "conf" / "sweep").glob("*.yaml"))
    return pipes(("sweep", "what it compares"), [(f"`{name}`", tables.table(name).title) for name in names])
