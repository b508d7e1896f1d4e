"""The settings of Tables 4 to 6: files conf/analysis/<name>.yaml, and <name>/<scale>.yaml with what differs at a scale.

Arguments that name a key of the file change it; all others are overrides of a run's configuration, of which the scale,
the biLM and the folders count.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from omegaconf import OmegaConf

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.checks import Flag, Keys, Text, defaults, fields, finite, key, valid
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits, yaml_text
from elmo_bench.system.terminal.console import choices


def file(help: str) -> Any:
    """A key that names a file, which must be there; null where a format has no such file."""
    return key(None, help, identity=None)


def version(number: int) -> Any:
    """The key of a study's version."""
    return key(number, "of the computation: raised when a change alters results", ge=1)


class StudyConfig(Keys):
    """What all studies share."""

    version: int = version(1)
    paper: Any = key(None, "the paper's figures: {QUANTITY: {ROW: FIGURE}}", identity=False)
    findings: Any = key([], "of the paper, that it decides (`configuration/tables.py`)", identity=False)
    download: Text | None = key(None, "where to get the data; shown in messages", identity=False)
    licence: Text | None = key(None, "of the data; shown in messages", identity=False)


class NeighboursConfig(StudyConfig):
    """Table 4: the nearest neighbours of a word in its sentence."""

    text: Text | None = file("the corpus")
    format: Literal["text", "columns"] = key("text", "text: a sentence a line; columns: a word a line")
    column: int = key(0, "of the words, from 0", ge=0)
    tokens: int | None = key(None, "read the corpus up to this many tokens; null: all", ge=1)
    number: int = key(10, "neighbours of a word in one layer", ge=1)
    queries: Any = key([], "words of the table, each with its sentence: [{word, sentence}]")


class WsdConfig(StudyConfig):
    """Table 5: word senses by the nearest sense mean."""

    format: Literal["columns", "xml", "mini"] = key(
        ..., "columns: word, POS, lemma, keys, sense numbers; xml: Raganato et al.; mini: generated"
    )
    train: Text | None = file("sentences with senses, whose means are taken")
    test: Text | None = file("sentences to disambiguate")
    train_senses: Text | None = file("senses of train: the gold key file (xml), or the list of senses (mini)")
    test_senses: Text | None = file("senses of test, likewise")
    inventory: Text | None = file("index.sense of WordNet: all sense keys and their numbers")
    sentences: int | None = key(None, "read only so many sentences of each file; null: all", ge=1)
    controls: list[Text] = key([], "further files in conf/bilm/")
    version: int = version(2)


class PosConfig(StudyConfig):
    """Table 6: parts of speech by a linear classifier on one layer."""

    train: Text | None = file("sentences with tags, in columns")
    dev: Text | None = file("selects the epoch")
    test: Text | None = file("is scored once")
    word: int = key(0, "column of the words, from 0", ge=0)
    tags: Any = key(..., "columns of the tags, by the name of their set: {XPOS: 4}")
    numbers: int | None = key(None, "column of token numbers: rows without a whole number are no token", ge=0)
    comment: Text | None = key(None, "what a comment line starts with")
    apart: Flag = key(False, "a comment ends a sentence, and widths may differ between sentences")
    sentences: int | None = key(None, "read only so many sentences of each file; null: all", ge=1)
    controls: list[Text] = key([], "further files in conf/bilm/")
    vectors: Text | None = key(None, "a file in conf/vectors/: another control, left out where its files are not here")
    seeds: int = key(3, "train each classifier with the seeds from 1 to this number", ge=1)
    epochs: int = key(10, "of which the best on dev is kept", ge=1)
    batch: int = key(512, "words in an update", ge=1)
    lr: float = key(1.0e-3, "learning rate of Adam", gt=0)
    version: int = version(2)


class OverlapConfig(StudyConfig):
    """What a text, such as that of a biLM, has in common with the tasks' dev and test sentences."""

    task: Text = key("all", "whose dev and test: a file in conf/task/, or all")
    text: Any = key(..., "files, folders or patterns, one tokenized sentence a line")
    words: int = key(13, "how many running words count as common", ge=1)


T = TypeVar("T", bound=StudyConfig)


def read(name: str, cls: type[T], arguments: Sequence[str]) -> tuple[RunConfig, T]:
    """The run and the settings of a study.

    Raises:
        UserError: an unknown key or configuration file, a value that is not allowed.
    """
    own = [argument for argument in arguments if argument.partition("=")[0] in names(cls)]
    others = [argument for argument in arguments if argument not in own]
    for typed in (argument.partition("=")[0] for argument in others):
        if typed.lstrip("+~").partition(".")[0] not in names(RunConfig):
            raise UserError(f"{typed}: there is no such key; {choices(typed, sorted(names(cls)))}")
    run = schema.typed(pages.compose([*others, "scale.only=null"]))  # a study may read the data of any task
    merged = OmegaConf.merge(defaults(cls), *_pages(name, run.scale.name), OmegaConf.from_dotlist(own))
    around = {"data_root": run.data_root, "generated": run.scale.folder, "study": merged}
    plain: Any = OmegaConf.to_container(OmegaConf.create(around).study, resolve=True)
    finite(plain)
    return run, valid(cls, plain)


def _pages(name: str, scale: str) -> list[Any]:
    """The common file and the one of the scale. Raises `UserError` if there is none for the scale."""
    folder = places.CONF / "analysis"
    if not (folder / name / f"{scale}.yaml").is_file():
        known = ", ".join(f"scale={path.stem}" for path in sorted((folder / name).glob("*.yaml")))
        raise UserError(f"analysis.{name} has no configuration file for scale={scale}; it offers {known}")
    return [yaml_text.read(path) for path in (folder / f"{name}.yaml", folder / name / f"{scale}.yaml")]


def names(cls: type[Keys]) -> set[str]:
    """The keys of a study's settings."""
    return {*fields(cls)}


def files(settings: StudyConfig) -> dict[str, Path]:
    """The files that the settings name, by their keys."""
    named = {name: getattr(settings, name) for name, field in fields(type(settings)).items() if field.json_schema_extra}
    return {name: Path(path) for name, path in named.items() if path is not None}


def missing_data(run: RunConfig, settings: StudyConfig) -> list[Text]:
    """What to say of data that are not here: one line, or one for each file."""
    if run.scale.maker is not None:
        return []
    if run.data_root is None and any(str(path).startswith("None") for path in files(settings).values()):
        return [f"scale={run.scale.name} needs {places.DATA_ROOT}, and it is not set{_source(settings)}"]
    absent = {name: path for name, path in files(settings).items() if not path.exists()}
    return [f"{path}: {limits.absent(path)}: {name} names it{_source(settings)}" for name, path in absent.items()]


def _source(settings: StudyConfig) -> str:
    licence = f" (licence: {settings.licence})" if settings.licence else ""
    return f"; get it: {settings.download}{licence}" if settings.download else ""
