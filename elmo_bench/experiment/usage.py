"""The help texts of the commands that compose a configuration; their other keys are those of the pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from elmo_bench.system import places
from elmo_bench.system.command import Argument, Command, Section, described, flag, pages, settings, whole
from elmo_bench.system.errors import UserError

GROUPS = ("task", "scale", "arm", "bilm", "vectors", "trainer", "logger", "launcher", "sweep")
PLACES = (
    Argument("data_root", "folder of the data; also the environment variable DATA_ROOT", None, "FOLDER"),
    Argument(
        "vectors_root",
        "folder of pre-trained word vectors; also the variable VECTORS_ROOT; by default models/vectors/",
        None,
        "FOLDER",
    ),
    Argument("results_root", "folder of records, checkpoints and the report; by default results/own/", None, "FOLDER"),
    Argument(
        "cache_root",
        "folder of generated data and cached layers; also the variable ELMO_BENCH_CACHE; by default .cache/",
        None,
        "FOLDER",
    ),
)
FORCE = Argument("force", "train again although there is a record", False, parse=flag)
TASK = Argument("task", "the benchmark, a page of conf/task/", "ner")
SCALE = Argument("scale", "data and biLM: mini (generated here), open or paper", "mini")
ARM = Argument("arm", "with ELMo or without: a page of conf/arm/", "elmo")
BILM_FILES = (
    Argument("options", "a biLM's options, in the official layout; by default the open biLM's", None, "FILE.json"),
    Argument("weights", "its weights, in the official layout; by default the open biLM's", None, "FILE.hdf5"),
)
AGAIN = "running the command again resumes from the last completed epoch"
OVERRIDES = (
    "Any other key of the configuration may be given as KEY=VALUE, and +KEY=VALUE adds one. `elmo-bench train task=ner "
    "--cfg job` prints the whole configuration of a run."
)


def bilm_files(given: Mapping[str, Any]) -> tuple[Path, Path]:
    """The options and weights that were given, or those of the open biLM. Raises `UserError` if one is given alone."""
    if (given["options"] is None) != (given["weights"] is None):
        raise UserError("options and weights belong together; give both, or neither for the open biLM")
    folder = places.shipped(places.ROOT / "models", "open")
    return Path(given["options"] or folder / "options.json"), Path(given["weights"] or folder / "weights.hdf5")


def _pages(groups: Sequence[str] = GROUPS) -> list[Section]:
    return [pages(places.CONF, groups)]


def _all_keys() -> list[Section]:
    """The pages, and every key of a run with its default, from the typed configuration."""
    from elmo_bench.configuration import schema

    blocks = {
        "elmo": schema.ElmoConfig,
        "bilm": schema.BilmConfig,
        "task": schema.TaskConfig,
        "vectors": schema.VectorsConfig,
        "vectors.sets.NAME": schema.VectorSetConfig,
        "scale": schema.ScaleConfig,
        "trainer": schema.TrainerConfig,
        "logger": schema.LoggerConfig,
    }
    return _pages() + [
        settings(f"Keys of {name}, with the defaults that pages change", described(block, f"{name}.", schema.KEYS))
        for name, block in blocks.items()
    ]


TRAIN = Command(
    "train",
    "one run, or with -m a sweep of runs",
    (
        TASK,
        SCALE,
        ARM,
        Argument("seed", "of the weights, the order of batches and dropout", 1, parse=whole()),
        Argument("fraction", "of the training data: a random subset that follows from the seed", 1.0),
        FORCE,
        *PLACES,
    ),
    (
        ("task=ner scale=mini", "+ELMo on generated data, offline"),
        ("task=ner scale=mini arm=baseline", "the same model without ELMo"),
        ("-m task=ner,srl seed=1,2,3", "six runs, one after another"),
        ("+sweep=table2 task=snli scale=open", "a table of the paper"),
    ),
    (
        "A run that has a record is not run again, and an interrupted run resumes from its last completed epoch.",
        OVERRIDES,
    ),
    again=AGAIN,
    overrides=True,
    more=_all_keys,
    page="runs",
)

JOBS = Argument(
    "jobs", "how many runs are trained at a time; by default two, on two cores without a GPU", None, "N",
    parse=whole(1, 1000),
)  # fmt: skip

REPRODUCE = Command(
    "reproduce",
    "the paper's Table 1 for a task: the baseline and +ELMo over several seeds",
    (
        Argument("task", "the benchmark, a page of conf/task/, or all", "ner"),
        SCALE,
        Argument("seeds", "train each arm with the seeds from 1 to this number", 1, parse=whole(1, 1000)),
        JOBS,
        Argument("recorded", "show the runs that the authors recorded, and train nothing", False, parse=flag),
        FORCE,
        *PLACES,
    ),
    (
        ("task=ner", "at the mini scale, offline"),
        ("task=ner recorded=true", "the authors' results, at once"),
        ("task=all scale=open seeds=3 data_root=FOLDER", "every task on open data"),
    ),
    (
        "Prints your results beside the authors' and the paper's, and writes a report of yours, results/own/README.md. "
        "A run that has a record there is not run again.",
        OVERRIDES,
    ),
    again=AGAIN,
    overrides=True,
    more=_all_keys,
    page="getting-started",
)

SWEEP = Command(
    "sweep",
    "a table or figure of the paper as one sweep, ours beside theirs",
    (
        Argument("+sweep", "a page of conf/sweep/", value="NAME"),
        Argument("task", "the benchmark, or all; by default ner, or the one that the sweep is for", None, "NAME"),
        SCALE,
        Argument("seeds", "the seeds from 1 to this number; by default those of the page", None, "N", whole(1, 1000)),
        JOBS,
        Argument(
            "on", "local: processes here; slurm: jobs of a cluster, with keys cluster.KEY of conf/cluster/", "local"
        ),
        Argument("run", "false: only the table of what is recorded", True, parse=flag),
        FORCE,
        *PLACES,
    ),
    (
        ("+sweep=table2 task=snli", "which layers, how regularised: dev scores on generated data"),
        ("+sweep=table1 task=all scale=open seeds=3 data_root=FOLDER", "Table 1 on open data"),
        ("+sweep=table2 task=snli on=slurm cluster.run.partition=gpu", "as jobs of a cluster; returns at once"),
        ("+sweep=figure2 task=all run=false", "the table of the recorded runs; nothing is trained"),
    ),
    (
        "Trains the runs that have no record, each in a process of its own, and prints the table that they make beside "
        "the paper's. A run that fails does not stop the others. The last line says how many are recorded, failed and "
        "missing; the same command again runs only what is missing.",
        "The table and its cells are written to tables/SWEEP.SCALE.md and .json in the folder of results, where other "
        "tasks of the same sweep keep their rows.",
        OVERRIDES,
    ),
    again="the same command again runs what is missing",
    overrides=True,
    more=_all_keys,
    page="sweeps",
)

PREPARE = Command(
    "prepare",
    "make what a run reads: generated data, biLM, vectors, stored layers",
    (TASK, SCALE, ARM, *PLACES),
    (("task=snli scale=open data_root=FOLDER", "the layers of all sentences of SNLI"),),
    ("A run makes these itself where they are missing.", OVERRIDES),
    overrides=True,
    more=_all_keys,
    page="runs",
)

PRETRAIN = Command(
    "pretrain",
    "train a biLM on plain text",
    (
        Argument("scale", "the recipe, a page of conf/pretrain/", "open"),
        PLACES[0],
        Argument("output", "folder for the biLM; by default models/ and the recipe's name", None, "FOLDER"),
        Argument("every", "seconds between checkpoints", 300),
        Argument("compile", "compile the pointwise work; false where there is no C++ compiler", True, parse=flag),
        Argument("stop", "stop and export after this update; recipe.start=FOLDER continues it", None, "UPDATE"),
        Argument("force", "train again although there is a biLM", False, parse=flag),
        Argument("device", "auto, cpu or cuda", "auto"),
        Argument("wandb", "send the log to W&B too, offline without a key", None, "{project:NAME}"),
    ),
    (
        ("scale=open data_root=FOLDER", "reads the recipe's text below FOLDER"),
        ("scale=original data_root=FOLDER device=cuda", "the paper's biLM by the release's recipe"),
    ),
    (
        "Writes options.json and weights.hdf5 in the official layout, the softmax and its vocabulary, and a card with "
        "perplexities. Running the command again resumes from the last checkpoint.",
        "On several GPUs: torchrun --nproc-per-node=N -m elmo_bench.pretrain KEY=VALUE ...",
    ),
    again="running the command again resumes from the last checkpoint",
    overrides=True,
    more=lambda: _pages(["pretrain"]),
    page="pretraining",
)

SENSES = Command(
    "analysis.senses",
    "how well each layer of a biLM tells the senses of a word apart",
    (
        Argument("scale", "only mini has text with known senses", "mini"),
        Argument("bilm", "a page of conf/bilm/", "mini"),
        *PLACES[1:],
    ),
    (("", "the biLM of the mini scale"), ("bilm=untrained", "the same sizes with random weights")),
    ("Writes figures/senses-BILM.json and .png in the results folder, for the report.", OVERRIDES),
    overrides=True,
    more=lambda: _pages(["bilm"]),
    page="layers",
)

TUNE = Command(
    "tune",
    "tune a biLM on the training text of a task, without its labels",
    (
        Argument("task", "whose text: a page of conf/task/, or all", "ner"),
        SCALE,
        Argument("bilm.parent", "the biLM to tune, a page of conf/bilm/; by default the scale's own", None, "PAGE"),
        Argument(
            "bilm.tuning.lr", "peak learning rate; by default that of the scale's page of conf/tuning/", None, "X"
        ),
        Argument("bilm.tuning.every", "seconds between checkpoints", 300),
        Argument("force", "tune again although it has been done", False, parse=flag),
        *PLACES,
    ),
    (
        ("task=snli", "the biLM of the mini scale on SNLI's sentences"),
        ("task=all scale=open data_root=FOLDER", "Table 7: perplexities of all six tasks before and after"),
    ),
    (
        "Prints the full-softmax perplexity of dev before and after one pass over the training sentences, and writes "
        "it to analysis/SCALE/tuning/table7.json in the results folder, for the report. Sentences of dev and test are "
        "left out of the text. Other commands know the tuned biLM as bilm=tuned. Where the parent has no softmax, as "
        "the official files, one is fitted first, with all else frozen, and counts as the one before.",
        OVERRIDES,
    ),
    again="running the command again resumes from the last checkpoint",
    overrides=True,
    more=lambda: _pages(["task", "scale", "bilm", "tuning"]),
    page="tuning",
)

ENSEMBLE = Command(
    "ensemble",
    "the recorded runs of an arm, one for each seed, as one model",
    (
        TASK,
        SCALE,
        ARM,
        Argument("seeds", "the first so many, or their numbers as 1,2,4", 3, "N"),
        Argument("force", "make it again although it is recorded", False, parse=flag),
        *PLACES,
    ),
    (("task=sst5 scale=mini seeds=3", "+ELMo"), ("task=ner scale=mini arm=baseline seeds=1,2", "the baseline")),
    (
        "Reads the checkpoints of the runs in the results folder, averages their scores or counts their votes, and "
        "writes a record with the official metrics, ensembles/SCALE/TASK/ID.json, which the report shows as a row.",
        OVERRIDES,
    ),
    overrides=True,
    more=_pages,
    page="predicting",
)

COMMANDS = {command.name: command for command in (TRAIN, REPRODUCE, SWEEP, PREPARE, PRETRAIN, TUNE, SENSES, ENSEMBLE)}
