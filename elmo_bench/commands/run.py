"""Commands that make results: data, runs, sweeps of runs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NoReturn

from pydantic import Field

from elmo_bench.commands.command import Command, Examples, Folder, Name
from elmo_bench.system import children, places
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal import console

if TYPE_CHECKING:  # `--help` does not import them
    from omegaconf import DictConfig

    from elmo_bench.records.record import Record
    from elmo_bench.sweeps.local import SweepOutcome
    from elmo_bench.sweeps.request import SweepRequest

Thousand = Annotated[int, Field(ge=1, le=1000), "N"]
DOWNLOADS = ".downloads"  # in data_root
RESUMES = "running the command again resumes from the last completed epoch"


class OfRuns(Command):
    """A command whose further arguments are keys of the configuration of runs."""

    overrides: ClassVar[bool] = True
    again: ClassVar[str] = RESUMES


class OfSweeps(OfRuns):
    """A command that trains runs of a sweep."""

    task: Name | None = None
    """a benchmark, a file in conf/task/, several as ner,srl, or all; by default the one of the sweep"""
    scale: str = "mini"
    """data and biLM: mini (generated here), open or paper"""
    seeds: Thousand | None = None
    """the seeds from 1 to this number; by default those of its file"""
    jobs: Thousand | None = None
    """how many runs are trained at a time; by default two, on two cores without a GPU"""
    train: bool = Field(default=True, alias="run")
    """false: only the table of what is recorded"""

    def request(self, sweep: str | None = None) -> SweepRequest:
        """What the arguments ask for. Raises `UserError` as `request.of` does."""
        from elmo_bench.sweeps import request

        return request.of(self.plain() | {"sweep": sweep}, self.typed, sweep)


class Reproduce(OfSweeps):
    """The paper's Table 1 for a task: the baseline and +ELMo over several seeds.

    Prints your results beside the reference runs and the paper, and writes a report of your runs,
    results/own/README.md. A run that has a record there is not run again.

    Any other key of the configuration may be given as KEY=VALUE, and +KEY=VALUE adds one. `elmo-bench train task=ner
    --cfg job` prints the whole configuration of a run.
    """

    page: ClassVar[str] = "getting-started"
    examples: ClassVar[Examples] = {
        "task=ner": "at the mini scale, offline",
        "task=ner recorded=true": "the reference runs, at once",
        "task=ner controls=true": "which part of the gain is context",
        "task=all scale=open seeds=3 data_root=FOLDER": "every task on open data",
    }
    task: Name | None = "ner"
    """a benchmark, a file in conf/task/, several as ner,srl, or all"""
    seeds: Thousand | None = 1
    """train each arm with the seeds from 1 to this number"""
    controls: bool = False
    """also train ELMo without context (elmo.layers=0) and bilm=untrained"""
    recorded: bool = False
    """show the reference runs, and train nothing"""

    def run(self) -> None:
        from elmo_bench.reporting.pages.report import refresh
        from elmo_bench.reporting.section import show
        from elmo_bench.reporting.tables import tables
        from elmo_bench.sweeps.local import run_missing
        from elmo_bench.sweeps.plan import plan

        wanted = self.request("context" if self.controls else "table1")
        if wanted.recorded:
            show_recorded(wanted)
            return
        outcome = run_missing(plan(wanted))
        if outcome.recorded:
            refresh(root := outcome.plan.config.results_root)
            show(tables.beside(_with_controls(outcome)))
            print(f"dev scores, layer weights, all intervals: {root}/README.md and report.html")
        if outcome.plan.runs:
            print(outcome.line(), flush=True)
        outcome.raise_first()


def _with_controls(outcome: SweepOutcome) -> list[Record]:
    """The records of the runs that were asked for, and those of their controls that are there."""
    from elmo_bench.records import store
    from elmo_bench.records.frame import is_context_control

    request, asked = outcome.plan.request, {record.run for record in outcome.recorded}
    tasks = [] if request.changes else request.tasks
    there = store.whole([*outcome.records.values()])
    return [each for each in there if each.run in asked or (each.task in tasks and is_context_control(each))]


def show_recorded(wanted: SweepRequest) -> None:
    """Prints the tables of the reference runs of the paper's comparison, all seeds of them.

    Raises:
        UserError: settings are changed, or there is no such run.
    """
    from elmo_bench.records import store
    from elmo_bench.records.frame import is_context_control, is_main
    from elmo_bench.reporting.section import show
    from elmo_bench.reporting.tables import tables

    if wanted.changes:
        raise UserError(f"recorded=true shows the arms of the scale without changes: leave out {wanted.changes[0]}")
    found = [each for task in wanted.tasks for each in store.read_all(places.RECORDED, wanted.scale, task)]
    shown = [record for record in found if is_main(record) or is_context_control(record)]
    if not shown:
        raise UserError("there is no such reference run (without recorded=true it is trained)")
    show(tables.sections(shown))


class Sweep(OfSweeps):
    """A table or figure of the paper as one sweep, ours beside theirs.

    Trains the runs that have no record, each in a process of its own, and prints the table that they make beside the
    paper's. A run that fails does not stop the others. The last line says how many are recorded, failed and missing;
    the same command again runs only what is missing.

    The table is written to tables/SWEEP.SCALE.md in the folder of results, with the rows of all tasks that have such
    runs; of +sweep=figure1 and figure2 also a picture for each task, figures/SWEEP.SCALE.TASK.svg and .pdf.

    Any other key of the configuration may be given as KEY=VALUE, and +KEY=VALUE adds one.
    """

    page: ClassVar[str] = "sweeps"
    again: ClassVar[str] = "the same command again runs what is missing"
    examples: ClassVar[Examples] = {
        "+sweep=table2 task=snli": "which layers, how regularised: dev scores on generated data",
        "+sweep=table1 task=all scale=open seeds=3 data_root=FOLDER": "Table 1 on open data",
        "+sweep=table2 task=snli on=slurm cluster.run.partition=gpu": "as jobs of a cluster; returns at once",
        "+sweep=figure2 task=all run=false": "the table of the recorded runs; nothing is trained",
    }
    sweep: Name | None = Field(default=None, alias="+sweep")
    """a file in conf/sweep/ (required)"""
    on: str = "local"
    """local: processes here; slurm: jobs of a cluster, with keys cluster.KEY of conf/cluster/"""

    def run(self) -> None:
        from elmo_bench.reporting import charts
        from elmo_bench.reporting.section import show
        from elmo_bench.reporting.tables import paper
        from elmo_bench.sweeps import queued
        from elmo_bench.sweeps.local import run_missing
        from elmo_bench.sweeps.plan import plan
        from elmo_bench.system.storage.files import write_bytes

        planned = plan(self.request(self.sweep))
        if planned.request.on != "local" and planned.request.run:
            queued.submit(planned)
            return
        outcome = run_missing(planned)
        if outcome.plan.runs:  # else nothing could be run, and why has been said
            name, made = paper.write(outcome)
            show(paper.sections(made))
            root = Path(outcome.plan.config.results_root)
            ours = places.is_evidence(root)
            print(f"written: {root / name}{', a table of the reference runs, which git tracks' * ours}")
            for picture, content in charts.files(charts.pictures({name: made})).items():
                write_bytes(root / picture, content)
                print(f"written: {root / picture}")
            print(outcome.line(), flush=True)
        outcome.raise_first()


class Queue(Command):
    """The sweeps on a cluster: recorded, running, waiting and failed runs.

    Of a failed run it shows the last line of its log, and where the log lies.
    """

    page: ClassVar[str] = "clusters"
    examples: ClassVar[Examples] = {
        "": "how far they are", "cancel=true": "ends them; typing a sweep again goes on",
    }  # fmt: skip
    results_root: Folder = str(places.OWN)
    """folder of the records"""
    cancel: bool = False
    """end what runs and what is queued"""

    def run(self) -> None:
        from elmo_bench.sweeps import queued

        root = Path(self.results_root)
        if self.cancel:
            print(f"{queued.cancel(root)} jobs ended; typing the sweep again goes on")
            return
        sweeps = queued.status(root)
        for sweep, rows in sweeps.items():
            print("\n".join(queued.in_lines(sweep, rows)))
        if not sweeps:
            print(f"no sweep was queued from here ({root}); elmo-bench sweep ... on=slurm queues one")


class Train(OfRuns):
    """One run, or with -m a sweep of runs.

    A run that has a record is not run again, and an interrupted run resumes from its last completed epoch.

    Any key of the configuration may be given as KEY=VALUE, and +KEY=VALUE adds one. `elmo-bench train task=ner --cfg
    job` prints the whole configuration of a run.
    """

    page: ClassVar[str] = "runs"
    examples: ClassVar[Examples] = {
        "task=ner scale=mini": "+ELMo on generated data, offline",
        "task=ner scale=mini arm=baseline": "the same model without ELMo",
        "-m task=ner,srl seed=1,2,3": "six runs, one after another",
        "+sweep=table2 task=snli scale=open": "a table of the paper",
        "-cd FOLDER task=mine": "a task of your own, configuration files and code outside the project",
    }

    def run(self) -> None:
        import hydra
        from hydra.core.hydra_config import HydraConfig
        from hydra.types import RunMode

        from elmo_bench.configuration.pages import settled

        failed: list[Exception] = []

        @hydra.main(config_path=str(places.CONF), config_name="train", version_base="1.3")
        def command(cfg: DictConfig) -> float | None:
            os.chdir(HydraConfig.get().runtime.cwd)  # also with hydra.job.chdir=true, places are those of the user
            if "Joblib" in HydraConfig.get().launcher["_target_"]:
                children.end_with_parent()
            elif not _in_process():  # a job of a cluster does not end with the command that has queued it
                os.environ.pop(children.PARENT, None)
            from elmo_bench.running.launch import train  # not for `--cfg job`, nor for a wrong key

            try:
                record = train(settled(cfg, HydraConfig.get().overrides.task))
            except Exception as error:
                if not _in_process() or console.explain(error) is None:
                    raise
                failed.append(error)  # not raised here: Hydra would print a line too
                if HydraConfig.get().mode == RunMode.MULTIRUN:
                    console.show(error)  # at once, before the rest of the sweep runs
                return None
            return record.metrics["dev"][record.monitor]

        check_flags()
        sys.argv += [part for folder in places.conf()[:-1] for part in ("--config-dir", str(folder))]
        os.environ.update(children.environment())  # for what a launcher starts, which calls `end_with_parent` itself
        try:
            command()
        finally:
            os.environ.pop(children.PARENT, None)
        if failed:
            raise failed[0]


def check_flags() -> None:
    """Puts flags behind overrides, where Hydra reads both in any order that was typed.

    Raises:
        UserError: a flag that Hydra does not have; it would print the whole usage.
    """
    from hydra._internal.utils import get_args_parser

    def refuse(message: str) -> NoReturn:
        how = "arguments are written key=value, as in seed=3, and `elmo-bench train --hydra-help` lists the flags"
        raise UserError(f"{message}; {how}")

    parser = get_args_parser()
    parser.error = refuse  # type: ignore[method-assign]
    for each in sys.argv[1:]:
        group, _, name = each.removeprefix("hydra/").partition("=")
        if each.startswith("hydra/") and name in places.named(group):
            raise UserError(f"{each}: type {group}={name}, with the settings of conf/{group}/")
    parsed, late = parser.parse_known_args()  # Python's parser takes only the first overrides in a row
    if any(each.startswith("-") for each in late):
        parser.parse_args()
    overrides = [*parsed.overrides, *late]
    sys.argv[1:] = [*overrides, *(each for each in sys.argv[1:] if each not in overrides)]


def _explain(error: BaseException) -> str | None:
    """One line for what Slurm refuses, or where it is missing (launcher=slurm)."""
    if type(error).__module__.startswith("submitit") or (isinstance(error, RuntimeError) and "srun" in str(error)):
        return f"launcher=slurm: {' '.join(str(error).split())}; see conf/launcher/slurm.yaml"
    return None


console.EXPLAINERS.append(_explain)


def _in_process() -> bool:
    """Whether runs share this process with `Train.run` and its list `failed`; other launchers start new processes."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    config = HydraConfig.get()
    return config.mode == RunMode.RUN or "BasicLauncher" in config.launcher["_target_"]


class Prepare(OfRuns):
    """Make what a run reads: generated data, biLM, vectors, stored layers.

    A run makes these itself where they are missing; a sweep on a cluster makes them once, in a job of its own.
    """

    page: ClassVar[str] = "runs"
    again: ClassVar[str] = Command.again
    examples: ClassVar[Examples] = {
        "task=snli scale=open data_root=FOLDER": "the layers of all sentences of SNLI",
    }

    def run(self) -> None:
        from elmo_bench.configuration import pages, schema
        from elmo_bench.identity import settings
        from elmo_bench.identity.missing import check_files
        from elmo_bench.running.blocks import check_blocks

        run = schema.typed(pages.compose(self.typed))
        check_files(run)
        check_blocks(run.task)
        from elmo_bench.running.fit import check_machine
        from elmo_bench.running.run import prepare

        check_machine(run.trainer)
        vectors = settings.make(run)
        prepare(run, vectors)
        print(f"{run.task.name}/{run.scale.name}: all that its runs read is there", flush=True)


class Data(Command):
    """Fetch the data sets of a scale, and write the files that the tasks read.

    The licences are shown first, and written to the file LICENCES in the folder. Every source is pinned to a commit or
    a release, and what is fetched or written is compared with the sha256 in its file in conf/data. What is there
    already is not fetched again; an interrupted command goes on where it stopped.

    In the folder of source=, a repository is NAME-COMMIT.tar.gz, as GitHub calls its archive, or a folder NAME-COMMIT;
    other files have the name that they have on the server. If some are missing, the command lists them with their
    addresses.
    """

    page: ClassVar[str] = "data"
    again: ClassVar[str] = "what has been fetched is kept; the same command goes on there"
    examples: ClassVar[Examples] = {
        "": "all data of scale=open",
        "task=ner data_root=FOLDER": "what one task needs",
        "sets=snli_1.0,glove.6B": "all of SNLI, and word vectors",
        "source=FOLDER": "without a network",
        "scale=paper task=ner": "says where to get CoNLL-2003, and checks it",
    }
    scale: Literal["mini", "open", "paper"] = "open"
    """mini is generated"""
    task: str = "all"
    """a task, or all"""
    sets: Annotated[str, "NAMES"] | None = None
    """data sets by name instead, with commas: the files in conf/data"""
    data_root: Folder | None = None
    """folder to write to; by default DATA_ROOT or data/"""
    source: Folder | None = None
    """folder with the archives and files of the sources, or an older data folder; nothing is fetched then"""
    mirror: Annotated[str, "URL"] | None = None
    """address of a server with such a folder, which is asked first"""
    stall: Annotated[int, Field(ge=1, le=3600)] = 30
    """seconds without a byte after which a connection is tried again"""
    models_root: Folder | None = None
    """folder of biLMs; by default models/"""
    vectors_root: Folder | None = None
    """folder of word vectors; by default VECTORS_ROOT or models/vectors"""

    def run(self) -> None:
        from elmo_bench.sources import make, pages
        from elmo_bench.sources.download import Patience
        from elmo_bench.sources.fetch import SourcePlaces
        from elmo_bench.system.storage import outputs
        from elmo_bench.system.storage.locks import held

        if self.scale == "mini":
            raise UserError("scale=mini: its data are generated when they are needed; nothing is fetched")
        known = pages.load()
        models = Path(self.models_root or places.ROOT / "models")
        roots = {
            "data_root": Path(self.data_root or os.environ.get("DATA_ROOT") or places.DATA),
            "models_root": models,
            "vectors_root": Path(self.vectors_root or os.environ.get("VECTORS_ROOT") or models / "vectors"),
        }
        downloads, offline = roots["data_root"] / DOWNLOADS, self.source
        if offline is not None and not Path(offline).is_dir():
            raise UserError("no such folder; source=FOLDER must name the one that holds the archives", offline)
        if self.mirror is not None and not self.mirror.startswith(("http://", "https://")):
            raise UserError(f"mirror={self.mirror}: an address begins with https:// or http://")
        place = Path(offline) if offline else None
        fetching = SourcePlaces(downloads, place, self.mirror, Patience(stall=self.stall))
        chosen = make.with_needed(pages.chosen(known, self.scale, self.task, self.sets), known, roots, fetching)
        for name, page in chosen.items():
            print(f"{name}: {page.title}. Licence: {page.licence}", flush=True)
        outputs.scratch(downloads)
        with held(downloads, "another process fetches data into this folder; wait for it"):
            make.write_licences(known, chosen, roots)
            failures: dict[str, None] = {}  # in order; a missing file of the user's only once
            for name, page in chosen.items():
                try:
                    print(f"{name}: {make.made_or_checked(page, roots[page.root], fetching)}", flush=True)
                except UserError as error:
                    failures |= dict.fromkeys(error.faults or [f"{name}: {error}"])
        if len(failures) == 1:
            raise UserError(next(iter(failures)))
        if failures:
            raise UserError("not all could be made:", faults=[*failures])
        outputs.remove(downloads)
        self._tell_next(chosen, roots["data_root"])

    def _tell_next(self, chosen: Any, data_root: Path) -> None:
        root = "" if data_root == places.DATA else f" data_root={data_root}"
        for task in sorted({task for page in chosen.values() for task in page.tasks}):
            pages = [page for page in chosen.values() if task in page.tasks and self.scale in page.scales]
            templates = [page.settings for page in pages if page.settings and self.scale == "paper"]
            settings = "".join(f" {setting.format(data_root=data_root)}" for setting in templates)
            print(f"next: elmo-bench reproduce task={task} scale={self.scale}{root}{settings}")
