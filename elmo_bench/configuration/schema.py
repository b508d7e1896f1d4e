"""The typed configuration of a run: every key with its type, default, allowed values and meaning.

The files under `conf/` fill in the blocks. A subsystem receives only its own block. The blocks of a task that name code
by `_target_` (reader, words, chars, head, metric, optimizer, scheduler, average) are open: their keys are the arguments
of that code.

No result depends on a key that is `Aside`; any other value that is not the default is part of a run's identity
(`records/settings.py`).
"""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    create_model,
    model_validator,
)

from elmo_bench.configuration.keys import (
    Aside,
    Counted,
    Flag,
    Hidden,
    Keys,
    Share,
    Text,
    fields,
    finite,
    valid,
)
from elmo_bench.system import code
from elmo_bench.system.errors import UserError, as_typed

Plain = dict[str, Any]
FORMER = (("task", "arms"), ("scale", "pair"))  # unused keys in checkpoints of earlier releases


def _batches(value: Any) -> Any:
    """A number of batches, a share of all, or none. Raises `ValueError` for another value."""
    share = isinstance(value, float) and 0 < value < 1
    if not (value is None or isinstance(value, bool) or share or (isinstance(value, int) and value > 0)):
        raise ValueError("a whole number from 1 is needed")
    return value


class ElmoConfig(Keys):
    """Where and how ELMo enters (paper, sections 3.2 and 3.3)."""

    where: Literal["none", "input", "output", "both"] = "input"
    """where ELMo enters the model"""
    layers: Any = "all"
    """all, last, the number of one layer, or fixed weights in brackets, one per layer: [0.2,0.3,0.5]"""
    gamma: Flag = True
    """learn the scale γ of equation (1); false: keep it at 1"""
    penalty: NonNegativeFloat = Field(default=0.0, alias="lambda")
    """penalty λ Σ w² on the layer weights before the softmax"""
    layer_norm: Literal[False, "paper", "token"] = False
    """normalise the layers; paper: one mean and variance per batch and layer; token: per vector"""
    dropout: Share = 0.5
    """dropout on the mixed vector"""
    projection: PositiveInt | None = None
    """size of a linear projection of the mixed vector; null: none"""
    words: Literal["beside", "instead"] = "beside"
    """keep the task's word vectors beside ELMo, or drop them"""
    finetune: Literal["none", "joint"] = "none"
    """none: the biLM is frozen; joint: it is trained with the model"""


class LayersConfig(Keys):
    """A source of layers (`bilm=`): the keys that all sources share. A file adds the arguments of its own source."""

    target: Text = Field(alias="_target_")
    """Python class of the source"""
    name: Aside[Text]
    """its name in records and reports"""
    tuned: Aside[Flag] = False
    """true for a biLM that was tuned on the task's training text"""
    cache: Flag = True
    """compute the layers of a frozen source once, and store them below cache_root"""
    download: Aside[Text | None] = None
    """where to get the files; shown in messages"""
    licence: Aside[Text | None] = None
    """licence of the files; shown in messages"""
    maker: Aside[Text | None] = None
    """Python class that makes the files if they are missing"""
    seen: Aside[list[Text]] = []
    """tasks whose data it was trained on; the report marks its scores on them as contaminated"""


class BilmConfig(LayersConfig):
    """A biLM in the official layout."""

    options: Text | None = None
    """the biLM's options.json"""
    weights: Text | None = None
    """the biLM's weights, .hdf5 or .safetensors"""
    state: Literal["zero", "warm", "carry"] = "warm"
    """LSTM state at the start of a sentence"""
    seed: NonNegativeInt = 1
    """seed of a biLM that the run trains itself (bilm=mini)"""
    like: Text | None = None
    """for an untrained biLM: the source of its sizes, an options file or a recipe under conf/pretrain"""


class NewSoftmaxConfig(Keys):
    """The softmax that a biLM without one gets before it is tuned, while the biLM itself is frozen."""

    vocabulary: Annotated[int, Field(ge=4)]
    """maximum number of words, including the three markers"""
    epochs: PositiveInt
    """passes over the text"""
    lr: PositiveFloat
    """peak learning rate"""


class TuningConfig(Keys):
    """How a biLM is tuned (paper, section 3.4); keys as in a recipe of conf/pretrain."""

    epochs: PositiveInt
    """passes over the text"""
    lr: NonNegativeFloat
    """peak learning rate; with 0 the biLM stays unchanged"""
    softmax_lr: PositiveFloat
    """factor on the learning rate of the softmax"""
    warmup: PositiveInt
    """updates until the learning rate reaches its peak"""
    rows: PositiveInt
    """streams of text, read in parallel"""
    steps: PositiveInt
    """unrolled time steps per update"""
    negatives: Annotated[int, Field(ge=2)]
    """sample size of the sampled softmax"""
    clip: PositiveFloat
    """maximum gradient norm of all parameters except the softmax"""
    dropout: Share = 0.0
    """dropout on the input of every LSTM layer and on the output of the last"""
    bfloat16: Flag = False
    """compute matrix products in bfloat16"""
    seed: NonNegativeInt = 1
    """seed of the order of sentences and of the samples"""
    softmax: NewSoftmaxConfig
    compile: Aside[Flag] = False
    """compile the pointwise operations"""
    device: Aside[Literal["auto", "cpu", "cuda"]] = "auto"
    """device for tuning"""
    every: Aside[NonNegativeFloat] = 300.0
    """seconds between checkpoints"""
    source: Aside[BilmConfig]  # of bilm.parent
    task: Aside[Text]
    """task whose text is used"""
    reader: Aside[Any]
    """reader of the task's data"""
    text: Aside[Any] = {}
    """reader keys with other values when it reads plain text"""
    folder: Aside[Text]
    """folder of the tuned biLM"""


class TunedConfig(BilmConfig):
    """A biLM tuned on a task's training text; its identity is the recipe of its maker."""

    parent: Counted[Text]
    """the biLM to tune, a file in conf/bilm/"""
    tuning: Counted[TuningConfig]


class TransformersConfig(LayersConfig):
    """A local Hugging Face model."""

    path: Text | None = None
    """folder of the model and its tokenizer, as save_pretrained writes it"""
    pooling: Literal["first", "mean"] = "first"
    """vector of a word: that of its first word piece, or the mean over its pieces"""


class VectorSetConfig(Keys):
    """A table of pre-trained word vectors, an entry of `vectors.sets`."""

    name: Aside[Text]
    """its name in records and messages"""
    size: PositiveInt
    """dimension of the vectors"""
    cased: Flag = True
    """whether the table has capital letters; false: words are looked up in lower case"""
    lookup: Literal["exact", "lower"] | None = None
    """exact: words unchanged; lower: if not found, in lower case; null: as in task.words"""
    missing: Literal["random", "zero"] | None = None
    """vectors for words that the table lacks; null: as in task.words"""
    unit: Flag | None = None
    """scale every vector to unit length; null: as in task.words"""
    files: Aside[list[Text]] = []
    """its possible files below vectors_root; the first that exists is read"""
    words: Aside[Text | None] = None
    """the file of its words, one per line, if `files` have only numbers"""
    package: Aside[Text | None] = None
    """installed package that also contains it"""
    package_files: Aside[list[Text]] = []
    """in this package: the matrix (.npy) and its words (.parquet)"""
    licence: Aside[Text | None] = None
    """its licence; shown in messages"""
    download: Aside[Text | None] = None
    """where to get it; shown in messages"""


class VectorsConfig(Keys):
    """Static word vectors (`vectors=`)."""

    source: Literal["page", "random", "sets", "text"] = "page"
    """page: as in task.words; random: trained from random values; sets: pre-trained vectors; text: skip-gram
    vectors trained on the biLM's text"""
    sets: Counted[dict[str, VectorSetConfig]] = {}  # side by side; counted with their files (`settings`)
    maker: Aside[Text | None] = None
    """class that trains the vectors"""
    text: Text | None = None
    """recipe in conf/pretrain/ with the text"""
    root: Aside[Text | None] = None
    """folder of that text"""
    size: PositiveInt | None = None
    """dimension of the vectors"""
    lower: Flag = False
    """lower-case the text"""
    window: PositiveInt = 5
    """context words on each side"""
    negative: PositiveInt = 5
    """negative samples"""
    sample: NonNegativeFloat = 1.0e-3
    """words with a larger share of the text are subsampled"""
    alpha: PositiveFloat = 0.025
    """initial learning rate"""
    min_count: PositiveInt = 3
    """rarer words get no vector"""
    epochs: PositiveInt = 5
    """passes over the text"""
    seed: NonNegativeInt = 1
    """seed of the training"""

    @property
    def chosen(self) -> list[VectorSetConfig]:
        """The sets, in the order of concatenation."""
        return [self.sets[name] for name in sorted(self.sets)] if self.source == "sets" else []

    @property
    def label(self) -> str:
        """The names of the sets, or the name of the source."""
        return "+".join(each.name for each in self.chosen) or self.source

    def name_with(self, words: Mapping[str, Any] | None) -> str:
        """The name of the vectors of a task's `words` block: the label, or the name of its own file."""
        if self.source != "page":
            return self.label
        path = (words or {}).get("path")
        return "random" if path is None else Path(path).name


class ScaleConfig(Keys):
    """The data and biLM of a run (`scale=`); scores of different scales are not comparable."""

    name: Text
    """name of the scale: mini, open or paper"""
    note: Aside[Text] = ""
    """meaning of its scores"""
    options: Aside[Text | None] = None
    """sizes of its own biLM, for bilm=untrained"""
    bilm: Aside[Text | None] = None
    """its own biLM, a file in conf/bilm/; default parent of bilm=tuned"""
    tuned: Aside[Text | None] = None
    """folder of the biLMs that were tuned on the text of its tasks"""
    folder: Aside[Text | None] = None
    """folder of its generated data"""
    maker: Aside[Text | None] = None
    """class that makes the data"""
    only: Aside[Text | None] = None
    """task whose data are generated, beside the text; null: all tasks"""
    version: NonNegativeInt | None = None
    """version of the data generator"""
    seed: NonNegativeInt = 1
    """seed of the generator"""
    sizes: Any = None
    """changes to the generator's default sizes"""
    asks_for_vectors: Aside[Flag] = False
    """true: random word vectors are used only with vectors=random"""


class FitConfig(Keys):
    """How long a task is trained."""

    epochs: PositiveInt
    """maximum number of epochs"""
    patience: NonNegativeInt | None = None
    """epochs without a better dev score before training stops; null: never"""
    least_updates: NonNegativeInt = 1000
    """with a fraction of the training data, an epoch repeats it until all epochs together have at least this many
    updates (but at most one pass more than the complete data needs)"""


class BatchConfig(Keys):
    """The size of batches."""

    batch_size: PositiveInt
    """examples in a batch"""
    token_budget: PositiveInt | None = None
    """maximum number of tokens in a batch, padding included; null: no limit"""


class ClipConfig(Keys):
    """Clipping of gradients."""

    value: PositiveFloat | None = None
    """maximum norm or value of the gradients; null: no clipping"""
    by: Literal["norm", "value"] = "norm"
    """clip the norm of all gradients, or each value"""


class ScheduleConfig(Keys):
    """Learning-rate schedule."""

    scheduler: Any = None
    """a partial class of torch.optim.lr_scheduler; null: a constant learning rate"""
    interval: Literal["epoch", "step"] = "epoch"
    """when the schedule steps"""


class TaskConfig(Keys):
    """A task: its common file conf/task/<task>.yaml, and the file of the scale, conf/task/<task>/<scale>.yaml."""

    name: Text
    """its folder in tasks/"""
    title: Aside[Text | None] = None
    """its name in tables; null: the name of its folder"""
    version: PositiveInt = 1
    """version of its computation, raised when a change to reader, head or metric changes results"""
    scales: Aside[list[Text]] = []
    """supported scales"""
    monitor: Text
    """dev metric that selects the epoch"""
    paper: Aside[Any] = None
    """the paper's figures"""
    perplexity: Aside[Any] = None
    """the paper's perplexities of dev before and after tuning (Table 7)"""
    data: Counted[dict[str, Any] | None] = None
    """files, or data set of the Hugging Face hub, of each split"""  # part of the reader block
    download: Aside[Text | None] = None
    """where to get the data, and their licence; shown in messages"""
    elmo: Aside[Any] = "${elmo}"  # a copy of the elmo block, for readers of records
    reader: dict[str, Any]
    """class that reads the data and makes batches"""
    text: Aside[Any] = {}
    """reader keys with other values when it reads plain text"""
    words: Any = None
    """the task's own word vectors"""
    chars: Any = None
    """the task's own character encoder"""
    head: Any
    """the model"""
    metric: Any
    """the official metric"""
    score: Aside[Text]
    """function that scores two files"""
    optimizer: Any
    """a partial optimizer class"""
    schedule: ScheduleConfig = ScheduleConfig()
    clip: ClipConfig = ClipConfig()
    average: Any = None
    """a callback of Lightning that averages the weights"""
    batch: BatchConfig
    fit: FitConfig


LIGHTNING = (  # arguments passed on to its Trainer; null is its default
    "accumulate_grad_batches", "min_epochs", "sync_batchnorm", "log_every_n_steps", "profiler", "detect_anomaly",
    "benchmark", "inference_mode", "enable_autolog_hparams",
)  # fmt: skip


# Arguments of Lightning's Trainer below `trainer.` that are answered with the key that sets them. They are listed here,
# so that a recorded run or a wrong key loads no Lightning; a test compares them with its signature.
PRECISIONS = {"32": "32-true", "64": "64-true", "16": "16-mixed", "bf16": "bf16-mixed"}  # as older releases write them
WHOLE = "dev and test are scored whole, and dev after every epoch; debug=fast or debug=limit tries a run out"
ENDS = "task.fit.epochs and task.fit.patience say when training ends"
OURS = "this is fixed, so that a resumed run equals an uninterrupted one"
ANSWERS = {
    "max_epochs": "task.fit.epochs sets it",
    "gradient_clip_val": "task.clip.value sets it",
    "gradient_clip_algorithm": "task.clip.by sets it (norm or value)",
    "limit_train_batches": "trainer.limit_batches sets it",
    "callbacks": "callbacks=NAME adds some (conf/callbacks/), and +callbacks.NAME._target_=CLASS any other",
    "logger": "logger=NAME chooses it (conf/logger/)",
    "enable_progress_bar": "trainer.progress sets it (auto, true or false)",
    "gpu": "trainer.devices=[N] names a GPU by its number",
    "default_root_dir": "results_root sets it",
    "strategy": "trainer.devices=N trains with DDP, one process per device; there is no other strategy",
    "num_nodes": "a run has one machine; sweep on=slurm spreads the runs of a sweep over many",
    **dict.fromkeys(("max_steps", "min_steps", "max_time"), ENDS),
    **dict.fromkeys(("limit_val_batches", "limit_test_batches", "limit_predict_batches"), WHOLE),
    **dict.fromkeys(("val_check_interval", "check_val_every_n_epoch", "num_sanity_val_steps"), WHOLE),
    **dict.fromkeys(("enable_checkpointing", "enable_model_summary", "use_distributed_sampler", "barebones"), OURS),
    **dict.fromkeys(("reload_dataloaders_every_n_epochs", "plugins", "model_registry"), OURS),
}


class TrainerConfig(Keys):
    """Hardware and its use; devices, precision and limit_batches change results, and so do some of Lightning's
    own arguments, the last of these keys."""

    accelerator: Aside[Literal["auto", "cpu", "gpu", "cuda", "mps"]] = "auto"
    """the kind of device"""
    devices: Annotated[int, Field(ge=1, le=64)] = 1
    """number of devices; each computes a batch of every update, which changes results; [1]: the GPU with this number"""
    threads: Aside[Annotated[int, Field(ge=1, le=1024)] | None] = None
    """CPU threads of torch; null: one per core"""
    progress: Aside[Literal["auto", True, False]] = "auto"
    """show a progress bar; auto: on a terminal"""
    precision: Literal["32-true", "bf16-mixed", "16-mixed", "64-true"] = "32-true"
    """precision of matrix products; 16-mixed needs a GPU"""
    tf32: Flag = False
    """compute in TF32 on a GPU: faster, with 10 bits of fraction instead of 23"""
    deterministic: Aside[Flag] = False
    """on a GPU, use deterministic algorithms: slower, but a resumed run equals an uninterrupted one"""
    limit_batches: Annotated[Any, AfterValidator(_batches)] = None
    """train on only this many batches of each epoch; the report leaves such runs out"""
    fast_dev_run: Aside[Annotated[Any, AfterValidator(_batches)]] = False
    """a smoke run: train and score one batch (or this many) of each split, and record nothing"""  # fmt: skip
    gpu: Hidden[int | None] = None  # devices=[gpu]
    overfit_batches: Aside[NonNegativeInt] = 0
    """train on this many batches, which are also dev and test, and record nothing"""
    accumulate_grad_batches: PositiveInt = 1
    """batches per update"""
    min_epochs: NonNegativeInt | None = None
    """minimum number of epochs"""
    sync_batchnorm: bool = False
    """synchronise batch normalisation over all devices"""
    log_every_n_steps: Aside[NonNegativeInt | None] = None
    """updates between two entries of a logger"""
    profiler: Aside[Literal["simple", "advanced", "pytorch"] | None] = None
    """Lightning's profiler, which shows where time goes"""
    detect_anomaly: Aside[bool] = False
    """find the operation that causes a gradient that is not finite"""
    benchmark: Aside[bool | None] = None
    """let cuDNN benchmark its algorithms"""
    inference_mode: Aside[bool] = True
    """score in torch's inference mode"""
    enable_autolog_hparams: Aside[bool] = True
    """let loggers store the configuration"""

    @model_validator(mode="before")
    @classmethod
    def _lightning_words(cls, block: Any) -> Any:
        """Translates values of older releases of Lightning; null is Lightning's default for keys passed on."""
        if not isinstance(block, dict):
            return block
        for name in block:
            if name in ANSWERS and not (name == "strategy" and block[name] in ("auto", "ddp")):
                raise UserError(f"trainer.{name}: {ANSWERS[name]}")
        default = {key for key in LIGHTNING if block.get(key) is None} | {"strategy"}
        kept = {key: value for key, value in block.items() if key not in default}
        if (precision := str(kept.get("precision"))) in PRECISIONS:
            kept["precision"] = PRECISIONS[precision]
        match kept.get("devices"):
            case [int(gpu)] if gpu > 0 and gpu is not True:  # Lightning's way to name one GPU
                return kept | {"devices": 1, "gpu": gpu}
            case [_, *_] as named if named == list(range(len(named))):
                return kept | {"devices": len(named)}
            case list(named):
                wanted = "the number of one GPU, as in [1], or how many devices"
                several = "; for several GPUs by number: CUDA_VISIBLE_DEVICES=1,3 and trainer.devices=2"
                raise UserError(f"trainer.devices={as_typed(named)}: {wanted} is needed{several}")
        return kept


class WandbConfig(Keys):
    """Weights & Biases; offline without an API key."""

    project: Text = "elmo_bench"
    """project of W&B"""
    entity: Text | None = None
    """user or team of W&B; null: the user of the key"""
    name: Text | None = None
    """name of the run; null: task, scale, arm and seed"""
    notes: Text | None = None
    """notes about the run"""
    tags: list[Text] = []
    """additional tags"""
    group: Text | None = None
    """group of the run; null: SWEEP/SCALE/TASK"""
    job_type: Text | None = None
    """job type of the run; null: the arm"""


class LoggerConfig(Keys):
    """Loggers beside the CSV files."""

    hint: ClassVar[str] = "; another logger is +logger.more.NAME._target_=CLASS"
    wandb: WandbConfig | None = None
    """Weights & Biases"""
    more: dict[str, Any] = {}
    """other loggers of Lightning, each a block with its _target_ under a name of your choice"""


class RunConfig(Keys):
    """One run of one task."""

    seed: NonNegativeInt = 1
    """random seed: initial weights, order of batches, dropout"""
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0
    """share of the training data; the subset depends on the seed"""
    force: Aside[Flag] = False
    """train again even if there is a record"""
    debug: Aside[Flag] = False
    """true: show the traceback of an error; fast, overfit, limit, profile: a trial run by a file in conf/debug/, which
    records nothing"""
    compile: Aside[Flag] = False
    """compile the head with torch.compile"""
    callbacks: Counted[dict[str, Any]] = {}
    """callbacks of Lightning, each a block with its _target_ under a name of your choice"""
    data_root: Aside[Text | None] = None
    """folder of the data; also the environment variable DATA_ROOT"""
    models_root: Aside[Text]
    """folder of biLMs"""
    vectors_root: Aside[Text | None] = None
    """folder of pre-trained word vectors; also the variable VECTORS_ROOT; by default models/vectors/"""
    cache_root: Aside[Text]
    """folder of generated data, cached layers and word vectors; also ELMO_BENCH_CACHE; by default .cache/"""
    results_root: Aside[Text]
    """folder of records, checkpoints and the report; by default results/own/. results_root=results is for the
    project's own evidence: it adds runs to the reference runs and rewrites tracked tables"""
    arm: Aside[Text] = "elmo"
    """elmo, or baseline: without ELMo, the same as elmo.where=none"""
    elmo: ElmoConfig
    task: TaskConfig
    bilm: Annotated[Any, BeforeValidator(lambda block: valid(source_schema(block), block, "bilm"))]  # a LayersConfig
    vectors: VectorsConfig = VectorsConfig()
    scale: ScaleConfig
    trainer: TrainerConfig = Field(default_factory=TrainerConfig)
    logger: LoggerConfig = LoggerConfig()
    launcher: Aside[Any] = None
    sweeper: Aside[Any] = None
    typed: Hidden[list[str]] = []  # its overrides, except the seed
    variant: Hidden[dict[str, Any]] = {}  # their changes to its task's files (`composing`)
    table: Aside[Any] = None  # of a file in conf/sweep (`tables.SweepTable`)

    @model_validator(mode="after")
    def _settle(self) -> Self:
        self.arm = "baseline" if self.baseline else "elmo"  # earlier releases had more arms
        if self.task.words is not None and self.vectors.source == "random":
            self.task.words = {**self.task.words, "trainable": True}
        elif self.task.words is not None and self.vectors.chosen:
            self.task.words = {**self.task.words, "size": sum(each.size for each in self.vectors.chosen)}
        return self

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

    @property
    def changing_callbacks(self) -> Plain:
        """The callbacks that may change the training: all but those that only watch."""
        return {
            name: block
            for name, block in self.callbacks.items()
            if block and not (isinstance(block, dict) and str(block.get("_target_")).rpartition(".")[2] in WATCHING)
        }


# Callbacks of Lightning that change no result.
WATCHING = (
    "LearningRateMonitor", "DeviceStatsMonitor", "ModelSummary", "RichModelSummary", "ThroughputMonitor",
    "TQDMProgressBar", "RichProgressBar", "ModelCheckpoint", "OnExceptionCheckpoint",
)  # fmt: skip
COMMON = tuple(fields(LayersConfig))  # keys of every source
SOURCES: dict[str, type[LayersConfig]] = {
    "bilm": BilmConfig,
    "tuned": TunedConfig,
    "transformers": TransformersConfig,
}


def from_plain(plain: Plain) -> RunConfig:
    """The configuration of a run with every value checked, from plain containers, as stored in checkpoints."""
    finite(plain)
    plain = code.importable(plain)
    for block, former in FORMER:
        if isinstance(plain.get(block), dict):
            plain[block].pop(former, None)
    return valid(RunConfig, plain)


def source_schema(block: Any) -> type[LayersConfig]:
    """The class for a `bilm` block: the one with most of its keys.

    For a user's own class, whose file names none of these kinds in its `defaults`, the keys are its arguments. Raises
    `UserError` if there is no such class.
    """
    given = block if isinstance(block, dict) else {}
    kinds = {kind: {*fields(kind)} for kind in SOURCES.values()}
    target = code.located(str(given.get("_target_")))
    if not given or target.startswith("elmo_bench.") or any(names <= given.keys() for names in kinds.values()):
        return min(kinds, key=lambda kind: len({*given} - kinds[kind]))
    try:
        taken = inspect.signature(pkgutil.resolve_name(target)).parameters.values()
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise UserError(f"bilm._target_={target}: there is no such class ({error})") from error
    own: dict[str, Any] = {
        each.name: (Any, None if each.default is each.empty else each.default)
        for each in taken
        if each.kind != each.VAR_KEYWORD and each.name not in COMMON
    }
    return create_model("OwnLayersConfig", __base__=LayersConfig, **own)
