"""Applies a trained model to new text: `elmo-bench predict checkpoint=CKPT input=FILE.jsonl output=FILE.jsonl`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Literal

from omegaconf import OmegaConf

from elmo_bench.commands.command import DATA, Argument, Command, HelpSection, whole
from elmo_bench.system import code
from elmo_bench.trained.prediction import predict


def packages() -> Iterator[tuple[str, ModuleType]]:
    """Each task with the package of its reader."""
    from elmo_bench.configuration import pages

    for task in pages.tasks():
        reader = OmegaConf.select(pages.read(pages.page(task)), "task.reader._target_") or ""
        if package := ".".join(reader.split(".")[:-2]):
            yield task, importlib.import_module(code.located(package))


def formats() -> list[HelpSection]:
    """A section of the help: the contents of an input line and an output line for each task, from its package."""
    lines = [
        (f"{task}, {part}", text)
        for task, package in packages()
        for part, text in getattr(package, "PREDICT", {}).items()
    ]
    return [HelpSection("Formats by task, a line each", lines)]


COMMAND = Command(
    (
        Argument("task", "use the trained head in models_root/heads; with checkpoint: its task", None, "NAME"),
        Argument("checkpoint", "of a run; its record gives the path, relative to results_root", None, "FILE.ckpt"),
        Argument("input", "JSON objects, a line each or an array; any file that training reads", value="FILE"),
        Argument("output", "one line for each line of the input, in its order", value="FILE"),
        Argument("format", "json, as by default, or official (see above)", None, "NAME", Literal["json", "official"]),
        Argument("models_root", "folder of heads and their biLMs; by default models/", None, "FOLDER"),
        Argument("bilm.options", "the biLM's options file, if it has moved", None, "FILE"),
        Argument("bilm.weights", "the biLM's weights file, if it has moved", None, "FILE"),
        Argument("bilm.path", "the folder of the Hugging Face model, if it has moved", None, "FOLDER"),
        Argument("trainer.accelerator", "cpu, gpu or auto; by default as in the run", None, "NAME"),
        Argument("trainer.threads", "CPU threads; by default as in the run", None, "N", whole(1)),
        Argument("batch_size", "rows computed at once; by default as in the run", None, "N", whole(1)),
        DATA,
    ),
    (
        ("task=ner input=in.jsonl output=out.jsonl", "the head that comes with the project"),
        ("checkpoint=results/own/work/.../best.ckpt input=in.jsonl output=out.jsonl", ""),
        ("checkpoint=results/own/work/.../best.ckpt input=in.jsonl output=answers.txt format=official", "for `score`"),
    ),
    (
        "format=json: each line is a JSON object that repeats the input as it is and adds the model's answer under the "
        'key "prediction": labels by name, with probabilities where the model has any, and the words of text that was '
        "tokenized. format=official: a file that `score` and the official scorer read.",
        "The input may also be a table or a file of the data set, with answers or without: columns, trees, SNLI's "
        "files, SQuAD's .json. SQuAD's output is official if it is named .json, unless you type format=json.",
    ),
    more=formats,
    page="predicting",
)  # fmt: skip


def main() -> None:
    """The entry point."""
    given = COMMAND.parse()
    number = predict(**given)
    print(f"{number} prediction{'s' * (number != 1)} in {given['output']}", file=sys.stderr)
