"""The settings of Tables 4 to 6: files conf/analysis/<name>.yaml, and <name>/<scale>.yaml with what differs at a scale.

Arguments that name a key of the file change it; all others are overrides of a run's configuration, of which the scale,
the biLM and the folders count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.schema import RunConfig, key
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits, yaml_text
from elmo_bench.system.terminal.console import choices


def file(help: str) -> Any:
    """A key that names a file, which must be there; null where a format has no such file."""
    return field(default=None, metadata={"help": help, "identity": False, "file": True})


def version(number: int) -> Any:
    """The key of a study's version."""
    return key(number, "of the computation: raised when a change alters results", least=1)


@dataclass
class StudyConfig:
    """What all studies share."""

    version: int = version(1)
    paper: Any = key(None, "the paper's figures: {QUANTITY: {ROW: FIGURE}}", identity=False)
    findings: Any = key([], "of the paper, that it decides (`configuration/tables.py`)", identity=False)
    download: str | None = key(None, "where to get the data; shown in messages", identity=False)
    licence: str | None = key(None, "of the data; shown in messages", identity=False)


@dataclass
class NeighboursConfig(StudyConfig):
    """Table 4: the nearest neighbours of a word in its sentence."""

    text: str | None = file("the corpus")
    format: str = key("text", "text: a sentence a line; columns: a word a line", choices=("text", "columns"))
    column: int = key(0, "of the words, from 0", least=0)
    tokens: int | None = key(None, "read the corpus up to this many tokens; null: all", least=1)
    number: int = key(10, "neighbours of a word in one layer", least=1)
    queries: Any = key([], "words of the table, each with its sentence: [{word, sentence}]")


@dataclass
class WsdConfig(StudyConfig):
    """Table 5: word senses by the nearest sense mean."""

    format: str = key(
        schema.MISSING,
        "columns: word, POS, lemma, keys, sense numbers; xml: Raganato et al.; mini: generated",
        choices=("columns", "xml", "mini"),
    )
    train: str | None = file("sentences with senses, whose means are taken")
    test: str | None = file("sentences to disambiguate")
    train_senses: str | None = file("senses of train: the gold key file (xml), or the list of senses (mini)")
    test_senses: str | None = file("senses of test, likewise")
    inventory: str | None = file("index.sense of WordNet: all sense keys and their numbers")
    sentences: int | None = key(None, "read only so many sentences of each file; null: all", least=1)
    controls: list[str] = key([], "further files in conf/bilm/")
    version: int = version(2)


@dataclass
class PosConfig(StudyConfig):
    """Table 6: parts of speech by a linear classifier on one layer."""

    train: str | None = file("sentences with tags, in columns")
    dev: str | None = file("selects the epoch")
    test: str | None = file("is scored once")
    word: int = key(0, "column of the words, from 0", least=0)
    tags: Any = key(schema.MISSING, "columns of the tags, by the name of their set: {XPOS: 4}")
    numbers: int | None = key(None, "column of token numbers: rows without a whole number are no token", least=0)
    comment: str | None = key(None, "what a comment line starts with")
    apart: bool = key(False, "a comment ends a sentence, and widths may differ between sentences")
    sentences: int | None = key(None, "read only so many sentences of each file; null: all", least=1)
    controls: list[str] = key([], "further files in conf/bilm/")
    vectors: str | None = key(None, "a file in conf/vectors/: another control, left out where its files are not here")
    seeds: int = key(3, "train each classifier with the seeds from 1 to this number", least=1)
    epochs: int = key(10, "of which the best on dev is kept", least=1)
    batch: int = key(512, "words in an update", least=1)
    lr: float = key(1.0e-3, "learning rate of Adam", above=0)
    version: int = version(2)


@dataclass
class OverlapConfig(StudyConfig):
    """What a text, such as that of a biLM, has in common with the tasks' dev and test sentences."""

    task: str = key("all", "whose dev and test: a file in conf/task/, or all")
    text: Any = key(schema.MISSING, "files, folders or patterns, one tokenized sentence a line")
    words: int = key(13, "how many running words count as common", least=1)


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
    folder, file = places.CONF / "analysis" / name, f"{run.scale.name}.yaml"
    if not (folder / file).is_file():
        known = ", ".join(f"scale={path.stem}" for path in sorted(folder.glob("*.yaml")))
        raise UserError(f"analysis.{name} has no configuration file for scale={run.scale.name}; it offers {known}")
    given = [yaml_text.read(path) for path in (folder.with_suffix(".yaml"), folder / file)]
    try:
        merged = OmegaConf.merge(OmegaConf.structured(cls), *given, OmegaConf.from_dotlist(own))
    except OmegaConfBaseException as error:
        typed = next((one for one in own if one.partition("=")[0] == error.full_key), error.full_key)
        raise UserError(f"{typed}: {pages.needed(str(error))}") from None
    around = {"data_root": run.data_root, "generated": run.scale.folder, "study": merged}
    plain: Any = OmegaConf.to_container(OmegaConf.create(around).study, resolve=True)
    settings = cls(**plain)
    schema.check(settings)
    return run, settings


def names(cls: type) -> set[str]:
    """The keys of a study's settings."""
    return {each.name for each in fields(cls)}


def files(settings: StudyConfig) -> dict[str, Path]:
    """The files that the settings name, by their keys."""
    named = {each.name: getattr(settings, each.name) for each in fields(settings) if each.metadata.get("file")}
    return {name: Path(path) for name, path in named.items() if path is not None}


def missing_data(run: RunConfig, settings: StudyConfig) -> list[str]:
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
