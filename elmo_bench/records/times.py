"""What a run costs, told as one number everywhere: the median of the computing that recorded runs took."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from elmo_bench.records.record import Record

COMPUTING = (
    "A time is the median of the runs' computing, which other work on the machine hardly changes: CPU time summed over "
    "the cores, or for runs on a GPU the time of their training there."
)


def typical(records: Sequence[Record]) -> float:
    """The median of the seconds of computing of one or more runs."""
    return median(record.device_seconds for record in records)


def in_time(seconds: float) -> str:
    """ "119 s", "57 min", "2.1 h"."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
