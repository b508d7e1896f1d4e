"""Commands that compare results with the paper's: the report, files for a paper, W&B, official scores."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from elmo_bench.commands.command import Command, Examples, File, Folder, Name
from elmo_bench.system import code, places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import files, json_text, limits

if TYPE_CHECKING:  # `--help` does not import it
    from elmo_bench.records.record import Record


class Report(Command):
    """Write the tables and figures of your recorded runs.

    Prints the tables, our results beside the paper's, and writes README.md, replication.md (the paper's findings with a
    verdict each), tasks/TASK.md, tables/SWEEP.SCALE.md, studies.md, report.html (a self-contained page) and report.json
    (the same numbers as data) into the folder, and the gains as a picture, figures/gains.svg. Of your own runs, it
    shows the reference runs of the same settings beside them. The same records give the same bytes. For the project's
    evidence, results_root=results, it also writes the first tables into the project's README.md, between two markers.
    """

    page: ClassVar[str] = "sweeps"
    examples: ClassVar[Examples] = {
        "": "your own runs", "results_root=results": "the reference runs, the project's evidence",
    }  # fmt: skip
    results_root: Folder | None = None
    """folder with runs/; by default results/own/"""

    def run(self) -> None:
        from elmo_bench.reporting.report import refresh
        from elmo_bench.reporting.section import show

        root = Path(self.results_root or places.OWN)
        reference = "results" if places.is_evidence("results") else places.RECORDED
        if self.results_root and not (root.is_dir() or root.is_symlink()):  # a broken link is reported later
            raise UserError(f"there is no such folder; results_root={reference} reports the reference runs", root)
        ours = places.CHECKOUT and places.is_evidence(root)
        sections = refresh(root, places.ROOT / "README.md" if ours else None)
        show(sections)
        if not sections:
            print(f"no run is recorded in {root} yet; results_root={reference} reports the reference runs")
        print(f"written: {root / 'README.md'}, report.html, report.json")


def recorded(root: Path) -> list[Record]:
    """The records of complete runs below a folder. Raises `UserError` if there are none."""
    from elmo_bench.records.store import full_runs, read_all

    if not (records := full_runs(read_all(root))):
        raise UserError("no run is recorded here; `elmo-bench reproduce` makes records", root)
    return records


class Export(Command):
    """The records as CSV and parquet, and every table as LaTeX and Markdown.

    runs.csv and runs.parquet have a row for each run, split and metric: task scale arm variant vectors bilm data seed
    split metric headline value group run, as in pandas from elmo_bench.results(). tables/ has every table of the
    report as .tex, for \\usepackage{booktabs}, and as .md. figures/ has the paper's Figures 1 and 2 of each task that
    has such runs, as .svg and .pdf.
    """

    page: ClassVar[str] = "python"
    examples: ClassVar[Examples] = {
        "output=paper": "your own runs", "output=paper results_root=results": "the reference runs",
    }  # fmt: skip
    output: Folder
    """folder for the files; created if necessary"""
    results_root: Folder | None = None
    """folder with runs/; by default results/own/"""

    def run(self) -> None:
        from elmo_bench.reporting.report import export

        root, output = Path(self.results_root or places.OWN), Path(self.output)
        written = [path.relative_to(output) for path in export(recorded(root), root, output)]
        parts = dict.fromkeys(path.parts[0] + "/" * (len(path.parts) > 1) for path in written)
        print(f"written: {len(written)} files in {output}: {', '.join(parts)}")


class Publish(Command):
    """Make a W&B run of every record, or put a trained head on the Hugging Face hub.

    Online with a key (WANDB_API_KEY or `wandb login`), otherwise offline below results/own/wandb/, for upload by `wandb
    sync`. A W&B run has the id of its record, so a record is published only once. The workspace and the report are made
    online, and need the extra `dashboards`.

    target=hub puts a head (`export_head`) into a model repository, with a card made from its record: usage, data,
    scores with intervals, limits. elmo_bench.load("USER/NAME") opens it. Log in by `hf auth login` or HF_TOKEN.
    """

    page: ClassVar[str] = "wandb"
    again: ClassVar[str] = "running the command again continues"
    examples: ClassVar[Examples] = {
        "": "your own runs", "results_root=results": "the reference runs",
        "project=mine entity=team": "into the project of a team",
        "target=hub head=FOLDER/ner repo=USER/NAME": "a trained head, with its card",
    }  # fmt: skip
    results_root: Folder | None = None
    """folder with runs/; by default results/own/, or if that has none, the reference runs"""
    project: str = Field(default_factory=lambda: os.environ.get("WANDB_PROJECT") or "elmo_bench")
    """W&B project; also the variable WANDB_PROJECT; by default elmo_bench"""
    entity: Name | None = None
    """W&B user or team; by default the key's own"""
    target: Literal["wandb", "hub"] = "wandb"
    """where to publish"""
    head: Folder | None = None
    """with target=hub: folder of a head, or the task of a head that comes with the project"""
    repo: Annotated[str, "USER/NAME"] | None = None
    """with target=hub: the repository, created if necessary"""
    private: bool = False
    """with target=hub: make a new repository private"""

    def _head(self) -> None:
        from elmo_bench.commands.demo import packages
        from elmo_bench.reporting.cards import card
        from elmo_bench.text import hub
        from elmo_bench.trained import heads

        if not (self.head and self.repo):
            raise UserError("target=hub needs head=FOLDER, written by export_head, and repo=USER/NAME")
        known = dict(packages())
        folder = heads.find(self.head) if self.head in known else Path(self.head)
        named = folder.name if folder.name in known else None  # as if typed, so that its files may name code of its own
        task = heads.read(named, folder=folder)["hyper_parameters"]["config"]["task"]["name"]  # checks it, too
        roots = [Path(self.results_root or places.OWN), places.RECORDED]
        text = card(folder, self.repo, known.get(task), *roots)
        files = {name: folder / name for name in (heads.HEAD, heads.CARD)} | {"README.md": text.encode()}
        print(f'{hub.upload(files, self.repo, self.private)}: elmo_bench.load("{self.repo}") opens it')

    def run(self) -> None:
        (self._head if self.target == "hub" else self._runs)()

    def _runs(self) -> None:
        try:
            import wandb  # noqa: F401
        except ImportError:
            raise UserError("wandb is not installed: pip install wandb") from None
        from elmo_bench.configuration.schema import WandbConfig
        from elmo_bench.records import publishing
        from elmo_bench.records.wandb_runs import has_key
        from elmo_bench.reporting import score_tables
        from elmo_bench.reporting.gains import by_scale
        from elmo_bench.reporting.section import page
        from elmo_bench.system.storage.locks import held

        root = Path(self.results_root or places.OWN)
        if self.results_root is None and not any(places.OWN.glob("runs/*/*/*.json")):
            print(f"no run is recorded in {places.OWN} yet: these are the reference runs")
            root = places.RECORDED
        records, options = recorded(root), WandbConfig(project=self.project, entity=self.entity)
        folder = places.OWN if places.is_evidence(root) else root
        with held(folder / "wandb", "another process is publishing these runs"):
            counts = publishing.publish(records, root, folder, options, _with_progress)
        outcomes = ", ".join(f"{number} {outcome}" for outcome, number in counts.items())
        print(f"W&B, project {options.project}: runs: {outcomes}")
        if publishing.unsynced(folder):
            print(f"offline; to upload, with a key: wandb sync {folder}/wandb/offline-run-*")
        if counts[publishing.LOGGED]:
            print(f"logged offline while they trained; to upload: wandb sync {root}/work/*/*/*/wandb/offline-run-*")
        if counts[publishing.FAILED]:
            raise UserError("some runs were not published, as printed above; the same command continues")
        if has_key():
            text = page(f"# {publishing.NAME}", *score_tables.sections(records))
            by_task = [outcome.records for outcome in chain.from_iterable(by_scale(records).values())]
            for name, url in publishing.publish_dashboards(by_task, text, folder, options).items():
                print(f"{name}: {url}")


def _with_progress(records: Sequence[Record]) -> Iterator[Record]:
    """The records to write: with a progress bar on a terminal, otherwise with a line on the remaining time."""
    from elmo_bench.records.times import in_time
    from elmo_bench.system.console import tracked

    begun = monotonic()
    for done, record in enumerate(tracked(records, "publishing")):
        if done == 1 and not sys.stderr.isatty():
            each, rest = monotonic() - begun, len(records) - 1
            took = f"1 of {rest + 1} runs took {in_time(each)}"
            print(f"{took}: the others take about {in_time(each * rest)}", file=sys.stderr)
        yield record


class Score(Command):
    """The official metrics of a file of predictions, as one JSON object.

    The files have the format of the benchmark's official scorer, described in tasks/TASK/README.md, or a format that
    training reads; predictions may also be the JSON lines of predict. No model is needed.
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
    """The metrics of the task, in percent.

    Args:
        task: its name.
        gold, predictions: paths; the predictions may be the JSON lines of `predict`.
        data: keys of `task.data` for reading files: columns, labels, word_column, ...
    """
    scorer = find(task)
    for path in (gold, predictions):
        limits.regular(path, missing=False)
    known = "data" in inspect.signature(scorer).parameters
    if data and not known:
        raise UserError(f"task.data.{next(iter(data))}: the files of {task} need no keys")
    scored = partial(scorer, gold, **({"data": data} if known else {}))
    if not (lines := _answers(predictions)):
        return scored(predictions)
    with tempfile.TemporaryDirectory() as folder:
        official = Path(folder, Path(predictions).name).with_suffix("")
        official.write_text(_official(task, lines, predictions), encoding="utf-8")
        try:
            return scored(str(official))
        except UserError as error:
            raise (UserError(error.message, predictions) if error.path == official else error) from None


def _answers(path: str) -> list[dict[str, Any]]:
    """The JSON objects written by `predict`, each with its answer under "prediction"; none for another file."""
    if files.ending(path) != ".jsonl":
        return []
    from elmo_bench.trained.prediction import read_lines

    rows = (row for _, row in read_lines(path))
    first = next(rows, None)  # only the task reads a table of JSON lines
    return [first, *rows] if isinstance(first, dict) and "prediction" in first else []


def _official(task: str, lines: list[dict[str, Any]], path: str) -> str:
    """The same answers in the official scorer's format, written by the task's reader."""
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    from elmo_bench.configuration import pages

    page: Any = OmegaConf.to_container(pages.read(pages.page(task)), resolve=False)
    reader = instantiate(code.importable(page["task"]["reader"] | {"data": {}}))
    rows, answers = [], []
    for number, line in enumerate(lines, start=1):
        answer = line.get("prediction") if isinstance(line, dict) else None
        if not isinstance(answer, dict):
            raise UserError('no object under "prediction"', path, number)
        rows.append(line | answer)
        answers.append(next((answer[key] for key in ("tags", "label") if key in answer), answer))
    try:
        return reader.official(answers, rows)
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"these are not answers for {task} ({type(error).__name__}: {error})", path) from None


def find(task: str) -> Callable[..., dict[str, float]]:
    """The function named as `score` in the task's configuration."""
    from omegaconf import OmegaConf

    from elmo_bench.configuration import pages

    page = pages.page(task)
    name = OmegaConf.select(pages.read(page), "task.score")
    if not isinstance(name, str):
        raise UserError("the configuration file has no `task.score`", page)
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(code.located(module)), function)
