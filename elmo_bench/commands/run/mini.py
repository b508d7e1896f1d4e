"""`elmo-bench mini out=FOLDER [seed=1] [ner=1200,400,600] [names=4000] ...` writes a mini data set."""

from __future__ import annotations

from dataclasses import fields

from elmo_bench.mini import Sizes, ensure_data
from elmo_bench.system.terminal.command import Argument, Command, whole


def numbers(text: str) -> int | list[int]:
    """Parses one whole number, or several between commas."""
    values = list(map(whole(), text.split(",")))
    return values if len(values) > 1 else values[0]


MEANINGS = {
    "lm": "tokens of plain text for train, dev and test",
    "ner": "sentences with named entities",
    "srl": "sentences with semantic roles",
    "coref": "documents with coreference",
    "snli": "pairs of sentences",
    "squad": "paragraphs of about five questions",
    "sst": "sentences with sentiment",
    "names": "how many different names the world has",
    "invented": "invented words in every group of nouns and frame of verbs",
}
COMMAND = Command(
    "mini",
    "write the generated data set of the mini scale",
    (
        Argument("out", "the folder to write; files of other names in it stay", value="FOLDER"),
        Argument("seed", "another seed is another world", 1, parse=whole()),
        *(Argument(f.name, MEANINGS[f.name], f.default, parse=numbers) for f in fields(Sizes)),
    ),
    (("out=world ner=1200,400,600", "more training sentences for named entities; train, dev and test"),),
    ("The data set is written unless the folder has it already. The same seed and sizes give the same bytes.",),
    page="commands",
)


def main() -> None:
    """Generates the data set unless the folder has it already, and says where it is."""
    given = COMMAND.parse()
    out, seed = given.pop("out"), given.pop("seed")
    sizes = {name: list(value) if isinstance(value, tuple) else value for name, value in given.items()}
    print(ensure_data(out, seed, sizes))
