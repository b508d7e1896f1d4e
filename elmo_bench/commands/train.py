"""Commands that make one run, or its inputs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NoReturn

from pydantic import Field

from elmo_bench.commands.command import RESUMES, Command, Examples, Folder
from elmo_bench.system import console, places, processes
from elmo_bench.system.errors import UserError

if TYPE_CHECKING:  # `--help` does not import it
    from omegaconf import DictConfig

DOWNLOADS = ".downloads"  # in data_root


class Train(Command):
    """One run, or with -m a sweep of runs.

    A run with a record is not run again, and an interrupted run resumes from its last completed epoch.

    Any key of the configuration may be given as KEY=VALUE, and +KEY=VALUE adds one. `elmo-bench train task=ner --cfg
    job` prints the whole configuration of a run.
    """

    page: ClassVar[str] = "runs"
    again: ClassVar[str] = RESUMES
    overrides: ClassVar[bool] = True
    examples: ClassVar[Examples] = {
        "task=ner scale=mini": "+ELMo on generated data, offline",
        "task=ner scale=mini arm=baseline": "the same model without ELMo",
        "-m task=ner,srl seed=1,2,3": "six runs, one after another",
        "+sweep=table2 task=snli scale=open": "a table of the paper",
        "-cd FOLDER task=mine": "your own task, with configuration files and code outside the project",
    }

    def run(self) -> None:
        import hydra
        from hydra.core.hydra_config import HydraConfig
        from hydra.types import RunMode

        from elmo_bench.configuration.composing import TRACEBACK, settled

        failed: list[Exception] = []

        @hydra.main(config_path=str(places.CONF), config_name="train", version_base="1.3")
        def command(cfg: DictConfig) -> float | None:
            os.chdir(HydraConfig.get().runtime.cwd)  # for paths of the user, also with hydra.job.chdir=true
            if "Joblib" in HydraConfig.get().launcher["_target_"]:
                processes.end_with_parent()
            elif not _in_process():  # a job of a cluster does not end with the command that queued it
                os.environ.pop(processes.PARENT, None)
            from elmo_bench.running.launch import train  # not needed for `--cfg job` or a wrong key

            try:
                record = train(settled(cfg, HydraConfig.get().overrides.task))
            except Exception as error:
                if not _in_process() or console.explain(error) is None:
                    raise
                failed.append(error)  # not raised here, as Hydra would also print a line
                if HydraConfig.get().mode == RunMode.MULTIRUN:
                    console.show(error)  # at once, before the rest of the sweep runs
                return None
            return record.metrics["dev"][record.monitor]

        sys.argv = [each for each in sys.argv if each not in TRACEBACK]
        check_flags()
        sys.argv += [part for folder in places.conf()[:-1] for part in ("--config-dir", str(folder))]
        os.environ[processes.PARENT] = str(os.getpid())  # for processes of a launcher
        try:
            command()
        finally:
            os.environ.pop(processes.PARENT, None)
        if failed:
            raise failed[0]


def check_flags() -> None:
    """Puts flags after overrides, so that Hydra reads both, whatever the typed order."""
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
    parsed, late = parser.parse_known_args()  # Python's parser takes only the first group of overrides
    if any(each.startswith("-") for each in late):
        parser.parse_args()
    overrides = [*parsed.overrides, *late]
    sys.argv[1:] = [*overrides, *(each for each in sys.argv[1:] if each not in overrides)]


def _explain(error: BaseException) -> str | None:
    """One line if Slurm refuses or is missing (launcher=slurm)."""
    if type(error).__module__.startswith("submitit") or (isinstance(error, RuntimeError) and "srun" in str(error)):
        return f"launcher=slurm: {' '.join(str(error).split())}; see conf/launcher/slurm.yaml"
    return None


console.EXPLAINERS.append(_explain)


def _in_process() -> bool:
    """Whether runs share this process with `Train.run` and its list `failed`: other launchers start new processes."""
    from hydra.core.hydra_config import HydraConfig
    from hydra.types import RunMode

    config = HydraConfig.get()
    return config.mode == RunMode.RUN or "BasicLauncher" in config.launcher["_target_"]


class Prepare(Command):
    """Make the inputs of a run: generated data, biLM, vectors, stored layers.

    A run makes missing inputs itself; a sweep on a cluster makes them once, in a separate job.
    """

    page: ClassVar[str] = "runs"
    overrides: ClassVar[bool] = True
    examples: ClassVar[Examples] = {
        "task=snli scale=open data_root=FOLDER": "the layers of all sentences of SNLI",
    }

    def run(self) -> None:
        from elmo_bench.configuration import composing
        from elmo_bench.records import settings
        from elmo_bench.records.missing import check_files
        from elmo_bench.running.blocks import check_blocks

        run = composing.run_config(self.typed)
        check_files(run)
        check_blocks(run.task)
        from elmo_bench.running.fit import check_machine
        from elmo_bench.running.run import prepare

        check_machine(run.trainer)
        vectors = settings.make(run)
        prepare(run, vectors)
        print(f"{run.task.name}/{run.scale.name}: all inputs of its runs are ready", flush=True)


class Data(Command):
    """Fetch the data sets of a scale, and write the files that the tasks read.

    The licences are shown first, and written to the file LICENCES in the folder. Every source is pinned to a commit or
    a release, and downloads and written files are compared with the sha256 in their file in conf/data. Existing files
    are not fetched again; an interrupted command continues where it stopped.

    In the folder of source=, a repository is NAME-COMMIT.tar.gz, as GitHub calls its archive, or a folder NAME-COMMIT;
    other files have the same name as on the server. If some are missing, the command lists them with their addresses.
    """

    page: ClassVar[str] = "data"
    again: ClassVar[str] = "fetched data are kept; the same command continues"
    examples: ClassVar[Examples] = {
        "": "all data of scale=open",
        "task=ner data_root=FOLDER": "the data of one task",
        "sets=snli_1.0,glove.6B": "all of SNLI, and word vectors",
        "source=FOLDER": "offline",
        "scale=paper task=ner": "says where to get CoNLL-2003, and checks it",
    }
    scale: Literal["mini", "open", "paper"] = "open"
    """scale of the data; mini's are generated when they are needed"""
    task: str = "all"
    """a task, or all"""
    sets: Annotated[str, "NAMES"] | None = None
    """data sets by name instead, separated by commas: the files in conf/data"""
    data_root: Folder | None = None
    """folder to write to; by default DATA_ROOT or data/"""
    source: Folder | None = None
    """folder with the archives and files of the sources, or an older data folder; nothing is fetched then"""
    mirror: Annotated[str, "URL"] | None = None
    """address of a server with such a folder, which is tried first"""
    stall: Annotated[int, Field(ge=1, le=3600)] = 30
    """seconds without a byte after which a connection is tried again"""
    models_root: Folder | None = None
    """folder of biLMs; by default models/"""
    vectors_root: Folder | None = None
    """folder of word vectors; by default VECTORS_ROOT or models/vectors"""

    def run(self) -> None:
        from elmo_bench.sources import make
        from elmo_bench.sources import pages as sources
        from elmo_bench.sources.download import Patience
        from elmo_bench.sources.fetch import SourcePlaces
        from elmo_bench.system.storage import outputs
        from elmo_bench.system.storage.locks import held

        if self.scale == "mini":
            raise UserError("scale=mini: its data are generated when they are needed; nothing is fetched")
        known = sources.load()
        models = Path(self.models_root or places.ROOT / "models")
        roots = {
            "data_root": Path(self.data_root or os.environ.get("DATA_ROOT") or places.DATA),
            "models_root": models,
            "vectors_root": Path(self.vectors_root or os.environ.get("VECTORS_ROOT") or models / "vectors"),
        }
        downloads, offline = roots["data_root"] / DOWNLOADS, self.source
        if offline is not None and not Path(offline).is_dir():
            raise UserError("no such folder; source=FOLDER must name the folder with the archives", offline)
        if self.mirror is not None and not self.mirror.startswith(("http://", "https://")):
            raise UserError(f"mirror={self.mirror}: an address begins with https:// or http://")
        place = Path(offline) if offline else None
        fetching = SourcePlaces(downloads, place, self.mirror, Patience(stall=self.stall))
        chosen = make.with_needed(sources.chosen(known, self.scale, self.task, self.sets), known, roots, fetching)
        for name, page in chosen.items():
            print(f"{name}: {page.title}. Licence: {page.licence}", flush=True)
        outputs.scratch(downloads)
        with held(downloads, "another process fetches data into this folder; wait for it"):
            make.write_licences(known, chosen, roots)
            failures: dict[str, None] = {}  # in order; each missing file of the user only once
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
