"""The typed configuration of a run: every key with its type, default, allowed values and meaning.

The dataclasses are Hydra structured configs; the files under `conf/` fill them in. A subsystem receives only its own
block. The blocks of a task that name code by `_target_` (reader, words, chars, head, metric, optimizer, scheduler,
average) are open: their keys are the arguments of the code that they name.

`identity=False` marks a field that no result depends on; any other value that is not the default is part of a run's
identity (`identity/settings.py`).
"""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from elmo_bench.configuration import checks, lightning
from elmo_bench.system import code
from elmo_bench.system.errors import UserError, as_typed
from elmo_bench.system.terminal import console

Plain = dict[str, Any]
T = TypeVar("T")
KEYS = {"penalty": "lambda"}  # field: its name in a configuration; `lambda` is a Python keyword
PRECISIONS = "32-true", "bf16-mixed", "16-mixed", "64-true"  # with which frozen layers, in 32 bits, can be used
KINDS = {"str": str, "bool": bool, "list[str]": list}
FORMER = {"task.arms", "scale.pair"}  # keys that checkpoints of earlier releases hold and nothing reads: passed over


def key(
    default: Any = MISSING,
    help: str = "",
    choices: tuple = (),
    least: float | None = None,
    below: float | None = None,
    above: float | None = None,
    most: float | None = None,
    identity: bool = True,
) -> Any:
    """A field of the configuration.

    Args:
        default: its value if no configuration file sets one; `MISSING` if one must.
        help: its meaning, for `--help`.
        choices: all allowed values.
        least, below, above, most: bounds of a number: at least `least`, smaller than `below`, larger than `above`, at
            most `most`.
        identity: False if no result depends on it.
    """
    bounds = {"least": least, "below": below, "above": above, "most": most}
    metadata = {"help": help, "choices": choices, "bounds": bounds, "identity": identity}
    if isinstance(default, list | dict):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass
class ElmoConfig:
    """Where and how ELMo enters (paper, sections 3.2 and 3.3)."""

    where: str = key("input", "where ELMo enters the model", choices=("none", "input", "output", "both"))
    layers: Any = key(
        "all", "all, last, the number of one layer, or fixed weights in brackets, one per layer: [0.2,0.3,0.5]"
    )
    gamma: bool = key(True, "learn the scale γ of equation (1); false: keep it at 1")
    penalty: float = key(0.0, "penalty λ Σ w² on the layer weights before the softmax", least=0)
    layer_norm: Any = key(
        False,
        "normalise the layers; paper: one mean and variance per batch and layer; token: per vector",
        choices=(False, "paper", "token"),
    )
    dropout: float = key(0.5, "dropout on the mixed vector", least=0, below=1)
    projection: int | None = key(None, "size of a linear projection of the mixed vector; null: none", least=1)
    words: str = key("beside", "keep the task's word vectors beside ELMo, or drop them", choices=("beside", "instead"))
    finetune: str = key(
        "none", "none: the biLM is frozen; joint: it is trained with the model", choices=("none", "joint")
    )


@dataclass
class LayersConfig:
    """A source of layers (`bilm=`): the keys that all sources share. A file adds the arguments of its own source."""

    _target_: str = key(MISSING, "Python class of the source")
    name: str = key(MISSING, "its name in records and reports", identity=False)
    tuned: bool = key(False, "true for a biLM that was tuned on the task's training text", identity=False)
    cache: bool = key(True, "compute the layers of a frozen source once and store them below cache_root")
    download: str | None = key(None, "where to get the files; shown in messages", identity=False)
    licence: str | None = key(None, "licence of the files; shown in messages", identity=False)
    maker: str | None = key(None, "Python class that makes the files if they are missing", identity=False)
    seen: list[str] = key(
        [], "tasks whose data it was trained on; the report marks their scores as contaminated", identity=False
    )


@dataclass
class BilmConfig(LayersConfig):
    """A biLM in the official layout."""

    options: str | None = key(None, "the biLM's options.json")
    weights: str | None = key(None, "the biLM's weights, .hdf5 or .safetensors")
    state: str = key("warm", "LSTM state at the start of a sentence", choices=("zero", "warm", "carry"))
    seed: int = key(1, "seed of a biLM that the run trains itself (bilm=mini)", least=0)
    like: str | None = key(
        None, "for an untrained biLM: the source of its sizes, an options file or a recipe under conf/pretrain"
    )


@dataclass
class NewSoftmaxConfig:
    """The softmax that a biLM without one gets before it is tuned, while the biLM itself is frozen."""

    vocabulary: int = key(MISSING, "the most words, including the three markers", least=4)
    epochs: int = key(MISSING, "passes over the text", least=1)
    lr: float = key(MISSING, "peak learning rate", above=0)


@dataclass
class TuningConfig:
    """How a biLM is tuned (paper, section 3.4); keys as in a recipe of conf/pretrain."""

    epochs: int = key(MISSING, "passes over the text", least=1)
    lr: float = key(MISSING, "peak learning rate; 0 changes nothing", least=0)
    softmax_lr: float = key(MISSING, "factor on the learning rate of the softmax", above=0)
    warmup: int = key(MISSING, "updates until the learning rate is at its peak", least=1)
    rows: int = key(MISSING, "streams that are read in parallel", least=1)
    steps: int = key(MISSING, "unrolled steps of an update", least=1)
    negatives: int = key(MISSING, "size of the softmax's sample", least=2)
    clip: float = key(MISSING, "bound on the gradient norm of all parameters except the softmax", above=0)
    dropout: float = key(0.0, "on the input of every LSTM layer and on the last one's output", least=0, below=1)
    bfloat16: bool = key(False, "compute matrix products in bfloat16")
    seed: int = key(1, "seed of the order of sentences and of the samples", least=0)
    softmax: NewSoftmaxConfig = field(default_factory=NewSoftmaxConfig)
    compile: bool = key(False, "compile the pointwise operations", identity=False)
    device: str = key("auto", "where to tune", choices=("auto", "cpu", "cuda"), identity=False)
    every: float = key(300.0, "seconds between checkpoints", least=0, identity=False)
    source: BilmConfig = field(default_factory=BilmConfig, metadata={"identity": False})  # of bilm.parent
    task: str = key(MISSING, "whose text it is", identity=False)
    reader: Any = key(MISSING, "reads the task's data", identity=False)
    text: Any = key({}, "keys of the reader that differ where its words are read as plain text", identity=False)
    folder: str = key(MISSING, "where the tuned biLM is", identity=False)


@dataclass
class TunedConfig(BilmConfig):
    """A biLM tuned on a task's training text; its identity is the recipe of its maker."""

    parent: str = key(MISSING, "the biLM to tune, a file in conf/bilm/", identity=False)
    tuning: TuningConfig = field(default_factory=TuningConfig, metadata={"identity": False})


@dataclass
class TransformersConfig(LayersConfig):
    """A local Hugging Face model."""

    path: str | None = key(None, "folder of the model and its tokenizer, as save_pretrained writes it")
    pooling: str = key(
        "first", "vector of a word: of its first word piece, or the mean over its pieces", choices=("first", "mean")
    )


@dataclass
class VectorSetConfig:
    """A table of pre-trained word vectors, an entry of `vectors.sets`."""

    name: str = key(MISSING, "its name in records and messages", identity=False)
    size: int = key(MISSING, "dimension of the vectors", least=1)
    cased: bool = key(True, "whether the table has capital letters; false: words are looked up in lower case")
    lookup: str | None = key(
        None, "exact: words as they stand; lower: then in lower case; null: as task.words says",
        choices=(None, "exact", "lower"),
    )  # fmt: skip
    missing: str | None = key(
        None, "vectors of words that it lacks; null: as task.words says", choices=(None, "random", "zero")
    )
    unit: bool | None = key(None, "bring every vector to unit length; null: as task.words says")
    files: list[str] = key([], "its file below vectors_root: the first of these that exists is read", identity=False)
    words: str | None = key(None, "the file of its words, one a line, if `files` have only numbers", identity=False)
    package: str | None = key(None, "installed package that has it too", identity=False)
    package_files: list[str] = key([], "in this package: the matrix (.npy) and its words (.parquet)", identity=False)
    licence: str | None = key(None, "shown in messages", identity=False)
    download: str | None = key(None, "where to get it; shown in messages", identity=False)


@dataclass
class VectorsConfig:
    """Static word vectors (`vectors=`)."""

    source: str = key(
        "page",
        "page: as in task.words; random: trained from random values; sets: pre-trained vectors; text: skip-gram "
        "vectors trained on the biLM's text",
        choices=("page", "random", "sets", "text"),
    )
    sets: dict[str, VectorSetConfig] = key({}, identity=False)  # side by side; counted with their files (`settings`)
    maker: str | None = key(None, "class that trains the vectors", identity=False)
    text: str | None = key(None, "recipe in conf/pretrain/ that names the text")
    root: str | None = key(None, "folder of that text", identity=False)
    size: int | None = key(None, "dimension of the vectors", least=1)
    lower: bool = key(False, "lower-case the text")
    window: int = key(5, "context words on each side", least=1)
    negative: int = key(5, "negative samples", least=1)
    sample: float = key(1.0e-3, "words with a larger share of the text are subsampled", least=0)
    alpha: float = key(0.025, "initial learning rate", above=0)
    min_count: int = key(3, "rarer words get no vector", least=1)
    epochs: int = key(5, "passes over the text", least=1)
    seed: int = key(1, "seed of the training", least=0)

    @property
    def chosen(self) -> list[VectorSetConfig]:
        """The sets, in the order in which they stand side by side."""
        return [self.sets[name] for name in sorted(self.sets)] if self.source == "sets" else []

    @property
    def label(self) -> str:
        """The name of the choice: that of the sets, else of the source."""
        return "+".join(each.name for each in self.chosen) or self.source


@dataclass
class ScaleConfig:
    """The data and biLM of a run (`scale=`); numbers of different scales do not compare."""

    name: str = key(MISSING, "name of the scale: mini, open or paper")
    note: str = key("", "what its numbers mean", identity=False)
    options: str | None = key(None, "sizes of its own biLM, for bilm=untrained", identity=False)
    bilm: str | None = key(None, "its own biLM, a file in conf/bilm/, which bilm=tuned starts from", identity=False)
    tuned: str | None = key(None, "folder of the biLMs that were tuned on the text of its tasks", identity=False)
    folder: str | None = key(None, "folder of its generated data", identity=False)
    maker: str | None = key(None, "class that makes the data", identity=False)
    only: str | None = key(None, "task whose data are made, beside the text; null: of all tasks", identity=False)
    version: int | None = key(None, "version of the generator of its data")
    seed: int = key(1, "seed of the generator", least=0)
    sizes: Any = key(None, "changes to the generator's default sizes")
    asks_for_vectors: bool = key(False, "whether random word vectors need vectors=random", identity=False)


@dataclass
class FitConfig:
    """How long a task is trained."""

    epochs: int = key(MISSING, "largest number of epochs", least=1)
    patience: int | None = key(None, "epochs without a better dev score before training stops; null: never", least=0)
    least_updates: int = key(
        1000,
        "with a fraction of the training data, an epoch passes over it several times, for at least this many updates "
        "in all epochs (but no more than all of the data would take)",
        least=0,
    )


@dataclass
class BatchConfig:
    """The size of batches."""

    batch_size: int = key(MISSING, "examples in a batch", least=1)
    token_budget: int | None = key(
        None, "largest number of tokens in a batch, padding included; null: no bound", least=1
    )


@dataclass
class ClipConfig:
    """Clipping of gradients."""

    value: float | None = key(None, "largest norm or value of the gradients; null: no clipping", above=0)
    by: str = key("norm", "what `value` bounds", choices=("norm", "value"))


@dataclass
class ScheduleConfig:
    """Learning-rate schedule."""

    scheduler: Any = key(None, "a partial class of torch.optim.lr_scheduler; null: a constant learning rate")
    interval: str = key("epoch", "when the schedule steps", choices=("epoch", "step"))


@dataclass
class TaskConfig:
    """A task: its common file conf/task/<task>.yaml, and the file of the scale, conf/task/<task>/<scale>.yaml."""

    name: str = key(MISSING, "its folder in tasks/")
    title: str | None = key(None, "its name in tables; null: the name of its folder", identity=False)
    version: int = key(
        1, "version of its computation, raised when a change to reader, head or metric changes results", least=1
    )
    scales: list[str] = key([], "scales that it offers", identity=False)
    monitor: str = key(MISSING, "dev metric that selects the epoch")
    paper: Any = key(None, "the paper's figures", identity=False)
    perplexity: Any = key(None, "the paper's perplexities of dev before and after tuning (Table 7)", identity=False)
    data: Any = key(
        None, "files, or data set of the Hugging Face hub, of each split", identity=False
    )  # part of the reader block
    download: str | None = key(None, "where to get the data, and their licence; shown in messages", identity=False)
    elmo: Any = key("${elmo}", identity=False)  # a copy of the elmo block, for readers of records
    reader: Any = key(MISSING, "reads the data and makes batches")
    text: Any = key({}, "keys of the reader that differ where its words are read as plain text", identity=False)
    words: Any = key(None, "the task's own word vectors")
    chars: Any = key(None, "the task's own character encoder")
    head: Any = key(MISSING, "the model")
    metric: Any = key(MISSING, "the official metric")
    score: str = key(MISSING, "function that scores two files", identity=False)
    optimizer: Any = key(MISSING, "a partial optimizer class")
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    clip: ClipConfig = field(default_factory=ClipConfig)
    average: Any = key(None, "a callback of Lightning that averages the weights")
    batch: BatchConfig = field(default_factory=BatchConfig)
    fit: FitConfig = field(default_factory=FitConfig)


@dataclass
class TrainerConfig:
    """Hardware and how it is used; devices, precision and limit_batches change results. Any argument of Lightning's
    Trainer may stand beside these keys (`configuration/lightning.py`)."""

    accelerator: str = key("auto", "the kind of device", choices=("auto", "cpu", "gpu", "cuda", "mps"), identity=False)
    devices: Any = key(
        1, "number of devices; each takes a batch of every update, which changes results; [1]: the GPU with this number"
    )
    threads: int | None = key(None, "CPU threads of torch; null: one per core", least=1, most=1024, identity=False)
    progress: Any = key(
        "auto", "show a progress bar; auto: on a terminal", choices=("auto", True, False), identity=False
    )
    precision: str = key("32-true", "precision of matrix products; 16-mixed needs a GPU", choices=PRECISIONS)
    tf32: bool = key(False, "compute in TF32 on a GPU: faster, with 10 bits of fraction instead of 23")
    deterministic: bool = key(
        False,
        "on a GPU, use deterministic algorithms: slower, but a resumed run equals an undisturbed one",
        identity=False,
    )
    limit_batches: Any = key(None, "train on only this many batches of each epoch; the report leaves such runs out")
    fast_dev_run: Any = key(
        False, "a smoke run: train and score one batch (or this many) of each split, and record nothing",
        identity=False,
    )  # fmt: skip
    gpu: int | None = field(default=None, metadata={"identity": False})  # devices=[gpu]
    lightning: dict[str, Any] = field(default_factory=dict, metadata={"identity": False, "beside": True})
    around: dict[str, Any] = field(default_factory=dict, metadata={"identity": False})  # no result depends on these


# The keys that are typed; the others are made of them (`lightning.read`).
TRAINERS_OWN = [each.name for each in dataclasses.fields(TrainerConfig) if "help" in each.metadata]


@dataclass
class WandbConfig:
    """Weights & Biases; offline without a key."""

    project: str = key("elmo_bench", "project of W&B")
    entity: str | None = key(None, "user or team of W&B; null: the user of the key")
    name: str | None = key(None, "name of the run; null: task, scale, arm and seed")
    notes: str | None = key(None, "notes about the run")
    tags: list[str] = key([], "tags in addition to those of every run")
    group: str | None = key(None, "group of the run; null: SWEEP/SCALE/TASK")
    job_type: str | None = key(None, "job type of the run; null: the arm")


@dataclass
class LoggerConfig:
    """Where metrics go beside the CSV files."""

    wandb: WandbConfig | None = key(None, "Weights & Biases")
    more: dict[str, Any] = key(
        {}, "other loggers of Lightning, each a block with its _target_ under a name of your choice"
    )


@dataclass
class Places:
    """Folders of this machine. No result depends on the paths, only on the content of the files."""

    data_root: str | None
    models_root: str
    cache_root: str
    results_root: str


@dataclass
class RunConfig:
    """One run of one task."""

    seed: int = key(1, "random seed: initial weights, order of batches, dropout", least=0)
    fraction: float = key(1.0, "share of the training data; the subset depends on the seed", above=0, most=1)
    force: bool = key(False, "train again even if there is a record", identity=False)
    debug: bool = key(False, "show the traceback of an error", identity=False)
    compile: bool = key(False, "compile the head with torch.compile", identity=False)
    callbacks: dict[str, Any] = key(
        {}, "callbacks of Lightning, each a block with its _target_ under a name of your choice", identity=False
    )
    data_root: str | None = key(None, "folder of the data", identity=False)
    models_root: str = key(MISSING, "folder of biLMs", identity=False)
    vectors_root: str | None = key(None, "folder of pre-trained word vectors", identity=False)
    cache_root: str = key(MISSING, "folder of generated data, cached layers and word vectors", identity=False)
    results_root: str = key(MISSING, "folder of records and checkpoints", identity=False)
    arm: str = key("elmo", "elmo, or baseline: without ELMo, the same as elmo.where=none", identity=False)
    elmo: Any = MISSING  # an ElmoConfig; Any, because a dataclass field cannot be called `lambda`
    task: TaskConfig = field(default_factory=TaskConfig)
    bilm: Any = MISSING  # a LayersConfig, of the class that its configuration file needs
    vectors: VectorsConfig = field(default_factory=VectorsConfig)
    scale: ScaleConfig = field(default_factory=ScaleConfig)
    trainer: Any = MISSING  # a TrainerConfig, and Lightning's own arguments
    logger: LoggerConfig = field(default_factory=LoggerConfig)
    launcher: Any = field(default=None, metadata={"identity": False})
    sweeper: Any = field(default=None, metadata={"identity": False})
    table: Any = field(default=None, metadata={"identity": False})  # of a file in conf/sweep (`tables.SweepTable`)

    @property
    def places(self) -> Places:
        return Places(self.data_root, self.models_root, self.cache_root, self.results_root)

    @property
    def baseline(self) -> bool:
        """Whether the run has no ELMo."""
        return self.elmo.where == "none"

    @property
    def words_dropped(self) -> bool:
        """Whether ELMo replaces the task's word vectors."""
        return not self.baseline and self.elmo.words == "instead"

    @property
    def trains_vectors(self) -> bool:
        """Whether its word vectors are trained here, on the text of a biLM."""
        return self.task.words is not None and self.vectors.source == "text"

    @property
    def sets(self) -> list[VectorSetConfig]:
        """The vector sets that the model uses."""
        return [] if self.words_dropped or self.task.words is None else self.vectors.chosen


COMMON = tuple(each.name for each in dataclasses.fields(LayersConfig))  # keys of every source
SOURCES: dict[str, type[LayersConfig]] = {
    "bilm": BilmConfig,
    "tuned": TunedConfig,
    "transformers": TransformersConfig,
}


def register() -> None:
    """Registers the schema with Hydra: `schema` for a run, `schema/bilm/<kind>` for each kind of source."""
    store = ConfigStore.instance()
    store.store("schema", node=RunConfig)
    store.store("elmo", node=_renamed(ElmoConfig), group="schema", package="elmo")
    store.store("trainer", node=_renamed(TrainerConfig, TRAINERS_OWN, False), group="schema", package="trainer")
    for kind, source in SOURCES.items():
        store.store(kind, node=source, group="schema/bilm", package="bilm")


def _renamed(cls: type, names: Sequence[str] = (), closed: bool = True) -> DictConfig:
    """The typed keys of a dataclass, with the fields in `KEYS` under their names in a configuration."""
    typed = OmegaConf.structured(cls)
    nodes = {KEYS.get(name, name): typed._get_node(name) for name in names or typed}
    return DictConfig(nodes, flags={"struct": closed})


def typed(cfg: DictConfig) -> RunConfig:
    """The resolved configuration as dataclasses, with every value checked.

    Raises:
        UserError: a missing value, or one that is not allowed.
    """
    try:
        plain: Any = OmegaConf.to_container(cfg, resolve=True, throw_on_missing=True, enum_to_str=True)
    except OmegaConfBaseException:
        if missing := OmegaConf.missing_keys(cfg):
            raise UserError(f"no value for {', '.join(sorted(missing))}; give it as key=value") from None
        raise
    return from_plain(plain)


def from_plain(plain: Plain) -> RunConfig:
    """The same from plain containers, as stored in checkpoints. Raises `UserError` as `typed` does."""
    plain = {**code.importable(plain), "trainer": lightning.read(plain.get("trainer", {}), TRAINERS_OWN)}
    run = _object(RunConfig, plain)
    run.trainer = _object(TrainerConfig, plain["trainer"], "trainer.")
    run.elmo = _object(ElmoConfig, plain["elmo"], "elmo.")
    run.arm = "baseline" if run.elmo.where == "none" else "elmo"  # earlier releases had more arms
    run.bilm = _object(source_schema(plain["bilm"]), plain["bilm"], "bilm.")
    for name, block in (("data", run.task.data), ("reader", run.task.reader)):
        if not isinstance(block, dict | None):
            files = ", as task.data.train=FILE task.data.dev=FILE task.data.test=FILE" if name == "data" else ""
            raise UserError(f"task.{name}={as_typed(block)}: a block of keys is needed{files}")
    check(run)
    run.task.words = _with_vectors(run.task.words, run.vectors)
    return run


def _with_vectors(words: Plain | None, vectors: VectorsConfig) -> Plain | None:
    """A task's `words` block with the keys that the choice of vectors decides."""
    if words is None:
        return None
    if vectors.source == "random":
        return {**words, "trainable": True}
    return {**words, "size": sum(each.size for each in vectors.chosen)} if vectors.chosen else words


def source_schema(block: Plain) -> type[LayersConfig]:
    """The dataclass for a `bilm` block: the one that has most of its keys.

    A class of the user's own, whose file names none of these kinds in its `defaults`, has its arguments as keys. Raises
    `UserError` if there is no such class.
    """
    kinds = {kind: {each.name for each in dataclasses.fields(kind)} for kind in SOURCES.values()}
    target = code.located(str(block.get("_target_")))
    if target.startswith("elmo_bench.") or any(names <= block.keys() for names in kinds.values()):
        return min(kinds, key=lambda kind: len(set(block) - kinds[kind]))
    try:
        taken = inspect.signature(pkgutil.resolve_name(target)).parameters.values()
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise UserError(f"bilm._target_={target}: there is no such class ({error})") from error
    own = [
        (each.name, Any, field(default=None if each.default is each.empty else each.default))
        for each in taken
        if each.kind != each.VAR_KEYWORD and each.name not in COMMON
    ]
    return dataclasses.make_dataclass("OwnLayersConfig", own, bases=(LayersConfig,))


def _object(cls: type[T], plain: Plain, prefix: str = "") -> T:
    """A dataclass from plain containers, nested blocks included. Raises `UserError` for a key that it lacks."""
    if not isinstance(plain, dict):
        raise UserError(f"{prefix.rstrip('.')}={as_typed(plain)}: a block of keys is needed")
    known = [KEYS.get(each.name, each.name) for each in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for name in plain:
        if name not in known and f"{prefix}{name}" not in FORMER:
            other = f"; another logger is +logger.more.{name}._target_=CLASS" if cls is LoggerConfig else ""
            raise UserError(f"{prefix}{name}: there is no such key; {console.choices(name, known)}{other}")
    values: Plain = {}
    for each in dataclasses.fields(cls):  # type: ignore[arg-type]
        name = KEYS.get(each.name, each.name)
        if name not in plain:
            continue
        values[each.name] = _value(each, plain[name], f"{prefix}{name}.")
    return cls(**values)


def _value(each: dataclasses.Field, value: Any, prefix: str) -> Any:
    """The value of a field; a block, or a dict of blocks, as dataclasses."""
    annotation = str(each.type).removesuffix(" | None")
    block = globals().get(annotation.removeprefix("dict[str, ").removesuffix("]"))
    if not dataclasses.is_dataclass(block) or (value is None and annotation != each.type):
        return value
    if annotation.startswith("dict") and isinstance(value, dict):
        return {name: _object(block, inner, f"{prefix}{name}.") for name, inner in value.items()}  # type: ignore[type-var]
    return _object(block, value, prefix)  # type: ignore[type-var]


def check(block: Any, prefix: str = "") -> None:
    """Raises `UserError` if a value of a block, or of a nested block, is not allowed."""
    for each in dataclasses.fields(block):
        name, value = f"{prefix}{KEYS.get(each.name, each.name)}", getattr(block, each.name)
        if dataclasses.is_dataclass(value):
            check(value, f"{name}.")
            continue
        if isinstance(value, dict):
            for part, inner in value.items():
                if dataclasses.is_dataclass(inner):
                    check(inner, f"{name}.{part}.")
        if choices := each.metadata.get("choices"):
            checks.one_of(value, name, choices)
        if value is not None:
            _within(each, value, name)
        elif str(each.type).removesuffix(" | None") == each.type != "Any":
            raise UserError(f"{name}=null: a value is needed")
    if isinstance(block, TrainerConfig):
        checks.whole(block.devices, f"{prefix}devices", 1, 64)
        batches = block.limit_batches  # a number of them, or a share of all
        if batches is not None and not (isinstance(batches, float) and 0 < batches < 1):
            checks.whole(batches, f"{prefix}limit_batches", 1)
        if not isinstance(block.fast_dev_run, bool):
            checks.whole(block.fast_dev_run, f"{prefix}fast_dev_run", 1)


def _within(each: dataclasses.Field, value: Any, name: str) -> None:
    """Raises `UserError` for a number out of its field's bounds."""
    bounds = each.metadata.get("bounds", {})
    least, most = bounds.get("least"), bounds.get("most")
    if str(each.type).startswith("int"):
        checks.whole(value, name, int(least or 0), int(most or 2**31 - 1))
    elif str(each.type).startswith("float"):
        checks.number(value, name, least, bounds.get("below"), bounds.get("above"), most)
    elif (kind := KINDS.get(str(each.type).removesuffix(" | None"))) and not isinstance(value, kind):
        raise UserError(f"{name}={as_typed(value)}: a {kind.__name__} is needed")
    else:
        checks.finite(value, name)
