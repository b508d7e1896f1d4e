"""A trained model, opened again for new rows; nothing here imports Lightning, which takes seconds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property, reduce
from itertools import islice
from tempfile import TemporaryDirectory
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from elmo_bench.system.errors import UserError
from elmo_bench.trained.heads import REMEDY

if TYPE_CHECKING:
    from torch import nn

    from elmo_bench.configuration.schema import RunConfig, TrainerConfig
    from elmo_bench.embedding.representation import Model
    from elmo_bench.running.module import BenchModule
    from elmo_bench.task import Batch, Prediction

MOVED = (
    "if it has moved: load(..., bilm=FOLDER) in Python, and bilm.options=FILE bilm.weights=FILE (or bilm.path=FOLDER) "
    "after the command"
)
ALONE = RLock()  # held while seeds, types and settings of the process belong to a run or a prediction
ANSWER = "prediction"  # the key of the answer in a line of the output; all other keys are the input's


class Answer(NamedTuple):
    """The model's answer for one row."""

    prediction: Prediction  # in the form of the metric and the official scorer
    described: Any  # in readable form: an object, if the head describes its answers


class Trained:
    """The result of `elmo_bench.load`: a trained model with `predict`, and `model`, a plain `nn.Module`.

    Args:
        saved: the result of `heads.load` or `heads.read`.
        options: keys of the configuration that differ from the run's, such as trainer.accelerator or batch_size; None:
            as in the run.

    Attributes:
        cfg: the model's typed configuration.
        reader: the task's reader, with its vocabularies.
    """

    def __init__(self, saved: Mapping[str, Any], options: Mapping[str, Any]):
        from hydra.utils import instantiate

        from elmo_bench.text.vocabulary import Vocabulary

        self.saved = saved
        with usable():
            self.cfg = configuration(saved["hyper_parameters"]["config"], options)
            self.reader = instantiate(self.cfg.task.reader)
        self.reader.vocabularies = {name: Vocabulary.restore(state) for name, state in saved["vocabularies"].items()}

    @property
    def task(self) -> str:
        """The name of its task."""
        return self.cfg.task.name

    @cached_property
    def model(self) -> Model:
        """Representation and head, with the trained weights, on the device of its configuration; in eval mode."""
        return self._model(self._source)

    def module(self) -> BenchModule:
        """A new `LightningModule` of the model with the run's optimizer; the biLM computes the layers of each batch."""
        from torch.random import fork_rng

        from elmo_bench.running.build import build

        config = self.saved["hyper_parameters"]["config"]
        with usable(), fork_rng([]):
            module = build(configuration(config, {}, trains=True), self.reader, self._source, config=config)
            module.load_state_dict(self.saved["state_dict"])
        return module

    def predict(self, rows: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The answers for texts or JSON objects, one for each, in their order; the same as the command writes.

        Args:
            rows: like the lines of `predict`'s input (`elmo-bench predict --help`), such as {"text": "Ida sang"} or
                {"tokens": ["Ida", "sang"]}; a string means {"text": string}, and a single row a list of one. Texts of
                similar length are batched together.
        """
        read = []
        for number, raw in enumerate([rows] if isinstance(rows, str | Mapping) else rows):
            raw = {"text": raw} if isinstance(raw, str) else raw
            try:
                check_answer_key(raw)
                read.append((raw, row_of(self.reader, raw, self.task)))
            except UserError as error:
                raise UserError(f"rows[{number}]: {error}") from None
        return self.lines(read)

    def lines(self, inputs: Sequence[tuple[Mapping[str, Any], Any]]) -> list[dict[str, Any]]:
        """The output for each input object and its row: the input, and the answer in readable form."""
        answers = self.answers([row for _, row in inputs])
        return [
            answered(raw, row, self.reader.fields, answer.described)
            for (raw, row), answer in zip(inputs, answers, strict=True)
        ]

    def answers(self, rows: Sequence[Any]) -> list[Answer]:
        """The answers for the reader's rows, in their order; for a row with several windows, the most confident."""
        from elmo_bench.task import Windows

        reader: Any = self.reader
        if not isinstance(reader, Windows):
            return self._one_by_one(rows)
        groups = [reader.windows(row) for row in rows]
        parts = iter(self._one_by_one([part for group in groups for part in group]))
        return [max(islice(parts, len(group)), key=lambda each: reader.confidence(each.prediction)) for group in groups]

    def _one_by_one(self, rows: Sequence[Any]) -> list[Answer]:
        from elmo_bench.layers.bilm import carries, read_text
        from elmo_bench.text.tokens import sentences

        if not rows:
            return []
        if not carries(self._source):
            return self._answers(self.model, rows)
        with TemporaryDirectory() as folder:  # for the layers, which depend on the whole text
            text = list(sentences([rows], self.reader.fields))
            return self._answers(self._model(read_text(self._source, text, folder)), rows)

    @cached_property
    def _source(self) -> Any:
        """The source of layers; None for a baseline."""
        from elmo_bench.running.build import device_of, layers_source

        device_of(self.cfg.trainer.accelerator)  # checked for a baseline, too, which opens no layers
        with usable():
            if self.cfg.baseline:
                return None
            try:
                return layers_source(self.cfg.bilm, self.cfg, self.saved["bilm_sha256"])
            except UserError as error:
                if error.path is None or error.path.exists():
                    raise
                raise UserError(f"{error.message}; {MOVED}", error.path) from error

    def _model(self, source: Any) -> Model:
        from torch.random import fork_rng

        from elmo_bench.embedding.representation import Model
        from elmo_bench.running.build import parts

        weights = self.saved["state_dict"]
        with usable(), default_dtype("32-true"), fork_rng([]):  # the first weights are drawn, and replaced
            model = Model(*parts(self.cfg, self.reader, source))
            for name, own in model.state_dict().items():
                if name in weights and weights[name].is_floating_point() != own.is_floating_point():
                    raise TypeError(f"{name} has {weights[name].dtype}, but the model has {own.dtype}")
            model.load_state_dict(weights)
            model = model.double() if self.cfg.trainer.precision == "64-true" else model
            return model.requires_grad_(False).eval().to(_device(self.cfg.trainer.accelerator))

    def _answers(self, model: Model, rows: Sequence[Any]) -> list[Answer]:
        import torch

        from elmo_bench.system.console import tracked
        from elmo_bench.system.errors import explained
        from elmo_bench.text.batching import BucketSampler
        from elmo_bench.text.tokens import lengths

        bounds, trainer = self.cfg.task.batch, self.cfg.trainer
        sampler = BucketSampler(
            lengths(rows, self.reader.fields), bounds.batch_size, token_budget=bounds.token_budget, shuffle=False
        )
        batches, found = sampler.batches(0), {}
        first = next(model.parameters())
        device = first.device
        if first.dtype not in (torch.float32, torch.float64):
            raise UserError(f"the weights of the model are {first.dtype}, but it needs float32; call .model.float()")
        bar = tracked(batches, "predicting", len(batches) > 1 and trainer.progress)
        with evaluating(model), torch.inference_mode(), _rounding(trainer, device.type):
            for batch in bar:
                collated = self.reader.collate([rows[index] for index in batch])
                with explained(lambda collated=collated: f"predicting {collated.size}", "lower batch_size"):
                    found |= zip(batch, answer(model, collated.each(lambda part: part.to(device))), strict=True)
        return [found[index] for index in range(len(rows))]


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Inside, dropout is off, whatever the caller has set; afterwards each module has its mode again."""
    modes = {part: part.training for part in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def answer(model: Model, batch: Batch) -> list[Answer]:
    """An answer for each row of a batch, which is on the model's device."""
    from elmo_bench.task import Describes

    scores, head = model(batch), model.head
    predictions = head.decode(scores, batch)  # type: ignore[operator]
    described = head.describe(predictions, scores, batch) if isinstance(head, Describes) else predictions
    return list(map(Answer, predictions, described))


def row_of(reader: Any, raw: Mapping[str, Any], task: str) -> Any:
    """The reader's row for one JSON object, whose keys `task.data.columns` may rename."""
    if not isinstance(raw, Mapping):
        raise UserError(f"not a JSON object; {_expected(reader)}")
    columns = getattr(reader, "columns", {}).items()
    try:
        return reader.from_text(**{**raw, **{ours: raw[theirs] for ours, theirs in columns if theirs in raw}})
    except TypeError:
        raise UserError(f"the reader of {task} does not take these keys: {', '.join(raw)}") from None


def _expected(reader: Any) -> str:
    """The reader's message for a row without keys: the keys it expects."""
    try:
        reader.from_text()
    except (UserError, TypeError) as error:
        return str(error)
    return "expected {KEY: VALUE}"


def check_answer_key(raw: Mapping[str, Any]) -> None:
    """Raises `UserError` if an object has the answer's key, since the answer will be added to the object."""
    if isinstance(raw, Mapping) and ANSWER in raw:
        raise UserError(f'"{ANSWER}" is the key of the answer in the output; give it another name')


def answered(raw: Mapping[str, Any], row: Mapping[str, Any], fields: Sequence[str], described: Any) -> dict[str, Any]:
    """An input object, unchanged, with the answer under its own key, and the words if it was tokenized here."""
    words = {field: row[field] for field in fields if field not in raw}
    return {**raw, ANSWER: {**words, **described} if isinstance(described, Mapping) else described}


@contextmanager
def usable() -> Iterator[None]:
    """Turns any error inside into a `UserError`: a file's content can be wrong in countless ways."""
    try:
        with ALONE:
            yield
    except UserError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UserError(f"no model can be built from the checkpoint's content ({reason}); {REMEDY}") from error


def configuration(plain: dict[str, Any], options: Mapping[str, Any], trains: bool = False) -> RunConfig:
    """The typed configuration of a trained model, by default without training blocks; `options` as for `Trained`."""
    from elmo_bench.configuration import schema
    from elmo_bench.running.blocks import check_blocks

    for key, value in options.items():
        *blocks, name = ("task.batch.batch_size" if key == "batch_size" else key).split(".")
        if value is not None:
            reduce(lambda node, block: node[block], blocks, plain)[name] = value
    cfg = schema.from_plain(plain)
    if not trains:
        cfg.task.optimizer = cfg.task.schedule.scheduler = cfg.task.average = None
    cfg.bilm.cache = False
    if cfg.task.words is not None and "path" in cfg.task.words:
        cfg.task.words["path"] = None  # the vectors are in the checkpoint
    check_blocks(cfg.task)
    return cfg


def _device(accelerator: str) -> str:
    """The model's device: as `device_of`, or the GPU of a Mac."""
    import torch

    from elmo_bench.running.build import device_of

    device = device_of(accelerator)
    mps = accelerator in ("gpu", "mps", "auto") and torch.backends.mps.is_available()
    return "mps" if device == "cpu" and mps else device


@contextmanager
def _rounding(trainer: TrainerConfig, device: str) -> Iterator[None]:
    """Inside, numbers are rounded as in the run: as Lightning does for the same precision, and with or without TF32."""
    import torch

    from elmo_bench.nn.numerics import tf32

    precision, kinds = trainer.precision, {"bf16-mixed": torch.bfloat16, "16-mixed": torch.float16}
    mixed = torch.autocast(device, kinds[precision]) if precision in kinds else nullcontext()
    with ALONE, tf32(trainer.tf32), default_dtype(precision), mixed:
        yield


@contextmanager
def default_dtype(precision: str) -> Iterator[None]:
    """Inside, torch's default type is the one Lightning sets for this `trainer.precision`, not the caller's."""
    import torch

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64 if precision == "64-true" else torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)
