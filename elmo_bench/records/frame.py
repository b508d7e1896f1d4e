"""Recorded runs as one tidy table for pandas: `elmo_bench.results()`."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_bench.records import store
from elmo_bench.records.record import Record
from elmo_bench.records.run_names import changes_in_words
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ["task", "scale", "arm", "variant", "vectors", "bilm", "data", "seed", "split", "metric", "headline", "value",
           "group", "run"]  # fmt: skip


def results(folder: str | PathLike[str] | None = None, headline_only: bool = False) -> DataFrame:
    """A row for each run, split and metric.

    Columns: task, scale, arm ("baseline" or "elmo"), variant (what else the run changes of its task's configuration, as
    "key=value key=value"), vectors, bilm (None for a baseline), data (your own files, empty with the scale's), seed,
    split ("dev" or "test"), metric, headline (whether it is the task's own metric, by which the run selected its epoch;
    the others count something else), value (percent), group (the same for runs that differ in their seed alone,
    whatever files of one name they read), run (its id).

    Args:
        folder: of results; None: your own, results/own. "results" in a checkout: the reference runs.
        headline_only: leave out the rows of other metrics.

    Raises:
        UserError: the folder is none of results, a record is damaged.
    """
    if not isinstance(folder, str | PathLike | None):
        raise UserError(f"{folder!r} is no folder of results: give one path")
    root = Path(places.OWN if folder is None else folder)
    if folder is not None and not (root / "runs").is_dir():
        raise UserError("no folder of results: it has no runs/; without a folder, it is your own", root)
    table = frame_of(store.whole(store.read_all(root)))
    return table.query("headline").reset_index(drop=True) if headline_only else table


def frame_of(records: Iterable[Record]) -> DataFrame:
    """The table of some records; its columns as `results` describes them."""
    from pandas import DataFrame

    rows = [
        (run.task, run.scale, run.arm, variant, run.vectors, run.bilm_name, data, run.seed, split, metric,
         metric == run.monitor, float(value), run.group, run.run)
        for run in records
        for variant in [" ".join(f"{key}={words}" for key, words in changes_in_words(run.variant).items())]
        for data in [" ".join(run.own_data.values())]
        for split, metrics in run.metrics.items()
        for metric, value in metrics.items()
    ]  # fmt: skip
    return DataFrame(rows, columns=COLUMNS).astype({"headline": bool})
