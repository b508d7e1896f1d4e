"""A chapter of the report's page: sentences, tables and charts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from elmo_bench.reporting.charts.svg import Chart
from elmo_bench.reporting.section import Section


class Chapter(NamedTuple):
    """A part of the page with a line in the list of contents.

    Attributes:
        words: above everything else.
        more: words in a fold: how the numbers are computed.
    """

    anchor: str
    title: str
    words: Sequence[str]
    tables: Sequence[Section] = ()
    charts: Sequence[Chart] = ()
    more: Sequence[str] = ()
