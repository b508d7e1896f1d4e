"""A trained model applied to JSON objects: `elmo_bench.load("ner").predict([{"text": "Ida sang"}])`, or to a file."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from elmo_bench.configuration import pages
from elmo_bench.records import store
from elmo_bench.records.record import Record
from elmo_bench.system import places
from elmo_bench.system.errors import UserError, notice
from elmo_bench.system.storage import files, json_text, limits, outputs
from elmo_bench.system.storage.files import open_text, write_text
from elmo_bench.text import hub
from elmo_bench.text.source import TABLES, check_keys
from elmo_bench.trained import heads
from elmo_bench.trained.opened import Trained, check_answer_key, row_of

LAYERS = ("options", "weights", "path")  # the files of a source of layers


def load(
    what: str | PathLike[str] | Record,
    accelerator: str | None = None,
    batch_size: int | None = None,
    task: str | None = None,
    results: str | PathLike[str] | None = None,
    bilm: str | PathLike[str] | tuple[str | PathLike[str], str | PathLike[str]] | None = None,
) -> Trained:
    """A trained model, from the name of a task, a checkpoint, a folder, the id of a run, its record, or the hub.

    Args:
        what: "ner" for the head that comes with the project, a `best.ckpt`, the folder of a head (`export_head`), the
            16 digits of a record's `run`, the file of the record, a record returned by `train`, or "owner/name" of a
            head on the Hugging Face hub.
        accelerator: cpu, gpu or auto; None: as in the run.
        batch_size: maximum number of rows computed at once; None: as in the run.
        task: the required task of the model; its files may then name code outside this project.
        results: the folder of results with the run; None: your own (results/own), then the reference runs.
        bilm: the folder of its biLM (or "owner/name" on the hub) or Hugging Face model, or a biLM's (options, weights),
            if they have moved.
    """
    options: dict[str, Any] = {"trainer.accelerator": accelerator, "batch_size": batch_size}
    if not isinstance(what, str | PathLike | Record):
        kinds = "the name of a task, the file of a checkpoint, or the id of a run"
        raise UserError(f"{what!r} is not a model: give {kinds}")
    name = str(_of_record(what) if isinstance(what, Record) else what)
    if name in pages.tasks():
        if task not in (None, name):
            raise UserError(f"a model of task {name}, not of task={task}")
        return _opened(heads.read(name), options, bilm)
    if hub.is_model(name):
        name = str(hub.model_folder(name))
    if Path(name).is_dir():
        return _opened(heads.read(task, folder=Path(name)), options, bilm)
    if name.endswith(".json") and Path(name).is_file():
        name = str(_of_record(store.read(Path(name))))
    elif re.fullmatch(r"[0-9a-f]{16}", name) and not Path(name).is_file():
        folders = [results] if results else [places.OWN, places.RECORDED]
        found = next((path for folder in folders for path in Path(folder).glob(f"runs/*/*/{name}.json")), None)
        if found is None:
            where = " or ".join(map(str, folders))
            raise UserError(f"no record of run {name} below {where}; results=FOLDER names another")
        name = str(_of_record(store.read(found)))
    elif not Path(name).is_file() and not name.endswith(".ckpt"):
        tasks = ", ".join(pages.tasks())
        raise UserError(f"{name}: neither a task ({tasks}) nor the file of a checkpoint nor the id of a run")
    return _opened(heads.load(name, task=task), options, bilm)


def _opened(saved: dict[str, Any], options: dict[str, Any], bilm: Any) -> Trained:
    """A model with `bilm` as the files of its source of layers, unless it is None."""
    if bilm is not None and "path" in saved["hyper_parameters"]["config"]["bilm"]:
        options["bilm.path"] = str(bilm)
    elif bilm is not None:
        from elmo_bench.bilm.card import files_of  # its package imports torch

        files = files_of(bilm) if isinstance(bilm, str | PathLike) else bilm
        options |= zip(("bilm.options", "bilm.weights"), map(str, files), strict=True)
    return Trained(saved, options)


def _of_record(record: Record) -> Path:
    """The checkpoint of a record's run, below the same folder. Raises `UserError` if it is missing."""
    if record.path is None:
        raise UserError(f"run {record.run} is not recorded, and has no checkpoint: train it without debug=...")
    found = record.path.parents[3] / record.checkpoint
    if not found.is_file():
        raise UserError(f"the checkpoint of run {record.run} is not here; {heads.REMEDY}", found)
    return found


def predict(
    checkpoint: str | None,
    input: str | None,
    output: str | None,
    format: str | None = None,
    task: str | None = None,
    models_root: str | None = None,
    data: Mapping[str, Any] | None = None,
    text: str | None = None,
    **options: Any,
) -> int:
    """Writes the predictions atomically, or prints them; returns their number.

    Args:
        checkpoint: the path of a checkpoint.
        input: the path of the input, or "-" for the standard input; None: `text` alone. A .txt file without columns is
            plain text: each line is a row, or the whole file if a row is a document.
        output: the path of the output; None: the standard output.
        format: "json", or "official": a file for `score` and the official scorer. None: official if the output's name
            has the `official_ending` of the task's reader, otherwise json.
        task: without a checkpoint: the task whose trained head is used; with one: the task it must have, whose
            configuration files may then name code outside this project.
        models_root: the folder of heads and their biLMs; None: the configuration's.
        data: keys of `task.data` for reading the input; others are as in training.
        text: a text to predict instead of an input.
        options: other keys of the configuration; None: as in the run.
    """
    if (input is None) == (text is None):
        raise UserError("give exactly one of input=FILE, input=- (standard input) and text='...'")
    if output is not None and not Path(output).absolute().parent.is_dir():
        raise UserError("no such folder for the output", Path(output).parent)
    if output is not None and (suffix := Path(output).suffix.lower()) in (*files.OPENERS, ".zip"):
        raise UserError(f"the output is not compressed; give a name that does not end in {suffix}", output)
    if checkpoint is not None and models_root is not None:
        raise UserError("checkpoint=... names a complete model: leave out models_root")
    if checkpoint is None and task is None:
        raise UserError("missing argument checkpoint=... (of a run), or task=... (the trained head of a task)")
    if input not in (None, "-"):
        limits.regular(input, missing=False)  # before torch and a model are loaded

    saved = heads.read(str(task), models_root) if checkpoint is None else heads.load(checkpoint, task=task)
    trained = Trained(saved, options | {f"task.reader.data.{key}": value for key, value in (data or {}).items()})
    cfg = trained.cfg
    if output is not None:
        head = None if checkpoint else heads.folder_of(cfg.task.name, cfg.models_root, models_root is not None)
        outputs.apart(output, [checkpoint, input, head, *(getattr(cfg.bilm, key, None) for key in LAYERS)])
    check_keys(data or {}, *getattr(trained.reader, "keys", ()), places=("columns",))
    with _file_of(input, text) as path:
        number, answers = _predicted(trained, path, output, format)
    if output is None:
        print(answers, end="")
    else:
        write_text(Path(output), answers)
    return number


@contextmanager
def _file_of(input: str | None, text: str | None) -> Iterator[str]:
    """The file to predict; typed text and the standard input are written to one."""
    if input not in (None, "-"):
        yield input
        return
    given = sys.stdin.buffer.read() if text is None else (json_text.dumps({"text": text}) + "\n").encode()
    with TemporaryDirectory() as folder:
        path = Path(folder, "input.jsonl" if given.lstrip()[:1] in (b"{", b"[") else "input.txt")
        path.write_bytes(given)
        try:
            yield str(path)
        except UserError as error:
            place = Path("the standard input") if text is None else None
            raise UserError(error.message, place, error.line if place else None, error.faults) from None


def _predicted(trained: Trained, input: str, output: str | None, format: str | None) -> tuple[int, str]:
    """The number of answers for a file, and their text. Raises `UserError` as `predict`."""
    from elmo_bench.task import ReadsFiles, WritesOfficial

    reader: Any = trained.reader
    own_ending = getattr(reader, "official_ending", None)
    official = format == "official" or (format is None and output is not None and files.ending(output) == own_ending)
    own = not _has_rows(input, getattr(reader, "json_keys", frozenset()))
    if official and not issubclass(type(reader), WritesOfficial):
        raise UserError(f"task {trained.task} has no file format of its own; give a .jsonl file", output)
    if not own:
        inputs = read_rows(reader, input, trained.task, official)
    elif lines := _plain_text(input):
        inputs = _texts(trained, lines, input)
    elif not issubclass(type(reader), ReadsFiles):
        raise UserError(f"task {trained.task} has no file format of its own; give a .jsonl file", input)
    else:
        try:
            inputs = [(row.pop("input", {}), row) for row in reader.from_file(input)]
            for raw, _ in inputs if not official else ():
                check_answer_key(raw)
        except UserError as error:
            in_lines = files.ending(input) in TABLES
            other = "" if in_lines else "; put your own text into a .jsonl file, one object per line"
            raise UserError(f"{error.message}{other}", error.path, error.line, error.faults) from error
    rows = [row for _, row in inputs]
    if not official:
        lines = (json_text.dumps(line, ensure_ascii=False) + "\n" for line in trained.lines(inputs))
        return len(rows), "".join(lines)
    try:
        _try(reader, rows)
    except UserError as error:
        raise UserError(error.message, input) from None
    return len(rows), reader.official([answer.prediction for answer in trained.answers(rows)], rows)


def _plain_text(path: str) -> list[str]:
    """The lines of a .txt file if it is plain text; none if it has columns, trees or document marks."""
    if files.ending(path) != ".txt":
        return []
    with open_text(path) as opened:
        lines = [line.rstrip() for line in opened if line.strip()]
    if any("\t" in line or line.startswith(("(", "#", "-DOCSTART-")) for line in lines):
        return []
    alone = len(lines) == 1 and not re.fullmatch(r"\S+|.*\s(O|[BIESLU]-\S+)", lines[0])
    return [line.strip() for line in lines] if alone or len({len(line.split()) for line in lines}) > 1 else []


def _texts(trained: Trained, lines: list[str], path: str) -> list[tuple[dict[str, Any], Any]]:
    """The rows of plain text: one per line, or one for the whole text if a row is a document."""
    texts = ["\n".join(lines)] if trained.reader.fields == ("sentences",) else lines
    notice("the input is read as plain text" + (", each line as a row" if texts == lines else ", one document"))
    try:
        return [(raw := {"text": text}, row_of(trained.reader, raw, trained.task)) for text in texts]
    except UserError as error:
        raise UserError(f"plain text has no other keys: {error.message}", path) from None


def _has_rows(path: str, own: frozenset[str]) -> bool:
    """Whether a file has rows in JSON. A file of the data set itself has the keys `own` in its first object."""
    first = files.read_text(path, line=True)
    ending = files.ending(path)
    if not json_text.begins_object(first):
        return json_text.begins_array(first) or ending == ".jsonl" or (not first and ending != ".json")
    try:
        found = json_text.parse(first)
    except ValueError:  # in a .json file, an object of several lines
        return ending != ".json"
    return not own or not own <= found.keys()


def _try(reader: Any, rows: Sequence[Any]) -> None:
    """Raises `UserError` unless rows can be written in the official format, before anything is computed."""
    if hasattr(reader, "unanswered"):
        reader.official([reader.unanswered(row) for row in rows], rows)


def read_rows(reader: Any, path: str, task: str, official: bool = False) -> list[tuple[dict[str, Any], Any]]:
    """The JSON objects of a file, as an array or one per line, and the reader's rows for them.

    Args:
        reader, task: the reader and the task of the model.
        path: the file.
        official: whether the answers are written in the official format instead of with the objects.
    """
    array = json_text.begins_array(files.read_text(path, line=True))
    rows = []
    for number, raw in enumerate(json_text.read(path), start=1) if array else read_lines(path):
        try:
            rows.append((raw, row_of(reader, raw, task)))
            if official:
                _try(reader, [rows[-1][1]])
            else:
                check_answer_key(raw)
        except UserError as error:
            if array:
                raise UserError(f"row {number}: {error}", path) from None
            raise UserError(str(error), path, number) from None
    return rows


def read_lines(path: str) -> Iterator[tuple[int, Any]]:
    """The JSON values of a file with their line numbers. An empty line before another would shift the output."""
    empty = 0
    with open_text(path) as lines:
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                empty = empty or number
                continue
            try:
                raw = json_text.parse("" if empty else line)
            except ValueError as error:
                raise UserError(str(error), path, empty or number) from None
            yield number, raw
