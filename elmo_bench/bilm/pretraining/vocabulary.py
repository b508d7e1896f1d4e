"""Makes the vocabulary of a biLM's softmax from a text, for `recipe.words`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.progress import track

from elmo_bench.bilm.characters import SENTENCE_BEGIN, SENTENCE_END
from elmo_bench.bilm.corpus import UNKNOWN, Source
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import open_text

MARKS = (SENTENCE_BEGIN, SENTENCE_END, UNKNOWN)


def count_words(files: Sequence[Source]) -> Counter[str]:
    """The count of each word, in order of first appearance; the text is read line by line.

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
    """The three markers, then the words by frequency, ties in order of first appearance.

    Args:
        counts: of each word.
        size: the most words, including the markers.
        least: words with a smaller count are left out.
    """
    words = [word for word, number in counts.most_common() if number >= least and word not in MARKS]
    return [*MARKS, *words][:size]
