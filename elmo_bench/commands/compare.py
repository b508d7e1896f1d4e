"""Commands that compare results with the paper's: the report, files for a paper, W&B, official scores."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from elmo_bench.commands.command import Command, Examples, File, Folder, Name
from elmo_bench.system import code, places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import files, json_text

if TYPE_CHECKING:  # `--help` does not import it
    from elmo_bench.records.record import Record


class Report(Command):
    """Write the tables and figures of your recorded runs.

    Prints the tables, our results beside the paper's, and writes README.md, replication.md (the paper's findings with a
    verdict each), tasks/TASK.md, tables/SWEEP.SCALE.md, studies.md, report.html (a self-contained page) and report.json
    (the same numbers as data) into the folder, and the gains as a picture, figures/gains.svg. The same records give the
    same bytes. For the project's evidence, results_root=results, it also writes the first tables into the project's
    README.md, between two markers.
    """

    page: ClassVar[str] = "sweeps"
    examples: ClassVar[Examples] = {
        "": "your own runs", "results_root=results": "the reference runs, the project's evidence",
    }  # fmt: skip
    results_root: Folder | None = None
    """folder with runs/; by default results/own/"""

    def run(self) -> None:
        from elmo_bench.reporting.pages.report import refresh
        from elmo_bench.reporting.section import show

        root = Path(self.results_root or places.OWN)
        reference = "results" if places.is_evidence("results") else places.RECORDED
        if self.results_root and not (root.is_dir() or root.is_symlink()):  # a link is told of where it is followed
            raise UserError(f"there is no such folder; results_root={reference} reports the reference runs", root)
        ours = places.CHECKOUT and places.is_evidence(root)
        sections = refresh(root, places.ROOT / "README.md" if ours else None)
        show(sections)
        if not sections:
            print(f"no run is recorded in {root} yet; results_root={reference} reports the reference runs")
        print(f"written: {root / 'README.md'}, report.html, report.json")


def recorded(root: Path) -> list[Record]:
    """The records of whole runs below a folder. Raises `UserError` if there is none."""
    from elmo_bench.records.store import read_all, whole

    if not (records := whole(read_all(root))):
        raise UserError("no run is recorded here; `elmo-bench reproduce` makes records", root)
    return records


class Export(Command):
    """The records as CSV and parquet, and every table as LaTeX and Markdown.

    runs.csv and runs.parquet have a row for each run, split and metric: task scale arm variant vectors bilm data seed
    split metric headline value group run, as elmo_bench.results() gives them to pandas. tables/ has every table of the
    report as .tex, for \\usepackage{booktabs}, and as .md.
    """

    page: ClassVar[str] = "python"
    examples: ClassVar[Examples] = {
        "output=paper": "your own runs", "output=paper results_root=results": "the reference runs",
    }  # fmt: skip
    output: Folder
    """folder that is written into; it is made"""
    results_root: Folder | None = None
    """folder with runs/; by default results/own/"""

    def run(self) -> None:
        from elmo_bench.reporting.pages.export import export

        root = Path(self.results_root or places.OWN)
        written = export(recorded(root), root, Path(self.output))
        print(f"written: {len(written)} files in {self.output}: runs.csv, runs.parquet, tables/")


class Publish(Command):
    """Make a W&B run of every record, and a workspace and a report of them.

    Online with a key (WANDB_API_KEY or `wandb login`), else offline below results/own/wandb/, to be uploaded by `wandb
    sync`. A run's id is that of its record, so that a record is published once. The workspace and the report are made
    online, and need the extra `dashboards`.
    """

    page: ClassVar[str] = "wandb"
    again: ClassVar[str] = "running the command again goes on"
    examples: ClassVar[Examples] = {
        "": "your own runs", "results_root=results": "the reference runs",
        "project=mine entity=team": "into the project of a team",
    }  # fmt: skip
    results_root: Folder | None = None
    """folder with runs/; by default results/own/, or if that has none, the reference runs"""
    project: str = Field(default_factory=lambda: os.environ.get("WANDB_PROJECT") or "elmo_bench")
    """of W&B; also the variable WANDB_PROJECT; by default elmo_bench"""
    entity: Name | None = None
    """of W&B; by default the key's own"""

    def run(self) -> None:
        try:
            import wandb  # noqa: F401
        except ImportError:
            raise UserError("wandb is not installed: pip install wandb") from None
        from elmo_bench.reporting.pages import publishing
        from elmo_bench.system.storage.locks import held
        from elmo_bench.system.wandb_runs import has_key

        root = Path(self.results_root or places.OWN)
        if self.results_root is None and not any(places.OWN.glob("runs/*/*/*.json")):
            print(f"no run is recorded in {places.OWN} yet: these are the reference runs")
            root = places.RECORDED
        records, project = recorded(root), self.project
        folder = places.OWN if places.is_evidence(root) else root
        with held(folder / "wandb", "another process is publishing these runs"):
            counts = publishing.publish(records, root, folder, project, self.entity, _with_progress)
        print(
            f"W&B, project {project}: runs: " + ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
        )
        if publishing.unsynced(folder):
            print(f"offline; to upload, with a key: wandb sync {folder}/wandb/offline-run-*")
        if counts[publishing.LOGGED]:
            print(f"logged offline while they trained; to upload: wandb sync {root}/work/*/*/*/wandb/offline-run-*")
        if counts[publishing.FAILED]:
            raise UserError("some runs were not published, as said above; the same command goes on")
        if has_key():
            for name, url in publishing.publish_dashboards(records, folder, project, self.entity).items():
                print(f"{name}: {url}")


def _with_progress(records: Sequence[Record]) -> Iterator[Record]:
    """The records that are written: with a progress bar on a terminal, else with a line on how long the rest takes."""
    from rich.console import Console
    from rich.progress import track

    from elmo_bench.records.times import in_time

    console, begun = Console(stderr=True), monotonic()
    bar = track(records, "publishing", console=console, transient=True, disable=not console.is_terminal)
    for done, record in enumerate(bar):
        if done == 1 and not console.is_terminal:
            rest = len(records) - 1
            print(f"1 of {rest + 1} runs took {in_time(monotonic() - begun)}: the others take about "
                  f"{in_time((monotonic() - begun) * rest)}", file=sys.stderr)  # fmt: skip
        yield record


class Score(Command):
    """The official metrics of a file of predictions, as one JSON object.

    The files are in the format of the benchmark's official scorer, described in tasks/TASK/README.md, or in one that
    training reads. No model is needed.
    """

    page: ClassVar[str] = "predicting"
    examples: ClassVar[Examples] = {
        "task=ner gold=test.iob2 predictions=answers.iob2": "prints precision, recall and F1 in percent",
    }
    task: Name
    """the benchmark, a file in conf/task/"""
    gold: File
    """file with the correct answers"""
    predictions: File
    """file with the answers to score, in the same format"""
    data: dict[str, Any] = Field(default={}, alias="task.data.KEY")
    """how files are read, as in training: columns, labels, word_column, tag_names ..."""

    def run(self) -> None:
        print(json_text.dumps(score(self.task, self.gold, self.predictions, self.data)))


def score(task: str, gold: str, predictions: str, data: Mapping[str, Any] | None = None) -> dict[str, float]:
    """The metrics of the task, in percent. No model is needed, so no large library is imported.

    Args:
        task: its name.
        gold, predictions: paths.
        data: keys of `task.data` that say how files are read: columns, labels, word_column, ...

    Raises:
        UserError: a key that the task does not know,
            an unknown task, a missing or malformed file (with its line), answers as JSON lines.
    """
    scorer = find(task)
    for path in (gold, predictions):
        files.check(path)
    _check_format(predictions)
    if not data:
        return scorer(gold, predictions)
    if "data" not in inspect.signature(scorer).parameters:
        raise UserError(f"task.data.{next(iter(data))}: the files of {task} are read without keys")
    return scorer(gold, predictions, data=data)


def _check_format(predictions: str) -> None:
    """Raises `UserError` for the JSON lines of `predict`, each of which has its answer under the key "prediction"."""
    if files.ending(predictions) == ".parquet":
        return
    with files.open_text(predictions) as lines:
        first = next(lines, "")
    try:
        row = json_text.parse(first) if json_text.begins_object(first) else None
    except ValueError:
        return  # an object of several lines
    if isinstance(row, dict) and "prediction" in row:
        raise UserError("JSON lines of predict; its format=official writes the file that is scored", predictions, 1)


def find(task: str) -> Callable[..., dict[str, float]]:
    """The function that the task's configuration names as `score`."""
    from omegaconf import OmegaConf

    from elmo_bench.configuration import pages

    page = pages.page(task)
    name = OmegaConf.select(pages.read(page), "task.score")
    if not isinstance(name, str):
        raise UserError("the configuration file has no `task.score`", page)
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(code.located(module)), function)
