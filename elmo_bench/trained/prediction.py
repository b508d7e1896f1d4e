"""A trained model applied to the rows of a file: their predictions, as a file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text, outputs
from elmo_bench.system.storage.files import open_text, replacing
from elmo_bench.trained.checkpoint import AGAIN, load

if TYPE_CHECKING:
    from elmo_bench.configuration.schema import RunConfig
    from elmo_bench.trained.answers import Answer

LAYERS = ("options", "weights", "path")  # the files of a source of layers
PLACE = "prediction"  # the key of the answer in a line of the output; all else there is the input's
_OBJECT = re.compile(r"\s*\{\s*[\"}]")  # how a line of JSON begins, and no line of a data set's files of other formats


def predict(
    checkpoint: str | None,
    input: str,
    output: str,
    format: str = "json",
    task: str | None = None,
    models_root: str | None = None,
    **options: Any,
) -> int:
    """Writes the predictions atomically; returns their number.

    Args:
        checkpoint, input, output: paths.
        format: "json", or "official": a file that `score` and the official scorer read.
        task: instead of a checkpoint: the one whose trained head is used; beside it: the one that it must be of, whose
            pages may then name code outside this project.
        models_root: the folder of heads and their biLMs; None: the configuration's.
        options: other keys of the configuration; None: as in the run.

    Raises:
        UserError: files that cannot be read, a line that is not a JSON object, that the reader rejects or that has the
            key "prediction" already, a prediction that is not finite.
    """
    from hydra.utils import instantiate

    from elmo_bench.task import ReadsFiles, WritesOfficial
    from elmo_bench.trained import heads

    if not Path(output).absolute().parent.is_dir():
        raise UserError("no such folder for the output", Path(output).parent)
    saved = model(checkpoint, task, models_root)
    with usable():
        cfg = configuration(saved["hyper_parameters"]["config"], options)
        head = None if checkpoint else heads.folder_of(cfg.task.name, cfg.models_root, models_root is not None)
        outputs.apart(output, [checkpoint, input, head, *(getattr(cfg.bilm, key, None) for key in LAYERS)])
        reader: Any = instantiate(cfg.task.reader)
    official = format == "official" or _ending(output) == ".json"
    own = not _is_lines(input)
    for needed, able, path in (
        (official, issubclass(type(reader), WritesOfficial), output), (own, issubclass(type(reader), ReadsFiles), input)
    ):  # fmt: skip
        if needed and not able:
            raise UserError(f"task {cfg.task.name} has no file format of its own; give a .jsonl file", path)
    inputs = [({}, row) for row in reader.from_file(input)] if own else read_rows(reader, input, cfg.task.name)
    taken = None if official else next((number for number, (raw, _) in enumerate(inputs, 1) if PLACE in raw), None)
    if taken is not None:
        raise UserError(f'"{PLACE}" is the key of the answer in the output; give it another name', input, taken)
    rows = [row for _, row in inputs]
    with TemporaryDirectory() as folder:
        answers = run(cfg, saved, reader, rows, folder) if rows else []
    if official:
        text = reader.official([answer.prediction for answer in answers], rows)
    else:
        lines = (
            answered(raw, row, reader.fields, answer.described)
            for (raw, row), answer in zip(inputs, answers, strict=True)
        )
        text = "".join(json_text.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    write(Path(output), text)
    return len(answers)


def model(checkpoint: str | None, task: str | None, models_root: str | None) -> dict[str, Any]:
    """The checkpoint that is given, or else the trained head of a task. Raises `UserError` unless there is one."""
    from elmo_bench.trained import heads as shipped

    if checkpoint is not None and models_root is not None:
        raise UserError("checkpoint=... is a model by itself: leave out models_root")
    if checkpoint is not None:
        return load(checkpoint, task=task)
    if task is None:
        raise UserError("missing argument checkpoint=... (of a run), or task=... (the trained head of a task)")
    return shipped.read(task, models_root)


@contextmanager
def usable() -> Iterator[None]:
    """What a file stores can be wrong in more ways than anybody lists: whatever a model cannot be made of is refused.

    Raises:
        UserError: in place of any other error.
    """
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise UserError(f"no model can be made of what the checkpoint stores ({told}); {AGAIN}") from error


def configuration(plain: dict[str, Any], options: Mapping[str, Any]) -> RunConfig:
    """The typed configuration of a model that predicts and is not trained; `options` as `predict` takes them."""
    from elmo_bench.configuration import schema
    from elmo_bench.running.blocks import check_blocks

    for key, value in options.items():
        *blocks, name = ("task.batch.batch_size" if key == "batch_size" else key).split(".")
        if value is not None:
            reduce(lambda node, block: node[block], blocks, plain)[name] = value
    cfg = schema.from_plain(plain)
    cfg.task.optimizer = cfg.task.schedule.scheduler = cfg.task.average = None
    cfg.bilm.cache = False
    if cfg.task.words is not None and "path" in cfg.task.words:
        cfg.task.words["path"] = None  # the vectors are in the checkpoint
    check_blocks(cfg.task)
    return cfg


def answered(
    raw: Mapping[str, Any], row: Mapping[str, Any], fields: Sequence[str], described: Mapping[str, Any]
) -> dict[str, Any]:
    """An input object as it is, with the answer in a place of its own, and the words of what was tokenized here."""
    words = {field: row[field] for field in fields if field not in raw}
    return {**raw, PLACE: {**words, **described}}


def _ending(path: str) -> str:
    """The last ending of a file's name, whether the file is packed or not."""
    return Path(path.removesuffix(".gz").removesuffix(".xz")).suffix


def _is_lines(path: str) -> bool:
    """Whether a file has a JSON object a line, and is not one of the data set's own: by its name, or its first line."""
    if (ending := _ending(path)) in (".jsonl", ".json"):
        return ending == ".jsonl"
    with open_text(path) as lines:
        return _OBJECT.match(next(lines, '{"')) is not None


def read_rows(reader: Any, path: str, task: str) -> list[tuple[dict[str, Any], Any]]:
    """The JSON objects of a file and the rows that the reader makes from them.

    Raises:
        UserError: a line is not a JSON object, or the reader rejects it; the line is named.
    """
    rows = []
    for number, raw in read_lines(path):
        try:
            rows.append((raw, reader.from_text(**raw)))
        except UserError as error:
            raise UserError(str(error), path, number) from None
        except TypeError:
            raise UserError(f"the reader of {task} does not take these keys: {', '.join(raw)}", path, number) from None
    return rows


def run(cfg: Any, saved: dict[str, Any], reader: Any, rows: list[Any], folder: str) -> list[Answer]:
    """The model's answers, in the order of the rows; stores their layers in `folder` if the biLM carries its state."""
    import pytorch_lightning as pl
    from torch.utils.data import DataLoader

    from elmo_bench.devices.ranks import Environment
    from elmo_bench.layers.carried import carries, read_text
    from elmo_bench.running.build import build
    from elmo_bench.running.callbacks import progress, quiet
    from elmo_bench.running.data import lengths, sentences
    from elmo_bench.running.fit import device_of
    from elmo_bench.running.run import layers_source
    from elmo_bench.system.exhaustion import saying
    from elmo_bench.text.batching import BucketSampler
    from elmo_bench.text.vocabulary import Vocabulary
    from elmo_bench.trained.answers import Answers

    quiet()
    groups = [_windows(reader, row) for row in rows]
    rows = [part for group in groups for part in group]
    device_of(cfg.trainer.accelerator)  # of a baseline, too, which opens no layers
    reader.vocabularies = {name: Vocabulary.restore(state) for name, state in saved["vocabularies"].items()}
    with usable():
        source = None if cfg.baseline else layers_source(cfg.bilm, cfg, saved["bilm_sha256"])
        if carries(source):
            source = read_text(source, list(sentences([rows], reader.fields)), folder)
        module = build(cfg, reader, source)
        _check_kinds(saved["state_dict"], module.state_dict())
        module.load_state_dict(saved["state_dict"])
    bounds = cfg.task.batch
    sampler = BucketSampler(
        lengths(rows, reader.fields), bounds.batch_size, token_budget=bounds.token_budget, shuffle=False
    )
    batches = sampler.batches(0)
    loader = DataLoader(batches, batch_size=None, collate_fn=lambda batch: reader.collate([rows[i] for i in batch]))  # type: ignore[arg-type]
    bar = progress(cfg.trainer.progress)
    with usable():
        trainer = pl.Trainer(
            accelerator=cfg.trainer.accelerator, devices=1, precision=cfg.trainer.precision, logger=False,
            enable_progress_bar=bool(bar), enable_checkpointing=False, enable_model_summary=False, callbacks=bar,
            plugins=[Environment()],
        )  # fmt: skip
    with saying(lambda: f"predicting {module.size}", "lower batch_size"):
        answers = [answer for batch in trainer.predict(Answers(module), loader) or [] for answer in batch]
    order = [index for batch in batches for index in batch]
    parts = (answer for _, answer in sorted(zip(order, answers, strict=True), key=lambda pair: pair[0]))
    return [_surest(reader, list(islice(parts, len(group)))) for group in groups]


def _windows(reader: Any, row: Any) -> list[Any]:
    """The rows that are computed for a row."""
    from elmo_bench.task import Windows

    return reader.windows(row) if isinstance(reader, Windows) else [row]


def _surest(reader: Any, answers: list[Answer]) -> Answer:
    """The answer to a row from those to its windows, the first of equals."""
    return answers[0] if len(answers) == 1 else max(answers, key=lambda each: reader.confidence(each.prediction))


def _check_kinds(stored: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raises `TypeError` for weights that are whole numbers or truth values where the model has fractions."""
    for name in own.keys() & stored.keys():
        if stored[name].is_floating_point() != own[name].is_floating_point():
            raise TypeError(f"{name} holds {stored[name].dtype}, where the model has {own[name].dtype}")


def read_lines(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file with their line numbers. An empty line is an error: it would shift the output."""
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            try:
                raw = json_text.parse(line)
            except ValueError as error:
                raise UserError(str(error), path, number) from None
            if not isinstance(raw, dict):
                raise UserError("not a JSON object", path, number)
            yield number, raw


def write(path: Path, text: str) -> None:
    """Writes the text atomically."""
    with replacing(path) as file:
        file.write(text)
