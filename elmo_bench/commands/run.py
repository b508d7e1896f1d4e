"""Commands that make results: sweeps of runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from elmo_bench.commands.command import RESUMES, Command, Examples, Folder, Name
from elmo_bench.configuration import pages
from elmo_bench.system import places
from elmo_bench.system.errors import UserError

if TYPE_CHECKING:  # `--help` does not import it
    from elmo_bench.sweeps.request import SweepRequest

Thousand = Annotated[int, Field(ge=1, le=1000), "N"]
CLUSTER = "cluster."  # the prefix of keys of a file in conf/cluster/


class OfSweeps(Command):
    """A command that trains runs of a sweep; its further arguments are keys of the configuration of runs."""

    again: ClassVar[str] = RESUMES
    overrides: ClassVar[bool] = True

    task: Name | None = None
    """a benchmark, a file in conf/task/, several as ner,srl, or all; by default the sweep's"""
    scale: str = "mini"
    """data and biLM: mini (generated here), open or paper"""
    seeds: Thousand | None = None
    """the seeds from 1 to this number; by default as in the sweep's file"""
    jobs: Thousand | None = None
    """number of runs trained at a time; by default two, on two cores without a GPU"""
    train: bool = Field(default=True, alias="run")
    """false: only the table of recorded runs"""

    def tasks(self, sweep: str) -> list[str]:
        """The requested benchmarks, in the paper's order."""
        for argument in self.typed:
            key, equals, value = argument.partition("=")
            if not equals:
                raise UserError(f"{argument}: arguments are written key=value")
            if key == "seed":
                raise UserError("seed: the runs have the seeds 1 to N; give seeds=N")
            tried = {"trainer.fast_dev_run": ("false", "0"), "trainer.overfit_batches": "0", "debug": ("true", "false")}
            if value.lower() not in tried.get(key.lstrip("+"), (value.lower(),)):
                raise UserError(f"{argument}: such a run leaves no record for a table; use elmo-bench train")
        table = pages.table(sweep)
        named = (self.task or (table.tasks or ["ner"])[0]).split(",")
        if named == ["all"] and not (named := table.all_tasks(self.scale)):
            raise UserError(f"no task supports scale={self.scale}")
        tasks = pages.in_order({pages.page(each).stem for each in named})
        for key, asked, offered in (("task", tasks, table.tasks), ("scale", [self.scale], table.scales)):
            if offered and (other := [each for each in asked if each not in offered]):
                only = " or ".join(f"{key}={each}" for each in offered)
                raise UserError(f"the sweep {sweep} is for {only}, not for {key}={other[0]}")
        return tasks

    def request(self, sweep: str, on: str = "local") -> SweepRequest:
        """The request of the arguments."""
        from elmo_bench.sweeps.request import SweepRequest

        cluster = [one.removeprefix(CLUSTER) for one in self.typed if one.startswith(CLUSTER)]
        others = [one for one in self.typed if not one.startswith(CLUSTER)]
        if cluster and on == "local":
            raise UserError(f"{CLUSTER}{cluster[0]}: only with on=slurm or another file in conf/cluster")
        tasks = self.tasks(sweep)
        return SweepRequest(sweep, tasks, self.scale, self.seeds, self.jobs, self.train, others, on, cluster)


class Reproduce(OfSweeps):
    """The paper's Table 1 for a task: the baseline and +ELMo over several seeds.

    Prints your results beside the reference runs and the paper, and writes a report of your runs,
    results/own/README.md. Runs with a record there are not run again.

    Any other key of the configuration may be given as KEY=VALUE, and +KEY=VALUE adds one. `elmo-bench train task=ner
    --cfg job` prints the whole configuration of a run.
    """

    page: ClassVar[str] = "getting-started"
    examples: ClassVar[Examples] = {
        "task=ner": "at the mini scale, offline",
        "task=ner recorded=true": "the reference runs, at once",
        "task=ner controls=true": "how much of the gain is context",
        "task=all scale=open seeds=3 data_root=FOLDER": "every task on open data",
    }
    task: Name | None = "ner"
    """a benchmark, a file in conf/task/, several as ner,srl, or all"""
    seeds: Thousand | None = 1
    """train each arm with the seeds from 1 to this number"""
    controls: bool = False
    """also train the controls: ELMo without context (elmo.layers=0), and with an untrained biLM"""
    recorded: bool = False
    """show the reference runs, and train nothing"""

    def run(self) -> None:
        from elmo_bench.records.frame import is_main
        from elmo_bench.records.store import full_runs, read_all
        from elmo_bench.reporting.score_tables import beside, sections
        from elmo_bench.reporting.section import show

        if self.recorded:
            tasks = self.tasks("table1")
            if changed := next(filter(pages.changes_results, self.typed), None):
                raise UserError(f"recorded=true shows the arms of the scale without changes: leave out {changed}")
            found = [each for task in tasks for each in read_all(places.RECORDED, self.scale, task)]
            asked = {task: {each.group for each in found if each.task == task and is_main(each)} for task in tasks}
            if not any(asked.values()):
                raise UserError("there is no such reference run (without recorded=true it is trained)")
            show(sections(found, asked))
            return
        from elmo_bench.reporting.report import refresh
        from elmo_bench.sweeps.local import run_missing
        from elmo_bench.sweeps.plan import plan

        planned = plan(request := self.request("context" if self.controls else "table1"))
        if request.run:
            run_missing(planned)
        if planned.recorded:
            refresh(root := planned.runs[0].config.results_root)
            there, asked = full_runs([*planned.records.values()]), planned.asked
            show(beside([run for run in there if run.task in asked], asked))
            print(f"dev scores, layer weights, all intervals: {root}/README.md and report.html")
        planned.end()


class Sweep(OfSweeps):
    """A table or figure of the paper as one sweep, our scores beside the paper's.

    Trains the runs without a record, each in its own process, and prints their table beside the paper's. If a run
    fails, the others continue. The last line counts recorded, failed and missing runs; the same command runs only the
    missing ones.

    The table is written to tables/SWEEP.SCALE.md in the folder of results, with the rows of all tasks that have such
    runs; for +sweep=figure1 and figure2 also a picture for each task, figures/SWEEP.SCALE.TASK.svg and .pdf.

    Any other key of the configuration may be given as KEY=VALUE, and +KEY=VALUE adds one.
    """

    page: ClassVar[str] = "sweeps"
    again: ClassVar[str] = "the same command runs the missing runs"
    examples: ClassVar[Examples] = {
        "+sweep=table2 task=snli": "layers and their regularisation: dev scores on generated data",
        "+sweep=table1 task=all scale=open seeds=3 data_root=FOLDER": "Table 1 on open data",
        "+sweep=table2 task=snli on=slurm cluster.run.partition=gpu": "as jobs of a cluster; returns at once",
        "+sweep=figure2 task=all run=false": "the table of the recorded runs; nothing is trained",
    }
    sweep: Name | None = Field(default=None, alias="+sweep")
    """a file in conf/sweep/ (required)"""
    on: str = "local"
    """local: processes here; slurm: jobs of a cluster, with keys cluster.KEY of conf/cluster/"""

    def run(self) -> None:
        if not self.sweep:
            typed = next((one for one in self.typed if one.startswith("name=")), "name=...")  # as `make sweep` has it
            missing = typed.replace("name", "+sweep", 1)
            raise UserError(f"missing argument {missing}; choose from {', '.join(pages.sweeps())}")
        from elmo_bench.reporting import sweep_tables
        from elmo_bench.reporting.gains import by_scale
        from elmo_bench.reporting.section import page, show
        from elmo_bench.sweeps.plan import plan
        from elmo_bench.system.storage.files import write_bytes

        planned = plan(self.request(self.sweep, self.on))
        if self.train and self.on != "local":
            from elmo_bench.sweeps import queued

            queued.submit(planned)
            return
        if self.train:
            from elmo_bench.sweeps.local import run_missing

            run_missing(planned)
        if planned.runs:  # otherwise none could be composed, and the errors are shown
            root = Path(planned.runs[0].config.results_root)
            content = sweep_tables.content(planned.request, by_scale(planned.records.values(), planned.asked))
            assert content is not None  # it contains the requested tasks
            tables_shown = sweep_tables.sections(content)
            write_bytes(root / content.name, page(*tables_shown, title=True).encode())
            show(tables_shown)
            ours = places.is_evidence(root)
            print(f"written: {root / content.name}{', a table of the reference runs, which git tracks' * ours}")
            if self.sweep in sweep_tables.DRAWN:
                from elmo_bench.reporting import charts

                for picture, drawn in charts.files(charts.pictures({content.name: content})).items():
                    write_bytes(root / picture, drawn)
                    print(f"written: {root / picture}")
        planned.end()


class Queue(Command):
    """The sweeps on a cluster: recorded, running, waiting and failed runs.

    For a failed run it shows the last line of its log, and the log's path.
    """

    page: ClassVar[str] = "clusters"
    examples: ClassVar[Examples] = {
        "": "their progress", "cancel=true": "ends them; the same sweep command resumes them",
    }  # fmt: skip
    results_root: Folder = str(places.OWN)
    """folder of the records"""
    cancel: bool = False
    """end running and queued jobs"""

    def run(self) -> None:
        from elmo_bench.sweeps import queued

        root = Path(self.results_root)
        if self.cancel:
            print(f"{queued.cancel(root)} jobs ended; the same sweep command resumes them")
            return
        sweeps = queued.status(root)
        for sweep, rows in sweeps.items():
            print("\n".join(queued.in_lines(sweep, rows)))
        if not sweeps:
            print(f"no sweep was queued from here ({root}); elmo-bench sweep ... on=slurm queues one")
