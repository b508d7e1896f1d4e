"""The picture of the packages: each stands above the packages that it imports. Other pictures are drawn by hand."""

from __future__ import annotations

import re
from pathlib import Path

import networkx

from elmo_bench.system.places import ROOT

PAGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img"
 aria-label="The packages of elmo_bench, from commands at the top to system at the bottom"
 font-family="system-ui, 'DejaVu Sans', sans-serif" font-size="12" text-anchor="middle" fill="#1a1f24">
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M1 1L7 4L1 7" fill="none" stroke="#1a1f24"/></marker></defs>
<rect width="100%" height="100%" fill="#ffffff"/>
{parts}
</svg>
"""
BOX = """\
<rect x="{left:g}" y="{top:g}" width="116" height="32" rx="8" fill="#d9eaf4" stroke="#0072b2"/>
<text x="{x:g}" y="{y:g}" dominant-baseline="central">{name}</text>"""
ARROW = '<path d="M{} {}L{} {}" stroke="#1a1f24" stroke-width="0.5" marker-end="url(#tip)"/>'


def files() -> dict[Path, str]:
    """The picture by its file; an arrow is left out if another path leads to the same package."""
    graph = networkx.DiGraph([(one, other) for one, others in imported().items() for other in others])
    rows = [sorted(names) for names in networkx.topological_generations(graph)]
    width, height = 150 * max(map(len, rows)), 68 * len(rows)
    place = {
        name: (width / 2 + 144 * (i - (len(names) - 1) / 2), 34 + 68 * at)
        for at, names in enumerate(rows)
        for i, name in enumerate(names)
    }
    arrows = [
        ARROW.format(place[one][0], place[one][1] + 16, place[other][0], place[other][1] - 16)
        for one, other in sorted(networkx.transitive_reduction(graph).edges)
    ]
    boxes = [BOX.format(left=x - 58, top=y - 16, x=x, y=y, name=name) for name, (x, y) in sorted(place.items())]
    picture = PAGE.format(width=width, height=height, parts="\n".join(arrows + boxes))
    return {ROOT / "docs" / "figures" / "packages.svg": picture}


def imported() -> dict[str, set[str]]:
    """The packages of elmo_bench with the packages that each imports, wherever the import is in the source."""
    folder = ROOT / "elmo_bench"
    found: dict[str, set[str]] = {"task": set()} | {path.parent.name: set() for path in folder.glob("*/__init__.py")}
    for path in folder.rglob("*.py"):
        package = path.relative_to(folder).with_suffix("").parts[0]
        names = re.findall(r"^\s*from elmo_bench\.(\w+)", path.read_text("utf-8"), re.MULTILINE)
        if package in found:
            found[package] |= {*names} & found.keys() - {package}
    return found
