"""Predictions for raw text: `python -m elmo_bench.predict checkpoint=CKPT input=FILE.jsonl output=FILE.jsonl`.

The input holds one JSON object a line, with the keys that the task's reader takes (NER: {"tokens": [...]} or
{"text": "..."}); the output one JSON value a line, in the same order. A run's record names its `checkpoint`, relative
to `results/`. `bilm.options=` and `bilm.weights=` say where the biLM lies now if it has moved.

Where a reader knows its data set's own files (`from_file`, SQuAD), an input named .json (.json.xz, .json.gz) is such a
file; where it knows the form that the official scorer reads (`official`), an output named .json is written in it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elmo_bench.system import console
from elmo_bench.system.errors import UserError
from elmo_bench.system.files import open_text, replacing

OPTIONS = ("bilm.options", "bilm.weights", "trainer.accelerator", "trainer.threads", "batch_size")


def predict(checkpoint: str, input: str, output: str, **options: str) -> int:
    """Writes the predictions, whole or not at all; returns their number.

    Raises:
        UserError: files that cannot be read, a line that is no JSON object or that the reader refuses (it is named).
    """
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    from elmo_bench.configuration import schema
    from elmo_bench.task import ReadsFiles, WritesOfficial

    if not Path(output).absolute().parent.is_dir():
        raise UserError("no such folder for the output", Path(output).parent)
    saved = load(checkpoint)
    cfg = OmegaConf.create(saved["hyper_parameters"]["config"])
    for key, value in options.items():
        OmegaConf.update(cfg, key if key != "batch_size" else "task.batch.batch_size", _number(value))
    cfg = schema.from_plain(OmegaConf.to_container(cfg))  # type: ignore[arg-type]
    reader = instantiate(cfg.task.reader)
    official = _own_format(reader, WritesOfficial, output, cfg.task.name)
    own_input = _own_format(reader, ReadsFiles, input, cfg.task.name)
    rows = reader.from_file(input) if own_input else read_rows(reader, input, cfg.task.name)
    predictions = run(cfg, saved, reader, rows) if rows else []
    if official:
        write(Path(output), json.dumps(reader.official(predictions, rows), ensure_ascii=False) + "\n")
    else:
        write(Path(output), "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in predictions))
    return len(predictions)


def _own_format(reader: Any, feature: type, path: str, task: str) -> bool:
    """Whether the file is in the data set's own format: named .json. Raises `UserError` if the reader has none."""
    if not path.removesuffix(".gz").removesuffix(".xz").endswith(".json"):
        return False
    if not isinstance(reader, feature):
        raise UserError(f"task {task} has no JSON files of its own; name a .jsonl file", path)
    return True


def read_rows(reader: Any, path: str, task: str) -> list[Any]:
    """Rows of the JSON objects of a file. Raises `UserError` naming a line that is none or that the reader refuses."""
    rows = []
    for number, raw in read_lines(path):
        try:
            rows.append(reader.from_text(**raw))
        except UserError as error:
            raise UserError(str(error), path, number) from None
        except TypeError:
            raise UserError(f"the reader of {task} does not take these keys: {', '.join(raw)}", path, number) from None
    return rows


def load(checkpoint: str) -> dict[str, Any]:
    """A checkpoint of ours; nothing in it is executed. Raises `UserError` for any other file."""
    import torch

    if not Path(checkpoint).is_file():
        raise UserError("no such checkpoint; a run's record names its `checkpoint`, relative to results/", checkpoint)
    try:
        saved = torch.load(checkpoint, map_location="cpu", weights_only=True)
        if not {"task", "elmo", "bilm"} <= set(saved["hyper_parameters"]["config"]) or "vocabularies" not in saved:
            raise ValueError("other keys")
    except Exception as error:
        why = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UserError(f"not a checkpoint of elmo_bench ({why})", checkpoint) from error
    return saved


def run(cfg: Any, saved: dict[str, Any], reader: Any, rows: list[Any]) -> list[Any]:
    """The model's answers, in the order of the rows."""
    import pytorch_lightning as pl
    from torch.utils.data import DataLoader

    from elmo_bench.experiment.build import build
    from elmo_bench.experiment.callbacks import progress, quiet
    from elmo_bench.experiment.data import lengths
    from elmo_bench.experiment.run import layers_source
    from elmo_bench.text.batching import BucketSampler
    from elmo_bench.text.vocabulary import Vocabulary

    quiet()
    reader.vocabularies = {name: Vocabulary.restore(state) for name, state in saved["vocabularies"].items()}
    if cfg.task.words is not None and "path" in cfg.task.words:
        cfg.task.words["path"] = None  # the vectors are in the checkpoint
    cfg.bilm.cache = False
    source = None if cfg.baseline else layers_source(cfg.bilm, cfg, saved["bilm_sha256"])
    module = build(cfg, reader, source)
    module.load_state_dict(saved["state_dict"])
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
    )  # fmt: skip
    found = [answer for batch in trainer.predict(module, loader) or [] for answer in batch]
    order = [index for batch in batches for index in batch]
    return [answer for _, answer in sorted(zip(order, found, strict=True), key=lambda pair: pair[0])]


def read_lines(path: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file with the numbers of their lines; empty lines are an error too: they would shift."""
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            try:
                raw = json.loads(line)
            except ValueError as error:
                raise UserError(f"not JSON ({error})", path, number) from None
            if not isinstance(raw, dict):
                raise UserError("not a JSON object", path, number)
            yield number, raw


def write(path: Path, text: str) -> None:
    """Whole, or not at all."""
    with replacing(path) as file:
        file.write(text)


def _number(value: str) -> Any:
    return int(value) if value.isdigit() else value


def main() -> None:
    """The entry point."""
    given = console.arguments(sys.argv[1:], ("checkpoint", "input", "output"), OPTIONS)
    given.pop("debug", None)
    print(f"{predict(**given)} predictions in {given['output']}", file=sys.stderr)


if __name__ == "__main__":
    console.report(main)
