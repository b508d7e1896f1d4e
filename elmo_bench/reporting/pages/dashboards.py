"""A W&B workspace and a W&B report as code, for the runs of one project (extra `dashboards`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elmo_bench.records.record import Record
from elmo_bench.reporting.pages import report as page
from elmo_bench.reporting.statistics.outcomes import by_place
from elmo_bench.reporting.tables import tables
from elmo_bench.system.errors import UserError

NAME = "ELMo on its six tasks"
COST = ("seconds", "tokens_per_second", "peak_memory_mib")
INSTALL = "the workspace and the report need wandb-workspaces: pip install 'elmo_bench[dashboards]'"


def workspace(entity: str, project: str, records: Iterable[Record]) -> Any:
    """A workspace whose sections are scores, training, layer weights and cost; runs are grouped by table and label.

    Raises:
        UserError: the extra is not installed.
    """
    ws, wr = _library()
    panels = _panels(wr, list(records))
    sections = [ws.Section(name=name, panels=each, is_open=True) for name, each in panels.items()]
    groups = ws.RunsetSettings(groupby=[ws.Config("table"), ws.Config("label")])
    return ws.Workspace(name=NAME, entity=entity, project=project, sections=sections, runset_settings=groups)


def report(entity: str, project: str, records: Iterable[Record]) -> Any:
    """A report: the tables of the records, then for every task and scale the panels of its runs, grouped by label.

    Raises `UserError` as `workspace`.
    """
    _, wr = _library()
    own = list(records)
    blocks: list[Any] = [wr.TableOfContents(), wr.MarkdownBlock(text=page.markdown(NAME, "", tables.sections(own)))]
    for chosen in by_place(own):
        task, scale = chosen[0].task, chosen[0].scale
        runs = wr.Runset(
            entity=entity, project=project, name=f"{task}, {scale}", groupby=["config.label"],
            filters=f"Tags() in ['{task}'] and Tags() in ['{scale}']",
        )  # fmt: skip
        panels = [panel for each in _panels(wr, chosen).values() for panel in each]
        blocks += [wr.H2(text=f"Curves: {task}, scale {scale}"), wr.PanelGrid(runsets=[runs], panels=panels)]
    return wr.Report(entity=entity, project=project, title=NAME, blocks=blocks)


def saved(made: Any, url: str | None) -> str:
    """Saves a workspace or report to the server, in the place of the one at `url` if there is one; returns its URL."""
    if url is None:
        return made.save().url
    earlier = type(made).from_url(url)
    for part in ("sections", "runset_settings", "blocks"):
        if hasattr(made, part):
            setattr(earlier, part, getattr(made, part))
    return earlier.save().url


def _library() -> tuple[Any, Any]:
    """The modules of the extra: its workspaces, and its reports with the panels of both."""
    try:
        import wandb_workspaces.reports.v2 as wr  # type: ignore[import-not-found]
        import wandb_workspaces.workspaces as ws  # type: ignore[import-not-found]
    except ImportError:
        raise UserError(INSTALL) from None
    return ws, wr


def _panels(wr: Any, records: Sequence[Record]) -> Mapping[str, list[Any]]:
    """The panels of some runs, by section."""
    monitors = sorted({record.monitor for record in records})
    places = sorted({place for record in records for place in record.gamma})
    rows = {place: [row for record in records for row in record.layer_weights.get(place, ())] for place in places}
    layers = {place: max(map(len, found), default=0) for place, found in rows.items()}
    return {
        "Scores": [wr.BarPlot(title=f"test {name}", metrics=[f"test/{name}"]) for name in monitors],
        "Training": [_curve(wr, f"dev {name}", [f"dev/{name}"]) for name in monitors]
        + [_curve(wr, "training loss", ["train/loss"])],
        "Layer weights": [_curve(wr, f"s_j, {p}", [f"elmo/{p}/s{j}" for j in range(n)]) for p, n in layers.items()]
        + [_curve(wr, f"gamma, {place}", [f"elmo/{place}/gamma"]) for place in places],
        "Cost": [wr.BarPlot(title=key.replace("_", " "), metrics=[key]) for key in COST],
    }


def _curve(wr: Any, title: str, metrics: list[str]) -> Any:
    return wr.LinePlot(title=title, x="epoch", y=metrics)
