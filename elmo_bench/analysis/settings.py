"""The settings of Tables 4 to 6: files conf/analysis/<name>.yaml, and <name>/<scale>.yaml for changes at a scale.

Arguments that name a key of the file change it; all others are overrides of a run's configuration, of which only the
scale, the biLM and the folders matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

from omegaconf import OmegaConf
from pydantic import NonNegativeInt, PositiveFloat, PositiveInt

from elmo_bench.configuration import composing
from elmo_bench.configuration.keys import Aside, Counted, Flag, Keys, Text, defaults, fields, finite, valid
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.system import places
from elmo_bench.system.console import choices
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits, yaml_text


class StudyConfig(Keys):
    """The settings that all studies share."""

    version: PositiveInt = 1
    """version of the computation, raised when a change alters results"""
    paper: Aside[Any] = None
    """the paper's figures: {QUANTITY: {ROW: FIGURE}}"""
    findings: Aside[Any] = []
    """findings of the paper that it tests (`configuration/pages.py`)"""
    download: Aside[Text | None] = None
    """where to get the data; shown in messages"""
    licence: Aside[Text | None] = None
    """licence of the data; shown in messages"""


class NeighboursConfig(StudyConfig):
    """Table 4: the nearest neighbours of a word in its sentence."""

    text: Counted[Text | None] = None
    """the corpus"""
    format: Literal["text", "columns"] = "text"
    """text: one sentence per line; columns: one word per line"""
    column: NonNegativeInt = 0
    """column of the words, from 0"""
    tokens: PositiveInt | None = None
    """read the corpus up to this many tokens; null: all"""
    number: PositiveInt = 10
    """neighbours of a word in one layer"""
    queries: Any = []
    """words of the table, each with its sentence: [{word, sentence}]"""


class WsdConfig(StudyConfig):
    """Table 5: word senses by the nearest sense mean."""

    format: Literal["columns", "xml", "mini"]
    """columns: word, POS, lemma, keys, sense numbers; xml: Raganato et al.; mini: generated"""
    train: Counted[Text | None] = None
    """sentences with senses, for the means"""
    test: Counted[Text | None] = None
    """sentences to disambiguate"""
    train_senses: Counted[Text | None] = None
    """senses of train: the gold key file (xml), or the list of senses (mini)"""
    test_senses: Counted[Text | None] = None
    """senses of test, likewise"""
    inventory: Counted[Text | None] = None
    """index.sense of WordNet: all sense keys and their numbers"""
    sentences: PositiveInt | None = None
    """read only this many sentences of each file; null: all"""
    controls: list[Text] = []
    """further files in conf/bilm/"""
    version: PositiveInt = 2
    """version of the computation, raised when a change alters results"""


class PosConfig(StudyConfig):
    """Table 6: parts of speech by a linear classifier on one layer."""

    train: Counted[Text | None] = None
    """sentences with tags, in columns"""
    dev: Counted[Text | None] = None
    """sentences that select the epoch"""
    test: Counted[Text | None] = None
    """sentences that are scored, once"""
    word: NonNegativeInt = 0
    """column of the words, from 0"""
    tags: Any
    """columns of the tags, by the name of their set: {XPOS: 4}"""
    numbers: NonNegativeInt | None = None
    """column of token numbers: rows whose number is not an integer are not tokens"""
    comment: Text | None = None
    """what a comment line starts with"""
    apart: Flag = False
    """a comment ends a sentence, and widths may differ between sentences"""
    sentences: PositiveInt | None = None
    """read only this many sentences of each file; null: all"""
    controls: list[Text] = []
    """further files in conf/bilm/"""
    vectors: Text | None = None
    """a file in conf/vectors/: another control, left out if its files are missing"""
    seeds: PositiveInt = 3
    """train each classifier with the seeds from 1 to this number"""
    epochs: PositiveInt = 10
    """passes over the words of train; the best on dev is kept"""
    batch: PositiveInt = 512
    """words in an update"""
    lr: PositiveFloat = 1.0e-3
    """learning rate of Adam"""
    version: PositiveInt = 2
    """version of the computation, raised when a change alters results"""


class OverlapConfig(StudyConfig):
    """The overlap of a text, such as a biLM's training text, with the tasks' dev and test sentences."""

    task: Text = "all"
    """task with the dev and test sentences: a file in conf/task/, or all"""
    text: Any
    """files, folders or patterns, with one tokenized sentence per line"""
    words: PositiveInt = 13
    """number of consecutive words that count as overlap"""


T = TypeVar("T", bound=StudyConfig)


def read(name: str, cls: type[T], arguments: Sequence[str]) -> tuple[RunConfig, T]:
    """The run and the settings of a study."""
    keys, folder = fields(cls), places.CONF / "analysis"
    own = [argument for argument in arguments if argument.partition("=")[0] in keys]
    others = [argument for argument in arguments if argument not in own]
    for typed in (argument.partition("=")[0] for argument in others):
        if typed.lstrip("+~").partition(".")[0] not in fields(RunConfig):
            raise UserError(f"{typed}: there is no such key; {choices(typed, sorted(keys))}")
    run = composing.run_config([*others, "scale.only=null"])  # a study may read the data of any task
    if not (of_scale := folder / name / f"{run.scale.name}.yaml").is_file():
        known = ", ".join(f"scale={path.stem}" for path in sorted((folder / name).glob("*.yaml")))
        raise UserError(f"analysis.{name} has no configuration file for scale={run.scale.name}; it offers {known}")
    given = [yaml_text.read(path) for path in (folder / f"{name}.yaml", of_scale)]
    merged = OmegaConf.merge(defaults(cls), *given, OmegaConf.from_dotlist(own))
    named = {"data_root": run.data_root, "generated": run.scale.folder, "study": merged}
    plain: Any = OmegaConf.to_container(OmegaConf.create(named).study, resolve=True)
    finite(plain)
    return run, valid(cls, plain)


def files(settings: StudyConfig) -> dict[str, Path]:
    """The files named by the settings, by their keys."""
    named = {name: getattr(settings, name) for name, field in fields(type(settings)).items() if field.json_schema_extra}
    return {name: Path(path) for name, path in named.items() if path is not None}


def missing_data(run: RunConfig, settings: StudyConfig) -> list[Text]:
    """A line for each missing file of data, or one for all of them."""
    if run.scale.maker is not None:
        return []
    licence = f" (licence: {settings.licence})" if settings.licence else ""
    source = f"; get it: {settings.download}{licence}" if settings.download else ""
    if run.data_root is None and any(str(path).startswith("None") for path in files(settings).values()):
        return [f"scale={run.scale.name} needs {places.DATA_ROOT}, and it is not set{source}"]
    absent = {name: path for name, path in files(settings).items() if not path.exists()}
    return [f"{path}: {limits.absent(path)}: {name} names it{source}" for name, path in absent.items()]
