"""The vocabulary of a text: `python -m elmo_bench.vocabulary text=FOLDER_OR_PATTERN output=FILE [size=N] [least=3]`.

Writes one word a line, `<S>`, `</S>` and `<UNK>` first, then the words by frequency, as the softmax of a biLM wants
them (`recipe.words` of `python -m elmo_bench.pretrain`).

    text    a file (plain, .gz, .xz, .zst), a folder of such files, or a quoted pattern ('news.en-*')
    output  the file to write
    size    at most so many lines, marks included; default: no bound
    least   words seen less often are left out; default 1 (the release's vocabulary of the 1B Word Benchmark: 3)
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track

from elmo_bench import cli
from elmo_bench.bilm.characters import SENTENCE_BEGIN, SENTENCE_END
from elmo_bench.bilm.corpus import UNKNOWN, Source, sources
from elmo_bench.errors import UserError
from elmo_bench.text.files import open_text

MARKS = (SENTENCE_BEGIN, SENTENCE_END, UNKNOWN)


def count_words(files: Sequence[Source]) -> Counter[str]:
    """How often each word is there, in order of first appearance; the text is read line by line.

    Raises:
        UserError: a file is missing, damaged, not UTF-8 or empty.
    """
    console = Console(stderr=True)
    counts: Counter[str] = Counter()
    for source in track(files, "counting words", console=console, disable=not console.is_terminal):
        before = counts.total()
        with open_text(source.path) as lines:
            for line in lines:
                counts.update(line.split())
        if counts.total() == before:
            raise UserError("no word; expected one tokenized sentence a line", source.path)
    return counts


def vocabulary(counts: Counter[str], size: int | None = None, least: int = 1) -> list[str]:
    """The marks, then the words by frequency, ties in order of first appearance."""
    words = [word for word, number in counts.most_common() if number >= least and word not in MARKS]
    return [*MARKS, *words][:size]


def main() -> None:
    """The entry point."""
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(__doc__)
        return
    given = cli.arguments(sys.argv[1:], ("text", "output"), ("size", "least"))
    numbers = {}
    for key in ("size", "least"):
        if key in given:
            if not given[key].isdecimal() or int(given[key]) < (4 if key == "size" else 1):
                raise UserError(f"{key}={given[key]}: expected a whole number from {4 if key == 'size' else 1}")
            numbers[key] = int(given[key])
    output = Path(given["output"])
    if output.is_dir() or not output.parent.is_dir():
        raise UserError("cannot be written: give the name of a file in a folder that exists", output)
    counts = count_words(sources(Path(), [(given["text"], None)]))
    words = vocabulary(counts, **numbers)
    partial = output.with_name(f".{output.name}.{os.getpid()}.partial")
    partial.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    os.replace(partial, output)
    known = sum(counts[word] for word in words)
    print(f"{len(words)} words -> {output}; they cover {known / counts.total():.2%} of {counts.total()} tokens")


if __name__ == "__main__":
    cli.report(main)
