"""The check that all inputs of a run exist: data, word vectors, biLM. All missing ones are named at once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import BilmConfig, RunConfig, TunedConfig
from elmo_bench.records.settings import data_folder, is_seeded
from elmo_bench.system import places
from elmo_bench.system.errors import UserError, check_missing
from elmo_bench.system.storage import json_text, limits


def check_files(*runs: RunConfig, text_alone: bool = False) -> None:
    """Checks one or several runs of a task, before anything is made or trained; `text_alone` as in `missing_files`."""
    problems = dict.fromkeys(problem for run in runs for problem in missing_files(run, text_alone))
    check_missing(f"task={runs[0].task.name} scale={runs[0].scale.name}", [*problems])


def missing_files(run: RunConfig, text_alone: bool = False) -> list[str]:
    """The missing inputs of a run, one line each; settings that do not go together raise an error first.

    Args:
        run: the run to be prepared.
        text_alone: whether only the text is needed, from its data and its biLM.
    """
    if run.scale.name not in run.task.scales:
        offered = ", ".join(f"scale={scale}" for scale in run.task.scales) or "no scale"
        raise UserError(f"task={run.task.name} has no data for scale={run.scale.name}; it offers {offered}")
    if not text_alone:
        check_choices(run)
    found = [] if run.scale.maker else _missing_data(run)  # generated data are made when needed
    if run.sets and not text_alone:
        from elmo_bench.embedding import tables

        lacking = [block for block in run.sets if tables.locate(block, run.vectors_root) is None]
        found += [tables.missing(block, run.vectors_root) for block in lacking]
    return found + missing_layers(run)


def check_choices(run: RunConfig) -> None:
    """Raises `UserError` if the model cannot use the word vectors or the biLM, or if their choice is ambiguous."""
    words, source = run.task.words, run.vectors.source
    if words is not None and not run.words_dropped:
        path = words.get("path")
        if source == "text" and "size" not in words:
            raise UserError(f"vectors={source}: task={run.task.name} has no word vectors with a size")
        if source != "page" and path is not None:
            chosen = f"vectors={run.vectors.label} and task.words.path={path}"
            raise UserError(f"{chosen}: not both; the file needs vectors=page")
        if source == "page" and path is None and run.scale.asks_for_vectors:
            random = f"scale={run.scale.name} takes random word vectors only with vectors=random"
            raise UserError(f"vectors=page: task.words.path names no file, and {random}")
    bilm = run.bilm
    if run.baseline or not isinstance(bilm, BilmConfig):
        return
    if bilm.seed != 1 and not is_seeded(bilm):
        raise UserError(f"bilm.seed={bilm.seed}: bilm={bilm.name} is not trained by a run; bilm=mini is")
    if bilm.state == "carry" and run.elmo.finetune != "none":
        why = "carried states are computed once, with fixed weights"
        raise UserError(f"bilm.state=carry and elmo.finetune={run.elmo.finetune}: not both; {why}")
    if bilm.state == "carry" and not bilm.cache:
        raise UserError("bilm.state=carry and bilm.cache=false: not both; the layers of a text are computed once")


def _missing_data(run: RunConfig) -> list[str]:
    from elmo_bench.text.hub import obtainable
    from elmo_bench.text.source import of_hub

    data: dict[str, Any] = run.task.data or {}
    folder = data_folder(data)
    paths = [path for value in data.values() for path in (value if isinstance(value, list) else [value])]
    unset = data.get("root", "") is None or any(str(path).startswith("None/") for path in paths)
    problems = []
    if run.data_root is None and unset:
        problems = [f"scale={run.scale.name} needs {places.DATA_ROOT}, and it is not set"]
    elif run.data_root is not None and run.data_root in json_text.dumps(data) and not Path(run.data_root).is_dir():
        problems = [f"{run.data_root}: no such folder; data_root=FOLDER must name the folder with the data"]
    elif folder is not None and not folder.is_dir():
        problems = [f"{folder}: no such folder: task.data.folder names it; check data_root"]
    elif not of_hub(data):
        return _missing_splits(run, data, folder)
    elif not obtainable(data["hub"]):
        name = "task.data.folder=FOLDER" if "folder" in data else "task.data.train=FILE task.data.test=FILE"
        problems = [f"the data: {name} must name them, because the hub, which has {data['hub']}, is switched off"]
    return [problem + _remedy(run) for problem in problems]


def _missing_splits(run: RunConfig, data: dict[str, Any], folder: Path | None) -> list[str]:
    """The missing files of splits, in one line if no folder is named for them."""
    named = {split: data.get(split) for split in ("train", "dev", "test")}
    files = {split: Path(folder or "", name) for split, name in named.items() if isinstance(name, str)}
    missing = {
        split: path
        for split, path in files.items()
        if (folder is not None or os.sep in str(path)) and not os.path.exists(path)
    }
    if missing and folder is None and "folder" in data:
        paths = ", ".join(map(str, missing.values()))
        return [f"the data: task.data.folder=FOLDER must name the folder of {paths}{_remedy(run)}"]
    if missing and (derived := _derived_files(run, {*missing.values()})):
        return [derived]
    return [
        f"{path}: {limits.absent(path)}: task.data.{split} names it{_remedy(run)}" for split, path in missing.items()
    ]


def _derived_files(run: RunConfig, missing: set[Path]) -> str | None:
    """One line for files that are made from others in the same data folder; None for other files."""
    from elmo_bench.sources import pages as sources

    root = Path(run.data_root or "")
    for page in sources.load().values():
        others = [name for source in page.sources.values() if source.is_made for name in source.files]
        here = bool(others) and all((root / name).is_file() for name in others)
        if here and missing <= {root / name for name in page.files}:
            absent = ", ".join(name for name in page.files if root / name in missing)
            command = f"elmo-bench data scale={run.scale.name} task={run.task.name} data_root={root}"
            return (
                f"{root}: no such files: {absent}; `{command}` makes them from files there (in another folder: "
                f"source={root} data_root=FOLDER)"
            )
    return None


def _remedy(run: RunConfig) -> str:
    """How to get the data, as the end of a message."""
    from elmo_bench.sources import pages as sources

    if run.task.download:
        return f"; get it: {run.task.download}"
    offered = any(run.scale.name in page.scales and run.task.name in page.tasks for page in sources.load().values())
    return f"; `{places.fetching(run.scale.name, run.task.name)}` fetches it" if offered else ""


def missing_layers(run: RunConfig) -> list[str]:
    """The message about missing files of the biLM: nothing, or one line."""
    bilm = run.bilm.tuning.source if isinstance(run.bilm, TunedConfig) else run.bilm
    if run.baseline or bilm.maker:
        return []
    files = {key: value for key, value in bilm.plain().items() if key in ("options", "weights", "path")}
    if unnamed := [key for key, place in files.items() if place is None]:
        give = " ".join(f"bilm.{key}=..." for key in unnamed)
        return [f"bilm={bilm.name} names no {' and no '.join(unnamed)}: give {give}, or arm=baseline"]
    absent = {key: Path(place) for key, place in files.items() if not os.path.exists(place)}
    if not absent:
        return []
    give = " ".join(f"bilm.{key}={'FOLDER' if key == 'path' else 'FILE'}" for key in absent)
    licence = f" (licence: {bilm.licence})" if bilm.licence else ""
    where = f"get it: {bilm.download}" if bilm.download else "check the bilm block"
    first, *others = absent.values()
    paths = " and ".join([str(first), *(path.name if path.parent == first.parent else str(path) for path in others)])
    what = f"the {' and '.join(absent)} of bilm={bilm.name}{licence}"
    return [f"{paths}: {limits.absent(first)}: {what}; {where}; {give} names another place"]
