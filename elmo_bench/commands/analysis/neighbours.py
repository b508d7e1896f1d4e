"""The paper's Table 4: `elmo-bench analysis.neighbours scale=open data_root=FOLDER`, or `make table N=4`."""

from __future__ import annotations

import sys

from elmo_bench.commands.analysis.usage import BY_SCALE, NOTES, STUDY, keys, show
from elmo_bench.commands.command import Argument, Command
from elmo_bench.system.errors import UserError

COMMAND = Command(
    (
        Argument(
            "word", "look up this word instead of those in the configuration file; nothing is recorded", None, "WORD"
        ),
        Argument("sentence", "its sentence, tokens separated by spaces", None, "'TOKEN TOKEN ...'"),
        *STUDY,
    ),
    (
        *BY_SCALE[:2],
        ("scale=open data_root=FOLDER word=bank sentence='We sat on the bank of the river .'", "one word"),
        ("text=FILE.txt format=text word=bank sentence='A bank lends money .'", "any text, one sentence a line"),
    ),
    (
        "The layers of the text are stored once, below cache_root; interrupted, this goes on where it stopped.",
        *NOTES,
    ),
    again="running the command again goes on with the layers",
    overrides=True,
    more=lambda: keys("NeighboursConfig"),
    page="bilms",
)


def main() -> None:
    """The entry point."""
    from elmo_bench.analysis.neighbours import measure
    from elmo_bench.analysis.settings import NeighboursConfig
    from elmo_bench.analysis.study import Study

    query, rest = COMMAND.split(sys.argv[1:], "word", "sentence")
    if (query["word"] is None) != (query["sentence"] is None):
        raise UserError("word=WORD and sentence='TOKEN TOKEN ...' belong together: give both")
    study = Study.of("neighbours", NeighboursConfig, rest)
    if query["word"] is not None:
        show(measure(study, [query]))
    else:
        record = study.recorded() or study.write(measure(study, study.settings.queries))
        show(record, study.run.results_root)
