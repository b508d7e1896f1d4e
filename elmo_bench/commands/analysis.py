"""Commands for the paper's Tables 4 to 6, and for the overlap of a biLM's text with dev and test."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar

from elmo_bench.commands.command import Command, Examples, HelpSection, described, files, run_keys
from elmo_bench.system.errors import UserError

if TYPE_CHECKING:  # `--help` does not import it
    from elmo_bench.analysis.settings import StudyConfig


class OfStudies(Command):
    """A command that measures a study, and takes its settings and the keys of a run."""

    page: ClassVar[str] = "bilms"
    overrides: ClassVar[bool] = True
    examples: ClassVar[Examples] = {
        "": "generated data, offline",
        "scale=open data_root=FOLDER": "open data",
        "scale=open data_root=FOLDER sentences=2000": "the first sentences of each file only",
    }

    @classmethod
    def sections(cls) -> Sequence[HelpSection]:
        title = "Keys of the configuration file, with the defaults that it changes"
        return [files(["scale", "bilm"]), HelpSection(title, described(cls.settings())), run_keys()]

    @classmethod
    def settings(cls) -> type[StudyConfig]:
        """The class of its settings."""
        from elmo_bench.analysis import settings

        return getattr(settings, f"{cls.__name__}Config")

    def run(self) -> None:
        from elmo_bench.analysis.study import Study
        from elmo_bench.reporting.study_tables import show_study

        name = type(self).__name__.lower()
        measure = importlib.import_module(f"elmo_bench.analysis.{name}").measure
        study = Study.of(name, self.settings(), self.typed)
        if query := self.model_dump(include={"word", "sentence"}, exclude_none=True):
            show_study(measure(study, [query]))
        else:
            show_study(study.recorded() or study.write(measure(study)), study.run.results_root)


class Neighbours(OfStudies):
    """Table 4: the nearest neighbours of a word in its sentence, by layer.

    The layers of the text are stored once, below cache_root; after an interruption, the command continues.

    Prints the table and writes it as a record, results/own/analysis/SCALE/STUDY/ID.json, which the report shows. A
    recorded table is not measured again.
    """

    again: ClassVar[str] = "running the command again continues with the layers"
    examples: ClassVar[Examples] = {
        "": "generated data, offline",
        "scale=open data_root=FOLDER": "open data",
        "scale=open data_root=FOLDER word=bank sentence='We sat on the bank of the river .'": "one word",
        "text=FILE.txt format=text word=bank sentence='A bank lends money .'": "any text, one sentence per line",
    }
    word: Annotated[str, "WORD"] | None = None
    """look up this word instead of those in the configuration file; nothing is recorded"""
    sentence: Annotated[str, "'TOKEN TOKEN ...'"] | None = None
    """its sentence, tokens separated by spaces"""

    def run(self) -> None:
        if (self.word is None) != (self.sentence is None):
            raise UserError("word=WORD and sentence='TOKEN TOKEN ...' belong together: give both")
        super().run()


class Wsd(OfStudies):
    """Table 5: word senses by the nearest sense mean, by layer.

    Prints the table and writes it as a record, results/own/analysis/SCALE/STUDY/ID.json, which the report shows. A
    recorded table is not measured again.
    """


class Pos(OfStudies):
    """Table 6: parts of speech by a linear classifier, by layer.

    Prints the table and writes it as a record, results/own/analysis/SCALE/STUDY/ID.json, which the report shows. A
    recorded table is not measured again.
    """


class Overlap(OfStudies):
    """How much of dev and test occurs in a text, such as a biLM's training text.

    Prints the table and writes it as a record, results/own/analysis/SCALE/overlap/ID.json, for the report, which also
    warns beside the dev scores of a task.
    """

    examples: ClassVar[Examples] = {
        "scale=open data_root=FOLDER": "the open biLM's text and all six tasks",
        "scale=open data_root=FOLDER task=squad text=corpus.txt.gz": "a text of your own and one task",
    }

    def run(self) -> None:
        from elmo_bench.analysis import overlap
        from elmo_bench.reporting.study_tables import show_study

        show_study(*overlap.write(self.typed))
