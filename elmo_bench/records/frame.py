"""Recorded runs as the rows of one table, `elmo_bench.results()`, and the settings by which they are selected.

Tables, findings, pictures, gains and W&B groups find their runs by `fits`: the runs that have a setting and otherwise
follow their task's configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.configuration import pages
from elmo_bench.configuration.pages import Setting
from elmo_bench.records import store
from elmo_bench.records.record import Record, Started, changes_in_words, label
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ["task", "scale", "arm", "variant", "vectors", "bilm", "data", "seed", "split", "metric", "headline", "value",
           "group", "run"]  # fmt: skip
ELMO = ("elmo", "bilm")  # blocks that a baseline does not have
CHOSEN = {"vectors", "bilm"}  # keys chosen for both arms
CONTEXT_FREE: Setting = {"elmo.layers": 0}  # the controls of conf/sweep/context.yaml
UNTRAINED: Setting = {"bilm": "untrained", "elmo.layer_norm": False}


def results(folder: str | PathLike[str] | None = None, headline_only: bool = False) -> DataFrame:
    """A row for each run, split and metric.

    Columns: task, scale, arm ("baseline" or "elmo"), variant (other changes to its task's configuration, as "key=value
    key=value"), vectors, bilm (None for a baseline), data (your own files, empty for the scale's), seed, split ("dev"
    or "test"), metric, headline (whether it is the task's own metric, by which the run selected its epoch), value
    (percent), group (the same for runs that differ only in their seed; files of the same name but other content make
    different groups), run (its id).

    Args:
        folder: the folder of results; None: your own, results/own. "results" in a checkout: the reference runs.
        headline_only: leave out the rows of other metrics.
    """
    if not isinstance(folder, str | PathLike | None):
        raise UserError(f"{folder!r} is not a folder of results: give one path")
    root = Path(places.OWN if folder is None else folder)
    if folder is not None and not (root / "runs").is_dir():
        raise UserError("not a folder of results: it has no runs/; leave it out to read your own", root)
    table = frame_of(store.full_runs(store.read_all(root)))
    return table.query("headline").reset_index(drop=True) if headline_only else table


def frame_of(records: Iterable[Record]) -> DataFrame:
    """The table of some records, with the columns of `results`."""
    from pandas import DataFrame

    runs = rows_of(records).explode("scores", ignore_index=True)
    scores = DataFrame(runs.scores.tolist(), columns=COLUMNS[8:12])
    return runs.join(scores).reindex(columns=COLUMNS).astype({"headline": bool})


def rows_of(records: Iterable[Record]) -> DataFrame:
    """A row for each run: the columns of `results`, further columns that distinguish groups of runs, and its record.

    Further columns: label (its arm and changes in words), weights and inputs (digests of the biLM and of the data),
    scores (split, metric, headline and value of each), record.
    """
    from pandas import DataFrame

    rows = [
        (run.task, run.scale, run.arm, variant, run.vectors, run.bilm_name, " ".join(run.own_data.values()), run.seed,
         run.group, run.run, arm, str(run.weights), run.data_sha256, scores, run)
        for run in records
        for arm in [label(run.where, run.variant | run.own_data)]
        for variant in [" ".join(f"{key}={words}" for key, words in changes_in_words(run.variant).items())]
        for scores in [[(split, metric, metric == run.monitor, float(value))
                        for split, metrics in run.metrics.items() for metric, value in metrics.items()]]
    ]  # fmt: skip
    return DataFrame(rows, columns=[*COLUMNS[:8], *COLUMNS[-2:], "label", "weights", "inputs", "scores", "record"])


def fits(run: Started, setting: Setting) -> bool:
    """Whether a run has a setting, and otherwise follows its task's configuration.

    A setting has values of `arm` (elmo by default), `vectors`, `bilm` and other dotted keys.
    """
    wanted = normal(setting, run.scale)
    if run.arm != wanted.pop("arm", "elmo") or not run.variant.keys() <= wanted.keys():
        return False
    return all(value(run, key) == each for key, each in wanted.items())


def normal(setting: Setting, scale: str) -> Setting:
    """A setting without keys that change nothing: `arm=elmo`, the scale's own biLM, and ELMo's keys for a baseline."""
    if setting.get("arm") == "baseline" or setting.get("elmo.where") == "none":
        kept = {key: each for key, each in setting.items() if key.partition(".")[0] not in (*ELMO, "arm")}
        return kept | {"arm": "baseline"}
    kept = {key: each for key, each in setting.items() if (key, each) != ("arm", "elmo")}
    if "bilm" in kept and kept["bilm"] == pages.written("scale", scale, "bilm"):
        del kept["bilm"]
    return kept


def in_words(setting: Setting) -> str:
    """A setting as the title of a column: "+ELMo" for the task's configuration itself, otherwise the keys as typed."""
    if setting == {"arm": "baseline"}:
        return "baseline"
    return " ".join(f"{key}={value}" for key, value in setting.items()) or "+ELMo"


def value(run: Started, key: str) -> Any:
    """The value of a dotted key in a run; None if it has none."""
    if key in run.variant:
        return run.variant[key]
    if key in ("vectors", "fraction"):
        return getattr(run, key)
    found: Any = run.config
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def table_of(run: Started) -> str:
    """The name of the first table that contains a run, starting with Table 1; "others" if there is none.

    Table 1 may contain any source of layers and any word vectors, since it compares runs that share them.
    """
    for sweep in pages.sweeps():
        if any(fits(run, setting) for setting in pages.table(sweep).settings):
            return sweep
    return "others" if run.variant.keys() - CHOSEN else "table1"


def is_main(run: Started, random: bool = False) -> bool:
    """Whether a run belongs to the paper's comparison: its task's configuration, any pre-trained word vectors and biLM.

    With `random`: whether it belongs to the same comparison without pre-trained word vectors.
    """
    plain = run.from_bilm and run.variant.get("bilm") not in ("untrained", "tuned") and not run.variant.keys() - CHOSEN
    return plain and random == (run.variant.get("vectors") == "random")
