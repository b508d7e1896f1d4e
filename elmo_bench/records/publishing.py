"""Records at W&B: one run for every record, never twice; with the extra, a workspace and a report."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from elmo_bench.configuration.schema import WandbConfig
from elmo_bench.records import items, store
from elmo_bench.records.record import Record
from elmo_bench.records.wandb_runs import brief, digest, go_offline, has_key, of_record
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_text

DIGEST = "published.sha256"  # in the folder of a complete offline run: the digest of its record, and its project
DASHBOARDS = "dashboards.json"  # the URLs of the workspace and the report, so that they are written once
WRITTEN, UPDATED, THERE, LOGGED, FAILED = "written", "updated", "already there", "logged while they trained", "failed"
NAME = "ELMo on its six tasks"
COST = ("seconds", "tokens_per_second", "peak_memory_mib")
INSTALL = "the workspace and the report need wandb-workspaces: pip install 'elmo_bench[dashboards]'"


def publish(
    records: Iterable[Record],
    results_root: Path,
    folder: Path,
    options: WandbConfig,
    tracked: Callable[[list[Record]], Iterable[Record]] = iter,
) -> Counter:
    """Makes a W&B run of every record without one, named by the run's id; returns the count of each outcome.

    Args:
        results_root: the folder of the records.
        folder: `folder/wandb/` receives offline runs.
        options: the project and the entity.
        tracked: yields the records without a W&B run, and may show the progress.
    """
    known = on_server(options) if has_key() else {}
    place = f" {options.entity or ''}/{options.project}"
    counts, missing = Counter(), []
    for record in records:
        written = map(_mark, folder.glob(f"wandb/offline-run-*-{record.run}"))
        if known.get(record.run) == digest(record) or f"{digest(record)}{place}" in written:
            counts[THERE] += 1
        else:
            missing.append(record)
    for record in tracked(missing):
        where = results_root, record.scale, record.task, record.run
        work, path = store.work(*where), items.path_of(store.place(*where))
        if unsynced(work, record.run):
            counts[LOGGED] += 1
            continue
        for earlier in unsynced(folder, record.run):
            if _mark(earlier).endswith(place) or not _mark(earlier):  # of this project, or incomplete
                shutil.rmtree(earlier)
        examples = items.read(path).get("test") if path.is_file() else None
        is_new = record.run not in known
        run = of_record(record, folder, options, examples, work / items.PREDICTIONS, epochs=is_new)
        if run.run is None or run.folder is None:
            counts[FAILED] += 1
            continue
        if run.offline:
            write_text(run.folder / DIGEST, f"{digest(record)}{place}\n")
        counts[WRITTEN if is_new else UPDATED] += 1
    return counts


def on_server(options: WandbConfig) -> dict[str, str | None]:
    """The ids of a project's runs, with the digests of their records; empty if W&B cannot be reached."""
    import wandb

    try:
        runs = wandb.Api(timeout=10).runs("/".join(filter(None, (options.entity, options.project))))
        return {run.id: (run.config.get("record") or {}).get("digest") for run in runs}
    except ValueError:  # there is no such project yet
        return {}
    except Exception as error:
        go_offline(error, "the runs are written offline")
        return {}


def _mark(path: Path) -> str:
    """The digest of the record of an offline run, and its project; empty if the run is incomplete."""
    mark = path / DIGEST
    return mark.read_text().strip() if mark.is_file() else ""


def unsynced(folder: Path, run: str = "*") -> list[Path]:
    """The folders of offline runs below `folder/wandb/` that have not been uploaded."""
    found = sorted(folder.glob(f"wandb/offline-run-*-{run}"))
    return [path for path in found if not list(path.glob("*.synced"))]


# Workspace and report.


def publish_dashboards(
    places: Sequence[Sequence[Record]], tables: str, folder: Path, options: WandbConfig
) -> dict[str, str]:
    """Saves the workspace and the report of a project; returns their URLs. A repeated call replaces them.

    Args:
        places: the records of each task and scale.
        tables: the tables of all records, in Markdown.
        folder: `folder/wandb/` stores the URLs.
        options: the project and the entity.
    """
    import wandb

    path = folder / "wandb" / DASHBOARDS
    urls = json_text.read(path) if path.is_file() else {}
    try:
        owner = options.entity or str(wandb.Api(timeout=10).default_entity)  # the key's default
        for name, new in dashboards(owner, options.project, places, tables).items():
            saved = new
            if name in urls:  # replaces the earlier one
                saved = type(new).from_url(urls[name])
                for part in ("sections", "runset_settings", "blocks"):
                    if hasattr(new, part):
                        setattr(saved, part, getattr(new, part))
            urls[name] = saved.save().url
            write_text(path, json_text.dumps(urls, indent=1) + "\n")
    except UserError:
        raise
    except Exception as error:  # W&B raises many kinds for a refused request
        raise UserError(f"W&B: {brief(error)}; the workspace or the report was not saved") from error
    return urls


def dashboards(entity: str, project: str, places: Sequence[Sequence[Record]], tables: str) -> dict[str, Any]:
    """The workspace and the report of a project.

    The workspace has the sections scores, training, layer weights and cost, its runs grouped by table and label. The
    report has the tables, then for every task and scale the panels of its runs, grouped by label.
    """
    try:
        import wandb_workspaces.reports.v2 as wr  # type: ignore[import-not-found]
        import wandb_workspaces.workspaces as ws  # type: ignore[import-not-found]
    except ImportError:
        raise UserError(INSTALL) from None
    panels = _panels(wr, [*chain.from_iterable(places)])
    sections = [ws.Section(name=name, panels=each, is_open=True) for name, each in panels.items()]
    groups = ws.RunsetSettings(groupby=[ws.Config("table"), ws.Config("label")])
    workspace = ws.Workspace(name=NAME, entity=entity, project=project, sections=sections, runset_settings=groups)
    blocks: list[Any] = [wr.TableOfContents(), wr.MarkdownBlock(text=tables)]
    for records in places:
        task, scale = records[0].task, records[0].scale
        runs = wr.Runset(
            entity=entity, project=project, name=f"{task}, {scale}", groupby=["config.label"],
            filters=f"Tags() in ['{task}'] and Tags() in ['{scale}']",
        )  # fmt: skip
        grid = wr.PanelGrid(runsets=[runs], panels=[*chain.from_iterable(_panels(wr, records).values())])
        blocks += [wr.H2(text=f"Curves: {task}, scale {scale}"), grid]
    return {"workspace": workspace, "report": wr.Report(entity=entity, project=project, title=NAME, blocks=blocks)}


def _panels(wr: Any, records: Sequence[Record]) -> dict[str, list[Any]]:
    """The panels of some runs, by section."""
    monitors = sorted({record.monitor for record in records})
    mixes = {(place, len(epochs[0])) for record in records for place, epochs in record.layer_weights.items()}
    layers = dict(sorted(mixes))  # the largest number of layers at each place

    def curve(title: str, *metrics: str) -> Any:
        return wr.LinePlot(title=title, x="epoch", y=[*metrics])

    return {
        "Scores": [wr.BarPlot(title=f"test {name}", metrics=[f"test/{name}"]) for name in monitors],
        "Training": [*(curve(f"dev {name}", f"dev/{name}") for name in monitors), curve("training loss", "train/loss")],
        "Layer weights": [
            *(curve(f"s_j, {place}", *(f"elmo/{place}/s{j}" for j in range(n))) for place, n in layers.items()),
            *(curve(f"gamma, {place}", f"elmo/{place}/gamma") for place in layers),
        ],
        "Cost": [wr.BarPlot(title=key.replace("_", " "), metrics=[key]) for key in COST],
    }
