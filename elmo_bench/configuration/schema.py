"""The typed configuration of a run: every key with its type, default, allowed values and meaning.

The files under `conf/` fill the blocks in. A subsystem receives only its own block. The blocks of a task that name code
by `_target_` (reader, words, chars, head, metric, optimizer, scheduler, average) are open: their keys are the arguments
of the code that they name.

`identity=False` marks a key that no result depends on; any other value that is not the default is part of a run's
identity (`identity/settings.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self

from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from pydantic import AfterValidator, field_validator, model_validator

from elmo_bench.configuration import lightning
from elmo_bench.configuration.checks import Flag, Keys, Text, defaults, fields, finite, key, valid
from elmo_bench.system import code
from elmo_bench.system.errors import UserError

Plain = dict[str, Any]
FORMER = (("task", "arms"), ("scale", "pair"))  # keys that checkpoints of earlier releases hold and nothing reads


def _batches(value: Any) -> Any:
    """A number of batches, a share of all, or none. Raises `ValueError` for another value."""
    share = isinstance(value, float) and 0 < value < 1
    if not (value is None or isinstance(value, bool) or share or (isinstance(value, int) and value > 0)):
        raise ValueError("a whole number from 1 is needed")
    return value


class ElmoConfig(Keys):
    """Where and how ELMo enters (paper, sections 3.2 and 3.3)."""

    where: Literal["none", "input", "output", "both"] = key("input", "where ELMo enters the model")
    layers: Any = key(
        "all", "all, last, the number of one layer, or fixed weights in brackets, one per layer: [0.2,0.3,0.5]"
    )
    gamma: Flag = key(True, "learn the scale γ of equation (1); false: keep it at 1")
    penalty: float = key(0.0, "penalty λ Σ w² on the layer weights before the softmax", ge=0, alias="lambda")
    layer_norm: Literal[False, "paper", "token"] = key(
        False,
        "normalise the layers; paper: one mean and variance per batch and layer; token: per vector",
    )
    dropout: float = key(0.5, "dropout on the mixed vector", ge=0, lt=1)
    projection: int | None = key(None, "size of a linear projection of the mixed vector; null: none", ge=1)
    words: Literal["beside", "instead"] = key("beside", "keep the task's word vectors beside ELMo, or drop them")
    finetune: Literal["none", "joint"] = key("none", "none: the biLM is frozen; joint: it is trained with the model")


class LayersConfig(Keys):
    """A source of layers (`bilm=`): the keys that all sources share. A file adds the arguments of its own source."""

    target: Text = key(..., "Python class of the source", alias="_target_")
    name: Text = key(..., "its name in records and reports", identity=False)
    tuned: Flag = key(False, "true for a biLM that was tuned on the task's training text", identity=False)
    cache: Flag = key(True, "compute the layers of a frozen source once and store them below cache_root")
    download: Text | None = key(None, "where to get the files; shown in messages", identity=False)
    licence: Text | None = key(None, "licence of the files; shown in messages", identity=False)
    maker: Text | None = key(None, "Python class that makes the files if they are missing", identity=False)
    seen: list[Text] = key(
        [], "tasks whose data it was trained on; the report marks their scores as contaminated", identity=False
    )


class BilmConfig(LayersConfig):
    """A biLM in the official layout."""

    options: Text | None = key(None, "the biLM's options.json")
    weights: Text | None = key(None, "the biLM's weights, .hdf5 or .safetensors")
    state: Literal["zero", "warm", "carry"] = key("warm", "LSTM state at the start of a sentence")
    seed: int = key(1, "seed of a biLM that the run trains itself (bilm=mini)", ge=0)
    like: Text | None = key(
        None, "for an untrained biLM: the source of its sizes, an options file or a recipe under conf/pretrain"
    )


class NewSoftmaxConfig(Keys):
    """The softmax that a biLM without one gets before it is tuned, while the biLM itself is frozen."""

    vocabulary: int = key(..., "the most words, including the three markers", ge=4)
    epochs: int = key(..., "passes over the text", ge=1)
    lr: float = key(..., "peak learning rate", gt=0)


class TuningConfig(Keys):
    """How a biLM is tuned (paper, section 3.4); keys as in a recipe of conf/pretrain."""

    epochs: int = key(..., "passes over the text", ge=1)
    lr: float = key(..., "peak learning rate; 0 changes nothing", ge=0)
    softmax_lr: float = key(..., "factor on the learning rate of the softmax", gt=0)
    warmup: int = key(..., "updates until the learning rate is at its peak", ge=1)
    rows: int = key(..., "streams that are read in parallel", ge=1)
    steps: int = key(..., "unrolled steps of an update", ge=1)
    negatives: int = key(..., "size of the softmax's sample", ge=2)
    clip: float = key(..., "bound on the gradient norm of all parameters except the softmax", gt=0)
    dropout: float = key(0.0, "on the input of every LSTM layer and on the last one's output", ge=0, lt=1)
    bfloat16: Flag = key(False, "compute matrix products in bfloat16")
    seed: int = key(1, "seed of the order of sentences and of the samples", ge=0)
    softmax: NewSoftmaxConfig = key(...)
    compile: Flag = key(False, "compile the pointwise operations", identity=False)
    device: Literal["auto", "cpu", "cuda"] = key("auto", "where to tune", identity=False)
    every: float = key(300.0, "seconds between checkpoints", ge=0, identity=False)
    source: BilmConfig = key(..., identity=False)  # of bilm.parent
    task: Text = key(..., "whose text it is", identity=False)
    reader: Any = key(..., "reads the task's data", identity=False)
    text: Any = key({}, "keys of the reader that differ where its words are read as plain text", identity=False)
    folder: Text = key(..., "where the tuned biLM is", identity=False)


class TunedConfig(BilmConfig):
    """A biLM tuned on a task's training text; its identity is the recipe of its maker."""

    parent: Text = key(..., "the biLM to tune, a file in conf/bilm/", identity=None)
    tuning: TuningConfig = key(..., identity=None)


class TransformersConfig(LayersConfig):
    """A local Hugging Face model."""

    path: Text | None = key(None, "folder of the model and its tokenizer, as save_pretrained writes it")
    pooling: Literal["first", "mean"] = key(
        "first", "vector of a word: of its first word piece, or the mean over its pieces"
    )


class VectorSetConfig(Keys):
    """A table of pre-trained word vectors, an entry of `vectors.sets`."""

    name: Text = key(..., "its name in records and messages", identity=False)
    size: int = key(..., "dimension of the vectors", ge=1)
    cased: Flag = key(True, "whether the table has capital letters; false: words are looked up in lower case")
    lookup: Literal["exact", "lower"] | None = key(
        None, "exact: words as they stand; lower: then in lower case; null: as task.words says",
    )  # fmt: skip
    missing: Literal["random", "zero"] | None = key(None, "vectors of words that it lacks; null: as task.words says")
    unit: Flag | None = key(None, "bring every vector to unit length; null: as task.words says")
    files: list[Text] = key([], "its file below vectors_root: the first of these that exists is read", identity=False)
    words: Text | None = key(None, "the file of its words, one a line, if `files` have only numbers", identity=False)
    package: Text | None = key(None, "installed package that has it too", identity=False)
    package_files: list[Text] = key([], "in this package: the matrix (.npy) and its words (.parquet)", identity=False)
    licence: Text | None = key(None, "shown in messages", identity=False)
    download: Text | None = key(None, "where to get it; shown in messages", identity=False)


class VectorsConfig(Keys):
    """Static word vectors (`vectors=`)."""

    source: Literal["page", "random", "sets", "text"] = key(
        "page",
        "page: as in task.words; random: trained from random values; sets: pre-trained vectors; text: skip-gram "
        "vectors trained on the biLM's text",
    )
    sets: dict[str, VectorSetConfig] = key({}, identity=None)  # side by side; counted with their files (`settings`)
    maker: Text | None = key(None, "class that trains the vectors", identity=False)
    text: Text | None = key(None, "recipe in conf/pretrain/ that names the text")
    root: Text | None = key(None, "folder of that text", identity=False)
    size: int | None = key(None, "dimension of the vectors", ge=1)
    lower: Flag = key(False, "lower-case the text")
    window: int = key(5, "context words on each side", ge=1)
    negative: int = key(5, "negative samples", ge=1)
    sample: float = key(1.0e-3, "words with a larger share of the text are subsampled", ge=0)
    alpha: float = key(0.025, "initial learning rate", gt=0)
    min_count: int = key(3, "rarer words get no vector", ge=1)
    epochs: int = key(5, "passes over the text", ge=1)
    seed: int = key(1, "seed of the training", ge=0)

    @property
    def chosen(self) -> list[VectorSetConfig]:
        """The sets, in the order in which they stand side by side."""
        return [self.sets[name] for name in sorted(self.sets)] if self.source == "sets" else []

    @property
    def label(self) -> str:
        """The name of the choice: that of the sets, else of the source."""
        return "+".join(each.name for each in self.chosen) or self.source


class ScaleConfig(Keys):
    """The data and biLM of a run (`scale=`); numbers of different scales do not compare."""

    name: Text = key(..., "name of the scale: mini, open or paper")
    note: Text = key("", "what its numbers mean", identity=False)
    options: Text | None = key(None, "sizes of its own biLM, for bilm=untrained", identity=False)
    bilm: Text | None = key(None, "its own biLM, a file in conf/bilm/, which bilm=tuned starts from", identity=False)
    tuned: Text | None = key(None, "folder of the biLMs that were tuned on the text of its tasks", identity=False)
    folder: Text | None = key(None, "folder of its generated data", identity=False)
    maker: Text | None = key(None, "class that makes the data", identity=False)
    only: Text | None = key(None, "task whose data are made, beside the text; null: of all tasks", identity=False)
    version: int | None = key(None, "version of the generator of its data", ge=0)
    seed: int = key(1, "seed of the generator", ge=0)
    sizes: Any = key(None, "changes to the generator's default sizes")
    asks_for_vectors: Flag = key(False, "whether random word vectors need vectors=random", identity=False)


class FitConfig(Keys):
    """How long a task is trained."""

    epochs: int = key(..., "largest number of epochs", ge=1)
    patience: int | None = key(None, "epochs without a better dev score before training stops; null: never", ge=0)
    least_updates: int = key(
        1000,
        "with a fraction of the training data, an epoch passes over it several times, for at least this many updates "
        "in all epochs (but no more than all of the data would take)",
        ge=0,
    )


class BatchConfig(Keys):
    """The size of batches."""

    batch_size: int = key(..., "examples in a batch", ge=1)
    token_budget: int | None = key(None, "largest number of tokens in a batch, padding included; null: no bound", ge=1)


class ClipConfig(Keys):
    """Clipping of gradients."""

    value: float | None = key(None, "largest norm or value of the gradients; null: no clipping", gt=0)
    by: Literal["norm", "value"] = key("norm", "what `value` bounds")


class ScheduleConfig(Keys):
    """Learning-rate schedule."""

    scheduler: Any = key(None, "a partial class of torch.optim.lr_scheduler; null: a constant learning rate")
    interval: Literal["epoch", "step"] = key("epoch", "when the schedule steps")


class TaskConfig(Keys):
    """A task: its common file conf/task/<task>.yaml, and the file of the scale, conf/task/<task>/<scale>.yaml."""

    name: Text = key(..., "its folder in tasks/")
    title: Text | None = key(None, "its name in tables; null: the name of its folder", identity=False)
    version: int = key(
        1, "version of its computation, raised when a change to reader, head or metric changes results", ge=1
    )
    scales: list[Text] = key([], "scales that it offers", identity=False)
    monitor: Text = key(..., "dev metric that selects the epoch")
    paper: Any = key(None, "the paper's figures", identity=False)
    perplexity: Any = key(None, "the paper's perplexities of dev before and after tuning (Table 7)", identity=False)
    data: Any = key(
        None, "files, or data set of the Hugging Face hub, of each split", identity=None
    )  # part of the reader block
    download: Text | None = key(None, "where to get the data, and their licence; shown in messages", identity=False)
    elmo: Any = key("${elmo}", identity=False)  # a copy of the elmo block, for readers of records
    reader: dict[str, Any] = key(..., "reads the data and makes batches")
    text: Any = key({}, "keys of the reader that differ where its words are read as plain text", identity=False)
    words: Any = key(None, "the task's own word vectors")
    chars: Any = key(None, "the task's own character encoder")
    head: Any = key(..., "the model")
    metric: Any = key(..., "the official metric")
    score: Text = key(..., "function that scores two files", identity=False)
    optimizer: Any = key(..., "a partial optimizer class")
    schedule: ScheduleConfig = key(ScheduleConfig())
    clip: ClipConfig = key(ClipConfig())
    average: Any = key(None, "a callback of Lightning that averages the weights")
    batch: BatchConfig = key(...)
    fit: FitConfig = key(...)

    @field_validator("data", mode="before")
    @classmethod
    def _named(cls, data: Any) -> Any:
        if not isinstance(data, dict | None):
            files = "task.data.train=FILE task.data.dev=FILE task.data.test=FILE"
            raise ValueError(f"a block of keys is needed, as {files}")
        return data


LIGHTNING = (  # arguments of its Trainer that are passed on; null is its default
    "accumulate_grad_batches", "min_epochs", "sync_batchnorm", "log_every_n_steps", "profiler", "detect_anomaly",
    "benchmark", "inference_mode", "enable_autolog_hparams",
)  # fmt: skip


class TrainerConfig(Keys):
    """Hardware and how it is used; devices, precision and limit_batches change results, and so do some of Lightning's
    own arguments, the last of these keys."""

    accelerator: Literal["auto", "cpu", "gpu", "cuda", "mps"] = key("auto", "the kind of device", identity=False)
    devices: int = key(
        1,
        "number of devices; each takes a batch of every update, which changes results; [1]: the GPU with this number",
        ge=1,
        le=64,
    )
    threads: int | None = key(None, "CPU threads of torch; null: one per core", ge=1, le=1024, identity=False)
    progress: Literal["auto", True, False] = key("auto", "show a progress bar; auto: on a terminal", identity=False)
    precision: Literal["32-true", "bf16-mixed", "16-mixed", "64-true"] = key(
        "32-true", "precision of matrix products; 16-mixed needs a GPU"
    )
    tf32: Flag = key(False, "compute in TF32 on a GPU: faster, with 10 bits of fraction instead of 23")
    deterministic: Flag = key(
        False,
        "on a GPU, use deterministic algorithms: slower, but a resumed run equals an undisturbed one",
        identity=False,
    )
    limit_batches: Annotated[Any, AfterValidator(_batches)] = key(
        None, "train on only this many batches of each epoch; the report leaves such runs out"
    )
    fast_dev_run: Annotated[Any, AfterValidator(_batches)] = key(
        False, "a smoke run: train and score one batch (or this many) of each split, and record nothing",
        identity=False,
    )  # fmt: skip
    gpu: int | None = key(None, None, identity=False)  # devices=[gpu]
    accumulate_grad_batches: int = key(1, "batches of an update", ge=1)
    min_epochs: int | None = key(None, "epochs before which training does not stop", ge=0)
    sync_batchnorm: bool = key(False, "batch normalisation over all devices")
    log_every_n_steps: int | None = key(None, "updates between two entries of a logger", ge=0, identity=False)
    profiler: Literal["simple", "advanced", "pytorch"] | None = key(None, "where time goes", identity=False)
    detect_anomaly: bool = key(False, "find the operation behind a gradient that is not finite", identity=False)
    benchmark: bool | None = key(None, "let cuDNN choose its algorithms by trial", identity=False)
    inference_mode: bool = key(True, "score in torch's inference mode", identity=False)
    enable_autolog_hparams: bool = key(True, "loggers store the configuration", identity=False)

    @model_validator(mode="before")
    @classmethod
    def _of_lightning(cls, block: Any) -> Any:
        return lightning.read(block, LIGHTNING) if isinstance(block, dict) else block


class WandbConfig(Keys):
    """Weights & Biases; offline without a key."""

    project: Text = key("elmo_bench", "project of W&B")
    entity: Text | None = key(None, "user or team of W&B; null: the user of the key")
    name: Text | None = key(None, "name of the run; null: task, scale, arm and seed")
    notes: Text | None = key(None, "notes about the run")
    tags: list[Text] = key([], "tags in addition to those of every run")
    group: Text | None = key(None, "group of the run; null: SWEEP/SCALE/TASK")
    job_type: Text | None = key(None, "job type of the run; null: the arm")


class LoggerConfig(Keys):
    """Where metrics go beside the CSV files."""

    hint: ClassVar[str] = "; another logger is +logger.more.NAME._target_=CLASS"
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


class RunConfig(Keys):
    """One run of one task."""

    seed: int = key(1, "random seed: initial weights, order of batches, dropout", ge=0)
    fraction: float = key(1.0, "share of the training data; the subset depends on the seed", gt=0, le=1)
    force: Flag = key(False, "train again even if there is a record", identity=False)
    debug: Flag = key(False, "show the traceback of an error", identity=False)
    compile: Flag = key(False, "compile the head with torch.compile", identity=False)
    callbacks: dict[str, Any] = key(
        {}, "callbacks of Lightning, each a block with its _target_ under a name of your choice", identity=None
    )
    data_root: Text | None = key(None, "folder of the data", identity=False)
    models_root: Text = key(..., "folder of biLMs", identity=False)
    vectors_root: Text | None = key(None, "folder of pre-trained word vectors", identity=False)
    cache_root: Text = key(..., "folder of generated data, cached layers and word vectors", identity=False)
    results_root: Text = key(..., "folder of records and checkpoints", identity=False)
    arm: Text = key("elmo", "elmo, or baseline: without ELMo, the same as elmo.where=none", identity=False)
    elmo: ElmoConfig = key(...)
    task: TaskConfig = key(...)
    bilm: Any = key(...)  # a LayersConfig, of the class that its configuration file needs
    vectors: VectorsConfig = key(VectorsConfig())
    scale: ScaleConfig = key(...)
    trainer: TrainerConfig = key(TrainerConfig())
    logger: LoggerConfig = key(LoggerConfig())
    launcher: Any = key(None, identity=False)
    sweeper: Any = key(None, identity=False)
    typed: list[str] = key([], None, identity=False)  # the overrides it is made of, but for the seed
    table: Any = key(None, identity=False)  # of a file in conf/sweep (`tables.SweepTable`)

    @field_validator("bilm", mode="before")
    @classmethod
    def _source(cls, block: Any) -> Any:
        return valid(source_schema(block), block, "bilm")

    @model_validator(mode="after")
    def _settle(self) -> Self:
        self.arm = "baseline" if self.baseline else "elmo"  # earlier releases had more arms
        self.task.words = _with_vectors(self.task.words, self.vectors)
        return self

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


SOURCES: dict[str, type[LayersConfig]] = {
    "bilm": BilmConfig,
    "tuned": TunedConfig,
    "transformers": TransformersConfig,
}


def register() -> None:
    """Registers the defaults with Hydra: `schema` for a run, `schema/bilm/<kind>` for each kind of source."""
    store, run = ConfigStore.instance(), OmegaConf.create(defaults(RunConfig))
    for open_block in (
        run.trainer,
        run.vectors.sets,
    ):  # open: Lightning's other words are answered
        open_block._set_flag("struct", False)
    store.store("schema", node=run)
    for kind, source in SOURCES.items():
        store.store(kind, node=defaults(source), group="schema/bilm", package="bilm")


def typed(cfg: DictConfig) -> RunConfig:
    """The resolved configuration with every value checked.

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
    finite(plain)
    plain = code.importable(plain)
    for block, former in FORMER:
        if isinstance(plain.get(block), dict):
            plain[block].pop(former, None)
    return valid(RunConfig, plain)


def _with_vectors(words: Plain | None, vectors: VectorsConfig) -> Plain | None:
    """A task's `words` block with the keys that the choice of vectors decides."""
    if words is None:
        return None
    if vectors.source == "random":
        return {**words, "trainable": True}
    return {**words, "size": sum(each.size for each in vectors.chosen)} if vectors.chosen else words


def source_schema(block: Any) -> type[LayersConfig]:
    """The class for a `bilm` block: the one that has most of its keys."""
    return min(SOURCES.values(), key=lambda cls: len({*(block if isinstance(block, dict) else ())} - {*fields(cls)}))
