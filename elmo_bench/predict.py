"""Applies a trained model to new text: `elmo-bench predict checkpoint=CKPT input=FILE.jsonl output=FILE.jsonl`.

The formats are described in `--help`. A run's record gives the path of its `checkpoint`, relative to `results_root`.
`task=NAME` in its place takes the trained head of models/heads.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from omegaconf import OmegaConf

from elmo_bench.experiment.trained import AGAIN, load
from elmo_bench.system import json_text
from elmo_bench.system.command import Argument, Command, Section, choice, whole
from elmo_bench.system.errors import UserError
from elmo_bench.system.files import open_text, replacing

if TYPE_CHECKING:
    from elmo_bench.experiment.answers import Answer


def formats() -> list[Section]:
    """A section of the help: the contents of an input line and an output line for each task, from its package."""
    from elmo_bench.configuration import pages

    lines = []
    for task in pages.tasks():
        reader = OmegaConf.select(OmegaConf.load(pages.page(task)), "task.reader._target_") or ""
        package = reader.removesuffix("." + ".".join(reader.split(".")[-2:]))
        for part, text in getattr(importlib.import_module(package), "PREDICT", {}).items() if package else ():
            lines.append((f"{task}, {part}", text))
    return [Section("Formats by task, a line each", lines)]


COMMAND = Command(
    "predict",
    "apply a trained model to new text",
    (
        Argument("task", "use the trained head in models_root/heads", None, "NAME"),
        Argument("checkpoint", "of a run; its record gives the path, relative to results_root", None, "FILE.ckpt"),
        Argument("input", "one JSON object a line; .gz and .xz are read too", value="FILE.jsonl"),
        Argument("output", "one line for each line of the input, in its order", value="FILE.jsonl"),
        Argument("format", "json or plain (see above)", "json", parse=choice("json", "plain")),
        Argument("models_root", "folder of heads and their biLMs; by default models/", None, "FOLDER"),
        Argument("bilm.options", "the biLM's options file, if it has moved", None, "FILE"),
        Argument("bilm.weights", "the biLM's weights file, if it has moved", None, "FILE"),
        Argument("bilm.path", "the folder of the Hugging Face model, if it has moved", None, "FOLDER"),
        Argument("trainer.accelerator", "cpu, gpu or auto; by default as in the run", None, "NAME"),
        Argument("trainer.threads", "CPU threads; by default as in the run", None, "N", whole(1)),
        Argument("batch_size", "rows computed at once; by default as in the run", None, "N", whole(1)),
    ),
    (
        ("task=ner input=in.jsonl output=out.jsonl", "the head that comes with the project"),
        ("checkpoint=results/own/work/.../best.ckpt input=in.jsonl output=out.jsonl", ""),
        ("checkpoint=results/own/work/.../best.ckpt input=in.jsonl output=labels.txt format=plain", "for `score`"),
    ),
    (
        "format=json: each line is a JSON object that repeats the input, with its words if it was plain text, and "
        "adds the model's answer: labels by name, with probabilities where the model has any. format=plain: each line "
        "is only the answer as JSON, as `score` reads it.",
        "For a task whose data set has its own JSON files (SQuAD), an input named .json is read as such a file, and an "
        "output named .json is written for the official scorer, whatever `format` is.",
    ),
    more=formats,
    page="predicting",
)  # fmt: skip


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
        format: "json" or "plain".
        task: instead of a checkpoint: the one whose trained head is used.
        models_root: the folder of heads and their biLMs; None: the configuration's.
        options: other keys of the configuration; None: as in the run.

    Raises:
        UserError: files that cannot be read, a line that is not a JSON object or that the reader rejects.
    """
    from hydra.utils import instantiate

    from elmo_bench.configuration import schema
    from elmo_bench.task import ReadsFiles, WritesOfficial

    if not Path(output).absolute().parent.is_dir():
        raise UserError("no such folder for the output", Path(output).parent)
    saved = model(checkpoint, task, models_root)
    cfg = OmegaConf.create(saved["hyper_parameters"]["config"])
    for key, value in options.items():
        if value is not None:
            OmegaConf.update(cfg, key if key != "batch_size" else "task.batch.batch_size", value)
    cfg = schema.from_plain(OmegaConf.to_container(cfg))  # type: ignore[arg-type]
    reader = instantiate(cfg.task.reader)
    official = _own_format(reader, WritesOfficial, output, cfg.task.name)
    own_input = _own_format(reader, ReadsFiles, input, cfg.task.name)
    inputs = [({}, row) for row in reader.from_file(input)] if own_input else read_rows(reader, input, cfg.task.name)
    rows = [row for _, row in inputs]
    with TemporaryDirectory() as folder:
        answers = run(cfg, saved, reader, rows, folder) if rows else []
    if official:
        lines = [reader.official([answer.prediction for answer in answers], rows)]
    elif format == "plain":
        lines = [answer.prediction for answer in answers]
    else:
        lines = [
            echo(raw, row, reader.fields) | answer.described for (raw, row), answer in zip(inputs, answers, strict=True)
        ]
    write(Path(output), "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return len(answers)


def model(checkpoint: str | None, task: str | None, models_root: str | None) -> dict[str, Any]:
    """The checkpoint that is given, or the trained head of a task. Raises `UserError` unless it is one of the two."""
    from elmo_bench.experiment import shipped

    if checkpoint is None and task is None:
        raise UserError("missing argument checkpoint=... (of a run), or task=... (the trained head of a task)")
    if checkpoint is not None and (task or models_root) is not None:
        raise UserError("checkpoint=... is a model by itself: leave out task and models_root")
    return shipped.read(task, models_root) if checkpoint is None else load(checkpoint)  # type: ignore[arg-type]


def echo(raw: Mapping[str, Any], row: Mapping[str, Any], fields: Sequence[str]) -> dict[str, Any]:
    """An input object, plus the words of fields that were tokenized here (except documents)."""
    words = {field: row[field] for field in fields if field not in raw}
    return {**raw, **{field: value for field, value in words.items() if all(isinstance(word, str) for word in value)}}


def _own_format(reader: Any, feature: type, path: str, task: str) -> bool:
    """Whether the file is in the data set's own format (.json). Raises `UserError` if the reader has none."""
    if not path.removesuffix(".gz").removesuffix(".xz").endswith(".json"):
        return False
    if not isinstance(reader, feature):
        raise UserError(f"task {task} has no JSON format of its own; give a .jsonl file", path)
    return True


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

    from elmo_bench.experiment.answers import Answers
    from elmo_bench.experiment.build import build
    from elmo_bench.experiment.callbacks import progress, quiet
    from elmo_bench.experiment.data import lengths, sentences
    from elmo_bench.experiment.ranks import Environment
    from elmo_bench.experiment.run import layers_source
    from elmo_bench.layers.carried import carries, read_text
    from elmo_bench.system.exhaustion import saying
    from elmo_bench.text.batching import BucketSampler
    from elmo_bench.text.vocabulary import Vocabulary

    quiet()
    reader.vocabularies = {name: Vocabulary.restore(state) for name, state in saved["vocabularies"].items()}
    if cfg.task.words is not None and "path" in cfg.task.words:
        cfg.task.words["path"] = None  # the vectors are in the checkpoint
    cfg.bilm.cache = False
    source = None if cfg.baseline else layers_source(cfg.bilm, cfg, saved["bilm_sha256"])
    if carries(source):
        source = read_text(source, list(sentences([rows], reader.fields)), folder)
    module = build(cfg, reader, source)
    try:
        module.load_state_dict(saved["state_dict"])
    except RuntimeError as error:
        raise UserError(f"the checkpoint does not fit its model: {str(error).splitlines()[-1]}; {AGAIN}") from error
    bounds = cfg.task.batch
    sampler = BucketSampler(
        lengths(rows, reader.fields), bounds.batch_size, token_budget=bounds.token_budget, shuffle=False
    )
    batches = sampler.batches(0)
    loader = DataLoader(batches, batch_size=None, collate_fn=lambda batch: reader.collate([rows[i] for i in batch]))  # type: ignore[arg-type]
    bar = progress(cfg.trainer.progress)
    trainer = pl.Trainer(
        accelerator=cfg.trainer.accelerator, devices=1, precision=cfg.trainer.precision, logger=False,
        enable_progress_bar=bool(bar), enable_checkpointing=False, enable_model_summary=False, callbacks=bar,
        plugins=[Environment()],
    )  # fmt: skip
    with saying(lambda: f"predicting {module.size}", "lower batch_size"):
        answers = [answer for batch in trainer.predict(Answers(module), loader) or [] for answer in batch]
    order = [index for batch in batches for index in batch]
    return [answer for _, answer in sorted(zip(order, answers, strict=True), key=lambda pair: pair[0])]


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


def main() -> None:
    """The entry point."""
    given = COMMAND.parse()
    print(f"{predict(**given)} predictions in {given['output']}", file=sys.stderr)


if __name__ == "__main__":
    COMMAND.run(main)
