"""What the help texts of the commands of Tables 4 to 6 share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from elmo_bench.commands.command import Argument, Command, HelpSection, described, files, settings
from elmo_bench.commands.usage import OVERRIDES, ROOTS, SCALE

if TYPE_CHECKING:  # `--help` does not import it
    from elmo_bench.records.studies import StudyRecord

STUDY = (
    SCALE,
    Argument("bilm", "a configuration file in conf/bilm/; by default that of the scale", None, "NAME"),
    Argument("force", "measure again although there is a record", False, kind=bool),
    *ROOTS,
)
NOTES = (
    "Prints the table and writes it as a record, results/own/analysis/SCALE/STUDY/ID.json, which the report shows. A "
    "recorded table is not measured again.",
    OVERRIDES,
)
BY_SCALE = (
    ("", "generated data, offline"),
    ("scale=open data_root=FOLDER", "open data"),
    ("scale=open data_root=FOLDER sentences=2000", "the first sentences of each file only"),
)


def table(config: str) -> Command:
    """The command of a table that takes nothing but the settings of its study."""
    return Command(STUDY, BY_SCALE, NOTES, overrides=True, more=lambda: keys(config), page="bilms")


def keys(config: str) -> list[HelpSection]:
    """The biLMs, and the keys of a study, a dataclass of `analysis/settings.py`, with their defaults."""
    from elmo_bench.analysis import settings as studies

    listed = described(getattr(studies, config))
    return [files(["bilm"]), settings("Keys of the configuration file, with the defaults that it changes", listed)]


def show(record: StudyRecord, results_root: str | None = None) -> None:
    """Prints the table of a study, and where its record is if it has one."""
    from elmo_bench.commands.compare import report
    from elmo_bench.reporting.tables.studies import section

    report.show([section(record)])
    if results_root is not None:
        print(f"record: {record.place(results_root)}")
