"""What the help texts of commands that compose a configuration share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from elmo_bench.commands.command import Argument, HelpSection, described, files, settings, whole
from elmo_bench.system.errors import UserError

GROUPS = ("task", "scale", "bilm", "vectors", "trainer", "logger", "callbacks", "launcher", "sweeper", "sweep")
ROOTS = (
    Argument("data_root", "folder of the data; also the environment variable DATA_ROOT", None, "FOLDER"),
    Argument(
        "vectors_root",
        "folder of pre-trained word vectors; also the variable VECTORS_ROOT; by default models/vectors/",
        None,
        "FOLDER",
    ),
    Argument(
        "results_root",
        "folder of records, checkpoints and the report; by default results/own/. results_root=results is "
        "for the project's own evidence: it adds runs to the reference runs and rewrites tracked tables",
        None,
        "FOLDER",
    ),
    Argument(
        "cache_root",
        "folder of generated data and cached layers; also the variable ELMO_BENCH_CACHE; by default .cache/",
        None,
        "FOLDER",
    ),
)
RUN = Argument("run", "false: only the table of what is recorded", True, kind=bool)
FORCE = Argument("force", "train again although there is a record", False, kind=bool)
TASK = Argument("task", "the benchmark, a file in conf/task/", "ner")
SCALE = Argument("scale", "data and biLM: mini (generated here), open or paper", "mini")
ARM = Argument("arm", "elmo, or baseline: without ELMo, as elmo.where=none", "elmo")
BILM_FILES = (
    Argument("bilm", "open, mini, or a folder with a biLM in the official layout", "open", "NAME"),
    Argument("options", "instead of bilm: its options, in the official layout", None, "FILE.json"),
    Argument("weights", "and its weights", None, "FILE.hdf5"),
)
REMEDY = "running the command again resumes from the last completed epoch"
OVERRIDES = (
    "Any other key of the configuration may be given as KEY=VALUE, and +KEY=VALUE adds one. `elmo-bench train task=ner "
    "--cfg job` prints the whole configuration of a run."
)


def bilm_files(given: Mapping[str, Any]) -> tuple[Path, Path]:
    """The options and weights that were given, or those of `bilm`.

    Raises:
        UserError: one of both is given alone, or there is no biLM of the name.
    """
    from elmo_bench.bilm.card import files_of

    if (given["options"] is None) != (given["weights"] is None):
        raise UserError("options and weights belong together; give both, or neither for bilm=open")
    if given["options"] is None:
        return files_of(given["bilm"])
    return Path(given["options"]), Path(given["weights"])


def blocks() -> dict[str, type]:
    """The typed blocks of a run's configuration, by the name that their keys begin with."""
    from elmo_bench.configuration import schema

    return {
        "elmo": schema.ElmoConfig,
        "bilm": schema.BilmConfig,
        "task": schema.TaskConfig,
        "vectors": schema.VectorsConfig,
        "vectors.sets.NAME": schema.VectorSetConfig,
        "scale": schema.ScaleConfig,
        "trainer": schema.TrainerConfig,
        "logger": schema.LoggerConfig,
    }


def keys() -> dict[str, list[Argument]]:
    """Every key of a run in these blocks, from the typed configuration."""
    return {name: described(cls, f"{name}.") for name, cls in blocks().items()}


def all_keys() -> list[HelpSection]:
    """The configuration files, and every key of a run with its default."""
    title = "Keys of {}, with the defaults that configuration files change"
    return [files(GROUPS), *(settings(title.format(name), listed) for name, listed in keys().items())]


JOBS = Argument(
    "jobs", "how many runs are trained at a time; by default two, on two cores without a GPU", None, "N",
    kind=whole(1, 1000),
)  # fmt: skip
