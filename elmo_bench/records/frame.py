"""Recorded runs as one tidy table for pandas: `elmo_bench.results()`."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.records import store
from elmo_bench.records.run_names import in_words
from elmo_bench.system import places

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ["task", "scale", "arm", "variant", "vectors", "bilm", "seed", "split", "metric", "value", "run"]


def results(folder: str | PathLike[str] | None = None) -> DataFrame:
    """A row for each run, split and metric.

    Columns: task, scale, arm ("baseline" or "elmo"), variant (what else the run changes of its task's configuration, as
    "key=value key=value"), vectors, bilm (None for a baseline), seed, split ("dev" or "test"), metric, value (percent),
    run (its id).

    Args:
        folder: of results; None: your own, results/own. "results" in a checkout: the reference runs.

    Raises:
        UserError: a record is damaged.
    """
    from pandas import DataFrame

    rows = [
        (run.task, run.scale, run.arm, _settings(run.variant), run.vectors, run.bilm_name, run.seed, split, metric,
         float(value), run.run)
        for run in store.whole(store.read_all(Path(places.OWN if folder is None else folder)))
        for split, metrics in run.metrics.items()
        for metric, value in metrics.items()
    ]  # fmt: skip
    return DataFrame(rows, columns=COLUMNS)


def _settings(variant: Mapping[str, Any]) -> str:
    return " ".join(f"{key}={in_words(value)}" for key, value in variant.items())
