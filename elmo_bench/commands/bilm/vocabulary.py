"""The vocabulary of a text: `elmo-bench vocabulary text=FOLDER_OR_PATTERN output=FILE`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from elmo_bench.commands.command import Argument, Command, whole
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import replacing

COMMAND = Command(
    (
        Argument("text", "a file (plain, .gz, .xz), a folder of such files, or a quoted pattern", value="TEXT"),
        Argument("output", "the file to write, one word a line", value="FILE"),
        Argument("size", "the most words, including the three markers; by default all", None, "N", whole(4)),
        Argument("least", "words seen less often are left out", 1, kind=whole(1)),
    ),
    (
        ("text=corpus.txt.gz output=words.txt size=50000", "the 49,997 most frequent words and the markers"),
        ("text='news.en-*' output=words.txt least=3", "as in the release's vocabulary of the 1B Word Benchmark"),
    ),
    (
        "The text has one tokenized sentence a line. <S>, </S> and <UNK> come first, then the words by frequency, as "
        "recipe.words of `elmo-bench pretrain` expects.",
    ),
    page="bilms",
)


def main() -> None:
    """The entry point."""
    from elmo_bench.bilm.corpus import most_frequent, sources
    from elmo_bench.system.terminal.bars import tracked

    given = COMMAND.parse()
    output = Path(given["output"])
    if output.is_dir() or not output.parent.is_dir():
        raise UserError("cannot be written: give the name of a file in a folder that exists", output)
    counts = Counter[str]()
    files = sources(Path(), [(given["text"], None)])
    for source in tracked(files, "counting words"):
        for words in source.sentences():
            counts.update(words)
    words = most_frequent(counts, given["size"], given["least"])
    with replacing(output) as file:
        file.writelines(f"{word}\n" for word in words)
    known = sum(counts[word] for word in words)
    print(f"{len(words)} words -> {output}; they cover {known / counts.total():.2%} of {counts.total()} tokens")
