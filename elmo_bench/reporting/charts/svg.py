"""Pictures as SVG: matplotlib draws them, and what it writes is made small, repeatable and fit for a page.

The same data give the same bytes with the same version of matplotlib. Text stays text; `tip` gives a part a tooltip.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SVG, LINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
INK = "#1a1f24"  # of text and axes; on a page the colour of its text
FAINT = "#7a828a"
COLOURS = {"baseline": "#c4500a", "elmo": "#0072b2"}
GREEN = "#00805c"
LAYERS = ("#7a828a", "#0072b2", "#c4500a", GREEN, "#a3478a")  # of layer 0, 1, 2 and so on
DASHES = ("-", "--", "-.", ":")
TIP = "tip:"
STYLE = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "path.simplify": False,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
}


class Chart(NamedTuple):
    """A picture before it is drawn.

    Args:
        name: of its own within a page; the ids in its SVG begin with it.
        alt: what the picture shows, in words; `title` is the caption.
        size: width and height in inches. Up to 3.6 inches fit a phone without being scaled down.
        data: what `draw` draws, as plain JSON.
    """

    name: str
    title: str
    alt: str
    size: tuple[float, float]
    data: dict[str, Any]
    draw: Callable[[Figure, Mapping[str, Any]], None]


def tip(artist: Artist, text: str) -> None:
    """Gives a part of the picture a tooltip."""
    artist.set_gid(TIP + text)


def axes_in(figure: Figure, left: float, right: float, bottom: float, top: float) -> Axes:
    """Axes within margins in inches."""
    width, height = figure.get_size_inches()
    return figure.add_axes((left / width, bottom / height, 1 - (left + right) / width, 1 - (bottom + top) / height))


def band(axes: Axes, x: Sequence[float], rows: Sequence[Sequence[float]], label: str, i: int, colour: str) -> None:
    """A line through the means of the rows and, between their smallest and largest values, a band.

    Args:
        rows: for each x the values of all seeds that have one.
        i: the number of the line, which chooses its dashes.
    """
    means = [sum(row) / len(row) for row in rows]
    if max(map(len, rows), default=0) > 1:
        axes.fill_between(x, list(map(min, rows)), list(map(max, rows)), color=colour, alpha=0.2, linewidth=0)
    (line,) = axes.plot(x, means, color=colour, linestyle=DASHES[i % len(DASHES)], linewidth=1.6, label=label)
    tip(line, f"{label}: {means[0]:.2f} at {x[0]:g}, {means[-1]:.2f} at {x[-1]:g}")


def drawn(chart: Chart, page: bool = True) -> str:
    """The picture as an SVG element for a page, in the colour of its text, or else as a file with a white ground."""
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    file, unwritten = io.StringIO(), dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with style.context(["default", {**STYLE, "svg.hashsalt": chart.name}]):
        figure = Figure(figsize=chart.size)
        FigureCanvasSVG(figure)
        chart.draw(figure, chart.data)
        figure.savefig(file, format="svg", transparent=page, metadata=unwritten)
    return _tidy(file.getvalue(), chart, page)


def _tidy(text: str, chart: Chart, page: bool) -> str:
    """Without metadata, unused ids, superfluous digits and fonts; with a name, tooltips and the size in pixels."""
    root = ElementTree.fromstring(text)
    used = set(re.findall(r'(?:url\(|href=")#([^")]+)', text))
    for node in root.iter():
        _tidy_node(node, chart.name, used)
    root[:] = _shown(root)
    width, height = (f"{96 * inches:.0f}" for inches in chart.size)
    root.attrib |= {"width": width, "height": height, "role": "img", "aria-label": f"{chart.title}. {chart.alt}",
                    "stroke-linejoin": "round", "font-family": "system-ui, 'DejaVu Sans', sans-serif"}  # fmt: skip
    ElementTree.register_namespace("", SVG[1:-1])
    written = ElementTree.tostring(root, encoding="unicode")
    return written.replace(INK, "currentColor") if page else written


def _shown(nodes: Iterable[ElementTree.Element]) -> list[ElementTree.Element]:
    """The parts of a picture that show something, taken out of groups that have neither a name nor a tooltip."""
    shown: list[ElementTree.Element] = []
    for node in nodes:
        node[:] = _shown(node)
        node.text, node.tail = (node.text or "").strip() or None, "\n"
        if node.tag in (f"{SVG}metadata", f"{SVG}style"):
            continue
        if node.tag == f"{SVG}g" and not node.attrib and node.find(f"{SVG}title") is None:
            shown += node
        elif node.get("style") != "fill: none" and (len(node) or node.tag != f"{SVG}defs"):
            shown.append(node)
    return shown


def _tidy_node(node: ElementTree.Element, name: str, used: set[str]) -> None:
    own = node.attrib.pop("id", "")
    if own in used:
        node.set("id", f"{name}-{own}")
    elif own.startswith(TIP):
        title = ElementTree.Element(f"{SVG}title")
        title.text = own.removeprefix(TIP)
        node.insert(0, title)
    if target := node.attrib.pop(f"{LINK}href", None):
        node.set("href", f"#{name}-{target[1:]}")
    for key, value in node.attrib.items():
        node.set(key, _short(key, value.replace("url(#", f"url(#{name}-")))
    if node.get("transform", "").startswith("rotate(-0 "):
        del node.attrib["transform"]


def _short(key: str, value: str) -> str:
    if key == "style":
        return value.replace("font: 9px 'DejaVu Sans'; ", "").replace("font-family: 'DejaVu Sans'; ", "")
    if key == "d":  # a tenth of a point cannot be seen
        return re.sub(r"\s*([A-Za-z])\s*", r"\1", _rounded(value, 1))
    return _rounded(value, 2) if key in ("x", "y", "width", "height", "transform", "points") else value


def _rounded(value: str, digits: int) -> str:
    return re.sub(r"-?\d+\.\d+", lambda found: f"{round(float(found[0]), digits):g}", value)
