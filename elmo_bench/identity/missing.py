"""The check that everything a run reads is here: data, word vectors, biLM. All that is missing is named at once."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import BilmConfig, LayersConfig, Plain, RunConfig, TunedConfig
from elmo_bench.embedding import tables
from elmo_bench.identity.settings import data_folder, is_seeded
from elmo_bench.sources import pages as sources
from elmo_bench.system import places
from elmo_bench.system.errors import UserError, check_missing
from elmo_bench.system.storage import json_text, limits
from elmo_bench.text.source import obtainable, of_hub


def check_files(*runs: RunConfig) -> None:
    """Checks one or several runs of a task, before anything is made or trained."""
    for run in runs:
        check_scale(run)
        check_vectors(run)
        check_layers(run)
    found = []
    for run in runs:
        sets = [block for block in run.sets if tables.locate(block, run.vectors_root) is None]
        vectors = [tables.missing(block, run.vectors_root) for block in sets]
        found.append([*_missing_data(run), *vectors, *missing_layers(run)])
    if problems := list(dict.fromkeys(problem for each in found for problem in each)):
        _report(runs[0], problems)


def check_text(run: RunConfig) -> None:
    """The same for a run that reads the data and the biLM alone."""
    check_scale(run)
    _report(run, [*_missing_data(run), *missing_layers(run)])


def _report(run: RunConfig, problems: list[str]) -> None:
    """Raises `UserError` for what is missing."""
    check_missing(f"task={run.task.name} scale={run.scale.name}", problems)


def check_scale(run: RunConfig) -> None:
    """Raises `UserError` if the task does not offer the scale."""
    if run.scale.name not in run.task.scales:
        offered = ", ".join(f"scale={scale}" for scale in run.task.scales) or "no scale"
        raise UserError(f"task={run.task.name} has no data for scale={run.scale.name}; it offers {offered}")


def check_vectors(run: RunConfig) -> None:
    """Raises `UserError` if the task's model cannot use the chosen word vectors, or if they are not clearly chosen."""
    words, source = run.task.words, run.vectors.source
    if run.words_dropped or words is None:
        return
    if source == "text" and "size" not in words:
        raise UserError(f"vectors={run.vectors.label}: task={run.task.name} has no word vectors with a size")
    path = words.get("path")
    if source != "page" and path is not None:
        raise UserError(
            f"vectors={run.vectors.label} and task.words.path={path}: not both; the file needs vectors=page"
        )
    if source == "page" and path is None and run.scale.asks_for_vectors:
        raise UserError(
            f"vectors=page: task.words.path names no file, and scale={run.scale.name} takes random word vectors only "
            "with vectors=random"
        )


def check_layers(run: RunConfig) -> None:
    """Raises `UserError` for settings of the source of layers that do not go together."""
    bilm = run.bilm
    if run.baseline or not isinstance(bilm, BilmConfig):
        return
    if bilm.seed != 1 and not is_seeded(bilm):
        raise UserError(f"bilm.seed={bilm.seed}: bilm={bilm.name} is not trained by a run; bilm=mini is")
    if bilm.state != "carry":
        return
    if run.elmo.finetune != "none":
        raise UserError(
            f"bilm.state=carry and elmo.finetune={run.elmo.finetune}: not both; carried states are computed once, with "
            "fixed weights"
        )
    if not bilm.cache:
        raise UserError("bilm.state=carry and bilm.cache=false: not both; the layers of a text are computed once")


def _missing_data(run: RunConfig) -> list[str]:
    data: Any = run.task.data or {}
    if run.scale.maker:  # the data are generated
        return []
    if run.data_root is None and _below_nothing(data):
        return [f"scale={run.scale.name} needs {places.DATA_ROOT}, and it is not set{_source(run)}"]
    if run.data_root is not None and run.data_root in json_text.dumps(data) and not Path(run.data_root).is_dir():
        return [
            f"{run.data_root}: no such folder; data_root=FOLDER must name the one that holds the data{_source(run)}"
        ]
    folder = data_folder(data)
    if folder is not None and not folder.is_dir():
        return [f"{folder}: no such folder: task.data.folder names it; check data_root{_source(run)}"]
    if of_hub(data):
        return _unreachable(run, data)
    return _missing_splits(run, data, folder)


def _missing_splits(run: RunConfig, data: Plain, folder: Path | None) -> list[str]:
    """The files of splits that are not there, in one line if no folder is named for them."""
    named = {split: data.get(split) for split in ("train", "dev", "test")}
    files = {split: Path(folder or "", name) for split, name in named.items() if isinstance(name, str)}
    missing = {
        split: path
        for split, path in files.items()
        if (folder is not None or os.sep in str(path)) and not os.path.exists(path)
    }
    if missing and folder is None and "folder" in data:
        paths = ", ".join(map(str, missing.values()))
        return [f"the data: task.data.folder=FOLDER must name the folder of {paths}{_source(run)}"]
    if made := _of_other_files(run, missing.values()):
        return [made]
    return [
        f"{path}: {limits.absent(path)}: task.data.{split} names it{_source(run)}" for split, path in missing.items()
    ]


def _of_other_files(run: RunConfig, missing: Collection[Path]) -> str | None:
    """One line for files that a data set makes of others in the same data folder; None if they are not such."""
    root = Path(run.data_root or "")
    for page in sources.load().values():
        others = [name for source in page.sources.values() if source.is_made for name in source.files]
        here = bool(others) and all((root / name).is_file() for name in others)
        if here and missing and {*missing} <= {root / name for name in page.files}:
            absent = ", ".join(name for name in page.files if root / name in missing)
            command = f"elmo-bench data scale={run.scale.name} task={run.task.name} data_root={root}"
            return (
                f"{root}: no such files: {absent}; `{command}` makes them of others in this folder (in another folder: "
                f"source={root} data_root=FOLDER)"
            )
    return None


def _unreachable(run: RunConfig, data: Plain) -> list[str]:
    """A data set of the hub that is not in the local cache, if the hub may not be used; nothing is asked of the hub."""
    if obtainable(data["hub"]):
        return []
    name = "task.data.folder=FOLDER" if "folder" in data else "task.data.train=FILE task.data.test=FILE"
    return [f"the data: {name} must name them, as the hub, which has {data['hub']}, is switched off{_source(run)}"]


def _source(run: RunConfig) -> str:
    """How to get the data, as the end of a message."""
    if run.task.download:
        return f"; get it: {run.task.download}"
    offered = any(run.scale.name in page.scales and run.task.name in page.tasks for page in sources.load().values())
    return f"; `{places.fetching(run.scale.name, run.task.name)}` fetches it" if offered else ""


def _below_nothing(data: Plain) -> bool:
    """Whether a path of the data begins with a folder that is not set."""
    paths = [path for value in data.values() for path in (value if isinstance(value, list) else [value])]
    return data.get("root", "") is None or any(str(path).startswith("None/") for path in paths)


def missing_layers(run: RunConfig) -> list[str]:
    """What to say of a biLM whose files are not here: nothing, or one line."""
    bilm = run.bilm.tuning.source if isinstance(run.bilm, TunedConfig) else run.bilm
    if run.baseline or bilm.maker:
        return []
    files = {key: value for key, value in bilm.plain().items() if key in ("options", "weights", "path")}
    if unnamed := [key for key, place in files.items() if place is None]:
        give = " ".join(f"bilm.{key}=..." for key in unnamed)
        return [f"bilm={bilm.name} names no {' and no '.join(unnamed)}: give {give}, or arm=baseline"]
    absent = {key: place for key, place in files.items() if not os.path.exists(place)}
    return [_missing_bilm(bilm, absent)] if absent else []


def _missing_bilm(bilm: LayersConfig, absent: dict[str, str]) -> str:
    """One line for the missing files of a biLM, by their keys."""
    give = " ".join(f"bilm.{key}={'FOLDER' if key == 'path' else 'FILE'}" for key in absent)
    licence = f" (licence: {bilm.licence})" if bilm.licence else ""
    where = f"get it: {bilm.download}" if bilm.download else "check the bilm block"
    first, *others = map(Path, absent.values())
    files = " and ".join([str(first), *(path.name if path.parent == first.parent else str(path) for path in others)])
    keys = " and ".join(absent)
    return (
        f"{files}: {limits.absent(first)}: the {keys} of bilm={bilm.name}{licence}; {where}; {give} names another place"
    )
