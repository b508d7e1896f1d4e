"""Records as W&B runs: one run for every record, from its history, repeatable without doubles."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from elmo_bench.records import items, store, wandb_record
from elmo_bench.records.record import Record
from elmo_bench.reporting.pages import dashboards
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_text
from elmo_bench.system.wandb_runs import Server, brief, has_key, opened, say

DIGEST = "published.sha256"  # in the folder of a whole offline run: the digest of its record, and its project
DASHBOARDS = "dashboards.json"  # where the workspace and the report are, so that they are written once
WRITTEN, UPDATED, THERE, LOGGED, FAILED = "written", "updated", "already there", "logged while they trained", "failed"


def publish(
    records: Iterable[Record],
    results_root: Path,
    folder: Path,
    project: str,
    entity: str | None,
    tracked: Callable[[list[Record]], Iterable[Record]] = iter,
) -> Counter:
    """Makes a W&B run of every record that has none, named by the run's id; returns how many of each outcome there are.

    Args:
        results_root: where the records are from.
        folder: `folder/wandb/` receives what is written offline.
        tracked: passes on the records that have no W&B run yet, and may show the progress.

    Raises:
        UserError: a damaged file of per-example results.
    """
    known = on_server(project, entity) if has_key() else {}
    counts, missing = Counter(), []
    for record in records:
        offline, digest = folder.glob(f"wandb/offline-run-*-{record.run}"), wandb_record.digest(record)
        if known.get(record.run) == digest or [digest, _place(project, entity)] in map(_mark, offline):
            counts[THERE] += 1
        else:
            missing.append(record)
    counts.update(_publish(record, results_root, folder, known, project, entity) for record in tracked(missing))
    return counts


def on_server(project: str, entity: str | None) -> dict[str, str | None]:
    """The ids of the runs that a project has, with the digests of their records; empty where W&B cannot be reached."""
    import wandb

    try:
        runs = wandb.Api(timeout=10).runs(f"{entity}/{project}" if entity else project)
        return {run.id: (run.config.get("record") or {}).get("digest") for run in runs}
    except ValueError:  # there is no such project yet
        return {}
    except Exception as error:
        Server.reachable = False
        say(f"{brief(error)}; the runs are written offline")
        return {}


def _publish(
    record: Record, results_root: Path, folder: Path, known: Mapping[str, str | None], project: str, entity: str | None
) -> str:
    """What was done about a record."""
    work = store.work(results_root, record.scale, record.task, record.run)
    if unsynced(work, record.run):
        return LOGGED
    for earlier in unsynced(folder, record.run):
        if _mark(earlier)[1:] in ([], [_place(project, entity)]):  # not whole, or of this project
            shutil.rmtree(earlier)
    run = opened(
        folder, load=False, project=project, entity=entity, **wandb_record.arguments(record, wandb_record.group(record))
    )
    for row in [] if record.run in known else wandb_record.rows(wandb_record.history(record)):
        run.log(row, row["updates"])
    path = items.path_of(store.place(results_root, record.scale, record.task, record.run))
    examples = items.read(path).get("test") if path.is_file() else None
    wandb_record.conclude(run, record, examples, work / items.PREDICTIONS)
    where, offline = run.folder, run.offline
    run.close()
    if run.run is None or where is None:
        return FAILED
    if offline:
        write_text(where / DIGEST, f"{wandb_record.digest(record)} {_place(project, entity)}\n")
    return UPDATED if record.run in known else WRITTEN


def _place(project: str, entity: str | None) -> str:
    return f"{entity or ''}/{project}"


def _mark(path: Path) -> list[str]:
    """The digest of the record of an offline run, and its project; empty if the run is not whole."""
    mark = path / DIGEST
    return mark.read_text().strip().split(maxsplit=1) if mark.is_file() else []


def unsynced(folder: Path, run: str = "*") -> list[Path]:
    """The folders of offline runs below `folder/wandb/` that have not been uploaded."""
    found = sorted(folder.glob(f"wandb/offline-run-*-{run}"))
    return [path for path in found if not list(path.glob("*.synced"))]


# Workspace and report.


def publish_dashboards(records: Iterable[Record], folder: Path, project: str, entity: str | None) -> dict[str, str]:
    """Saves the workspace and the report of a project; returns their URLs. A repeated call replaces them.

    Raises:
        UserError: the extra `dashboards` is not installed, or W&B does not save them.
    """
    import wandb

    own, path = list(records), folder / "wandb" / DASHBOARDS
    urls = json_text.read(path) if path.is_file() else {}
    try:
        owner = entity or str(wandb.Api(timeout=10).default_entity)  # that of the key
        for name, make in (("workspace", dashboards.workspace), ("report", dashboards.report)):
            urls[name] = dashboards.saved(make(owner, project, own), urls.get(name))
            write_text(path, json_text.dumps(urls, indent=1) + "\n")
    except UserError:
        raise
    except Exception as error:  # whatever W&B makes of a refused request
        raise UserError(f"W&B: {brief(error)}; the workspace or the report was not saved") from error
    return urls
