"""The record of a finished run: its keys on disk, their types and consistency; and the names of runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePath
from typing import Annotated, Any, Literal

from omegaconf import OmegaConf
from pydantic import BeforeValidator, Field, NonNegativeFloat, NonNegativeInt, PositiveInt, StringConstraints

from elmo_bench.configuration import pages
from elmo_bench.configuration.keys import shape, valid
from elmo_bench.system import places
from elmo_bench.system.errors import UserError, as_typed
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.hashing import fingerprint

BILM = "elmo_bench.layers.bilm.BilmLayers"  # the source of layers that is ELMo
DIGEST = re.compile("sha256:[0-9a-f]{64}")  # of a file, in settings
Plain = dict[str, Any]
Name = Annotated[str, StringConstraints(pattern=r"^[a-zA-Z0-9_][a-zA-Z0-9_.+-]{0,99}$")]  # part of a path and of a page
Id = Annotated[str, StringConstraints(pattern="^[0-9a-f]{16}$")]
Number = Annotated[float, Field(ge=-1e12, le=1e12)]  # small enough to be drawn and squared
Scores = dict[str, Number]  # percent; a user's own task may have a metric with other bounds
Figure = float | dict[str, float] | None  # of the paper: a number, or one for each metric
EPOCHS = shape(epoch=list[NonNegativeInt], updates=list[PositiveInt])  # columns that every history has
HISTORY = Annotated[
    dict[str, list[Number | None]], BeforeValidator(lambda history: EPOCHS.model_validate(history) and history)
]
CONFIG = shape(  # the keys that readers of records use
    elmo=shape(where=str),
    scale=shape(note=str, bilm=(str | None, None)),
    task=shape(
        monitor=str,
        paper=(shape(baseline=(Figure, None), elmo=(Figure, None), elmo_deviation=(float | None, None)) | None, None),
        batch=(shape(batch_size=(int | None, None)), None),
        fit=(shape(epochs=(int | None, None)), None),
        metric=(Plain | None, None),
    ),
    fraction=(float, 1.0),
    trainer=(shape(devices=(int, 1)), None),
    bilm=(shape(seen=(list[str], [])) | None, None),
    vectors=(shape(source=str, sets=(dict[str, shape(name=str)], {})) | None, None),
)
RECORD = shape(  # the keys on disk, in their order
    task=Name, scale=Name, arm=Literal["baseline", "elmo"], variant=shape(elmo=(Plain | None, None), vectors=(str, "")),
    seed=NonNegativeInt, version=NonNegativeInt, run=Id, group=Id, metrics=shape(dev=Scores, test=Scores),
    epoch=PositiveInt, epochs=PositiveInt, updates=NonNegativeInt, selected_updates=NonNegativeInt,
    layer_weights=dict[str, list[list[Number]]], gamma=dict[str, list[Number]], seconds=NonNegativeFloat,
    device_seconds=float, tokens_per_second=float, preparing=(dict[str, NonNegativeFloat], None),
    peak_memory_mib=(NonNegativeInt, None), device_peak_memory_mib=(NonNegativeInt, None), parameters=NonNegativeInt,
    bilm=shape(
        name=str | None, sha256=str | None, parameters=(NonNegativeInt, None), token_bytes=(NonNegativeInt, None)
    ),
    data_sha256=str, generated_sha256=dict[str, str],
    machine=shape(cpu=str, cores=int | None, threads=int, accelerator=str, gpu=(str, None)),
    versions=dict[str, str], commit=str | None, dirty=bool | None, finished=str, checkpoint=str,
    history=HISTORY,
    settings=shape(seed=int, scale=Plain, task=shape(words=(Plain | None, None)), bilm=(Plain, None)), config=CONFIG,
    own_files=(dict[str, str], None), word_vectors=Plain | None,
)  # fmt: skip
KEYS = tuple(RECORD.model_fields)


@dataclass(kw_only=True)
class Started:
    """The description of a run, known before it ends.

    Attributes:
        arm, variant: baseline or elmo, and the differences from the task's configuration by dotted key.
        version: the version of the task's computation.
        run, group: 16 hexadecimal digits, hashes of the settings with and without the seed.
        bilm: the name and sha256 of the biLM, null for a baseline, and whether it was tuned.
        commit, dirty: the commit of the code, and whether the code differs from it; None without git.
        config: the resolved configuration, without the folders of a machine.
        own_files: by split, the name of a user's file that replaces the scale's file; None for an older record, for
            which the current configuration files are compared.
        where, has_elmo: where ELMo enters ("none", "input", "output" or "both"), and whether it does.
        bilm_name, bilm_seed: the biLM's name, None for a baseline; its seed, 1 unless the run trains it from another.
        from_bilm: whether its layers, if it has any, are a biLM's, not those of another source such as a Transformer.
        has_seen: whether its source of layers was trained on data of its task, according to the source (`bilm.seen`).
        monitor: the metric by which the task selects an epoch.
        paper: the paper's figures: `baseline`, `elmo`, each a number or one for each metric, and `elmo_deviation`.
        fraction: the share of the training data used.
        vectors: the name of the static word vectors; "random" for vectors trained only with the model.
    """

    task: str
    scale: str
    arm: str
    variant: Plain
    seed: int
    version: int
    run: str
    group: str
    bilm: Plain
    commit: str | None
    dirty: bool | None
    config: Plain
    own_files: dict[str, str] | None = None

    def __post_init__(self):
        config, source = self.config, self.config.get("bilm") or {}
        self.where: str = config["elmo"]["where"]
        self.has_elmo = self.where != "none"
        self.bilm_name: str | None = self.bilm["name"]
        self.bilm_seed: int = source.get("seed", 1)
        self.from_bilm = not self.has_elmo or source.get("_target_", BILM) == BILM
        self.has_seen = self.has_elmo and self.task in source.get("seen", ())
        self.monitor: str = config["task"]["monitor"]
        self.paper: Plain = config["task"].get("paper") or {}
        self.fraction: float = config.get("fraction", 1.0)
        block: Plain = config.get("vectors") or {"source": "page"}
        sets = block.get("sets", {}).values() if block["source"] == "sets" else ()
        named = "+".join(each["name"] for each in sets) or ("random" if block["source"] == "page" else block["source"])
        self.vectors: str = self.variant.get("vectors", named)

    @cached_property
    def own_data(self) -> dict[str, str]:
        """The names of the user's own data files, by the typed key; empty with the scale's own data."""
        known = own_files(self.config) if self.own_files is None else self.own_files
        return {f"task.data.{split}": name for split, name in known.items()}


@dataclass(kw_only=True)
class Record(Started):
    """A finished run.

    Attributes:
        metrics: the scores of the selected epoch, in percent, by split ("dev", "test") and name.
        epoch: the selected epoch, from 1.
        epochs, updates: the total numbers; `selected_updates`: the updates until the selected epoch.
        layer_weights, gamma: by place of ELMo, for each epoch the weights s_j of all layers, and gamma.
        seconds, device_seconds: the time of the run; the computing time of the processor or GPU in its epochs.
        preparing: the CPU seconds before the epochs: "start", and for missing inputs: "files", "layers".
        history: a list over the epochs for each key; `epoch` counts from 1; dev metrics as `dev.<metric>`.
        settings: everything that the result depends on; `run` is its hash.
        more: further keys, which another version may have written.
        path: the path of its file; the run's per-example results are beside it. None if it was not read from a file.
        weights: the digest of the biLM's weights; None for a baseline. For a biLM that a run trains itself, as at mini,
            it is the digest of the recipe, as in the run's identity: another processor rounds the same training
            differently, but runs on both are seeds of one arm.
        vector_files: the digests of the files of word vectors, or of the text for training them, because names are not
            unique.
        inputs: the digests of its data and of its files of word vectors: runs with equal inputs are comparable.
        dev_scores: the monitored metric on dev after every epoch, in percent.
        most_epochs, rises: the maximum of epochs; whether its dev score was best in the last of these.
    """

    metrics: dict[str, dict[str, float]]
    epoch: int
    epochs: int
    updates: int
    selected_updates: int
    layer_weights: dict[str, list[list[float]]]
    gamma: dict[str, list[float]]
    seconds: float
    device_seconds: float
    tokens_per_second: float
    preparing: dict[str, float] | None = None
    peak_memory_mib: int | None = None
    device_peak_memory_mib: int | None = None
    parameters: int
    data_sha256: str
    generated_sha256: dict[str, str]
    machine: Plain
    versions: dict[str, str]
    finished: str
    checkpoint: str
    history: dict[str, list[Any]]
    settings: Plain
    word_vectors: Plain | None
    more: Plain = field(default_factory=dict)
    path: Path | None = field(default=None, compare=False)

    def __post_init__(self):
        super().__post_init__()
        recipe = self.settings.get("bilm", {}).get("recipe")
        self.weights: str | None = self.bilm["sha256"] if recipe is None else fingerprint(recipe, 64)
        words = self.settings["task"].get("words") or {}
        self.vector_files: list[str] = DIGEST.findall(
            json_text.dumps([self.settings.get("vectors"), words.get("path")])
        )
        self.inputs = self.data_sha256, *self.vector_files
        self.dev_scores: list[float] = self.history.get(f"dev.{self.monitor}", [None])  # refused by readers of records
        self.most_epochs: int | None = self.config["task"].get("fit", {}).get("epochs")
        self.rises = self.epoch == self.most_epochs

    def fills_batch(self, fraction: float) -> bool:
        """Whether this fraction of a full run's data fills a batch, by the updates of its first epoch."""
        trainer = self.config.get("trainer") or {}
        together = trainer.get("devices", 1) * (trainer.get("lightning") or {}).get("accumulate_grad_batches", 1)
        return fraction * self.history["updates"][0] * together >= 1

    def plain(self) -> Plain:
        """Its keys on disk, in their order."""
        known = {key: getattr(self, key) for key in KEYS}
        needed = RECORD.model_fields
        return {key: each for key, each in known.items() if needed[key].is_required() or each is not None} | self.more


def from_json(plain: Plain, path: Path | None = None) -> Record:
    """A record from its keys on disk, which must be consistent. Earlier versions counted epochs of `history` from 0."""
    valid(RECORD, plain)
    known = {key: plain[key] for key in KEYS if key in plain}
    epochs = plain["history"]["epoch"]
    known["history"] = plain["history"] | {"epoch": [epoch + (0 in epochs) for epoch in epochs]}
    record = Record(**known, more={key: value for key, value in plain.items() if key not in known}, path=path)
    settings, task, dev = record.settings, record.settings["task"], f"dev.{record.monitor}"
    named = task.get("name"), settings["scale"].get("name"), settings["seed"], task.get("version", 1)
    columns = [*record.history.values(), *record.layer_weights.values(), *record.gamma.values()]
    layers = {len(row) for place in record.layer_weights.values() for row in place}
    belongs = {
        "run is not the hash of its settings": record.run == fingerprint(settings),
        "group is not the hash of its settings": record.group == fingerprint(without_seed(settings)),
        "its settings name another task, scale, seed or version": named
        == (record.task, record.scale, record.seed, record.version),
        "arm is not that of elmo.where": (record.arm == "elmo") == record.has_elmo,
        f"metrics lack {record.monitor}": all(record.monitor in scores for scores in record.metrics.values()),
        "layer_weights and gamma have other places": record.layer_weights.keys() == record.gamma.keys(),
        "layer_weights have several lengths": len(layers) <= 1 and 0 not in layers,
        "a list of epochs has another length": {len(column) for column in columns} == {record.epochs},
        "epoch is beyond its epochs": record.epoch <= record.epochs,
        f"history lacks {dev}": None not in record.history.get(dev, [None]),
    }
    if wrong := next((reason for reason, fits in belongs.items() if not fits), None):
        raise UserError(wrong)
    return record


def without_seed(settings: Mapping[str, Any]) -> Plain:
    """The common part of a group's runs."""
    return {key: value for key, value in settings.items() if key != "seed"}


def own_files(config: Mapping[str, Any]) -> dict[str, str]:
    """By split, the name of a user's file that replaces the scale's file, in a run's configuration without folders.

    Generated files of a scale are recognised by their folder, other files by their names.
    """
    task, scale = config["task"], config["scale"]
    of_task, theirs, found = task.get("name"), dict[str, Any](), dict[str, str]()
    for page in (places.page("task", of_task), places.page(f"task/{of_task}", scale.get("name"))):
        page_data: Any = OmegaConf.to_container(pages.read(page)) if page.is_file() else {}
        theirs |= (page_data.get("task") or {}).get("data") or {}
    for split in ("train", "dev", "test"):
        ours = (task.get("data") or {}).get(split)
        if isinstance(ours, str) and isinstance(theirs.get(split), str):
            name, scales = PurePath(ours).name, theirs[split].removeprefix("${in_folder:").removesuffix("}")
            if scale.get("maker"):
                own = ours != scales.replace("${scale.folder}", str(scale.get("folder")))
            else:
                own = name != PurePath(scales).name
            found |= {split: name} if own else {}
    return found


# Names of runs in messages and tables.

PATH = re.compile(r"(<\w+>)?/?[\w.+ -]+(/[\w.+ -]+)*")  # also one that begins with the mark of a folder, as <data_root>


def label(where: str, variant: Mapping[str, Any]) -> str:
    """An arm and a run's changes to it, as typed: "baseline", "+ELMo (input)", "+ELMo (input; layers=last)".

    Args:
        where: the place where ELMo enters; "none": nowhere.
        variant: the changes, by dotted key; with a record's `own_data` also the user's own files of data.
    """
    arm, places = ("baseline", []) if where == "none" else ("+ELMo", [where])
    details = "; ".join([*places, *filter(None, [changes_text(variant)])])
    return f"{arm} ({details})" if details else arm


def changes_text(variant: Mapping[str, Any]) -> str:
    """A run's changes in one line: "biLM mine, task.data.train=a.txt"."""
    known = {"vectors": "{} vectors", "bilm": "biLM {}"}
    changes = {key: words for key, words in changes_in_words(variant).items() if key != "elmo.where"}
    return ", ".join(
        known[key].format(words) if key in known else f"{key.removeprefix('elmo.')}={words}"
        for key, words in changes.items()
    )


def changes_in_words(variant: Mapping[str, Any]) -> dict[str, str]:
    """A run's changes, each value in words; for a class its name, and its arguments under separate keys."""
    found = {}
    for key, value in variant.items():
        block = value if isinstance(value, Mapping) else {}
        if "_target_" in block or (block and all(isinstance(each, Mapping) for each in block.values())):
            found |= {key: in_words(block["_target_"])} if "_target_" in block else {}
            found |= changes_in_words({f"{key}.{name}": block[name] for name in block if name != "_target_"})
        else:
            named = key in ("vectors", "bilm") or key.startswith("task.data.")
            whole = named or key.endswith(".monitor")  # the name of a metric is not a path
            found[key] = str(value) if whole else in_words(value)
    return found


def in_words(value: Any) -> str:
    """A value as typed: false, null, the last part of a path or of the name of a class."""
    if isinstance(value, str):
        dotted = "." in value and all(part.isidentifier() for part in value.split("."))
        return value.rpartition(".")[2] if dotted else value.rpartition("/")[2] if PATH.fullmatch(value) else value
    if isinstance(value, list):
        return f"[{','.join(map(in_words, value))}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{in_words(value[key])}' for key in value)}}}"
    return as_typed(value)


def run_name(task: str, scale: str, arm: str, seed: int) -> str:
    """A run in words."""
    return f"{task}/{scale} {arm}, seed {seed}"


def title(record: Record) -> str:
    """The name of the run that a record describes."""
    arm = label(record.where, record.variant | record.own_data)
    return run_name(record.task, record.scale, arm, record.seed)


def summary(record: Record) -> str:
    """The scores of a record in a few words."""
    dev, test = (record.metrics[split][record.monitor] for split in ("dev", "test"))
    monitor = record.monitor
    last = " (dev best in the last one)" if record.rises else ""
    return f"dev {monitor} {dev:.2f}, test {monitor} {test:.2f}, {record.epochs} epochs{last}, {record.seconds:.0f} s"
