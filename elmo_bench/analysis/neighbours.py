"""The paper's Table 4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from elmo_bench.analysis.nearest import Neighbour, Query, search
from elmo_bench.analysis.settings import NeighboursConfig
from elmo_bench.analysis.study import Study
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import open_text
from elmo_bench.text.columns import read_blocks

NOTE = (
    "The {number} nearest words by cosine among {tokens} words of text, in each layer, without those of the sentence "
    "itself. Layer 0 knows no context: its neighbours are words. Cosine: of the nearest and of the last neighbour. "
    "Same word: how many of the neighbours are the same word. Shown: the first {shown}, each in [ ] with the words "
    "around it. {scale}"
)
SHOWN, AROUND = 4, 3  # neighbours in a cell, and words on each side of one


def corpus(settings: NeighboursConfig) -> list[list[str]]:
    """The sentences of the text that have words, up to `settings.tokens` tokens. Raises `UserError` if it has none."""
    if settings.text is None:
        raise UserError("no text: give text=FILE, and format=columns if it has a word a line")
    sentences, tokens = [], 0
    for sentence in _sentences(Path(settings.text), settings):
        tokens += len(sentence)
        if settings.tokens is not None and tokens > settings.tokens:
            break
        if sentence:
            sentences.append(sentence)
    if not sentences:
        raise UserError("holds no words", settings.text)
    return sentences


def _sentences(path: Path, settings: NeighboursConfig) -> Iterator[list[str]]:
    if settings.format == "columns":
        yield from (block.column(settings.column) for block in read_blocks(path, comment="# "))
        return
    with open_text(path) as lines:
        yield from (line.split() for line in lines)


def measure(study: Study[NeighboursConfig], queries: Sequence[dict[str, str]]) -> StudyRecord:
    """The table.

    Raises:
        UserError: no queries, or a word that is not in its sentence.
    """
    if not isinstance(queries, list) or not queries:
        raise UserError("no queries: give word=WORD and sentence='TOKEN TOKEN ...'")
    placed = [place(query) for query in queries]  # before anything is computed
    (source,) = study.open(cached=True).values()
    sentences = corpus(study.settings)
    found = search(source, sentences, placed, study.settings.number)
    cells = [cell for query, near in zip(placed, found, strict=True) for cell in _cells(sentences, query, near)]
    words, note = sum(map(len, sentences)), study.run.scale.note
    note = NOTE.format(number=study.settings.number, tokens=words, shown=SHOWN, scale=note)
    return study.record(4, "nearest neighbours", note, cells)


def place(query: dict[str, str]) -> Query:
    """The tokens of a query's sentence, and where its word first stands. Raises `UserError` if it does not."""
    if not isinstance(query, dict) or set(query) != {"word", "sentence"}:
        raise UserError("queries: each is {word: WORD, sentence: 'TOKEN TOKEN ...'}")
    word, sentence = str(query["word"]), str(query["sentence"]).split()
    if word not in sentence:
        raise UserError(f"word={word}: not in the sentence; its words are {' '.join(sentence) or 'none'}")
    return Query(sentence, sentence.index(word))


def _cells(corpus: Sequence[list[str]], query: Query, found: list[list[Neighbour]]) -> Iterator[StudyCell]:
    asked = _around(*query, AROUND)
    for layer, near in enumerate(found):
        words = [corpus[one.sentence][one.token] for one in near]
        if near:
            yield StudyCell(asked, "cosine, nearest", near[0].cosine, layer)
            yield StudyCell(asked, "cosine, last", near[-1].cosine, layer)
        same = sum(word.lower() == query.word.lower() for word in words)
        yield StudyCell(asked, "same word", same, layer, n=len(near))
        shown = [_around(corpus[one.sentence], one.token, AROUND if layer else 0) for one in near[:SHOWN]]
        yield StudyCell(asked, "neighbours", 0, layer, text=" / ".join(shown))


def _around(sentence: Sequence[str], token: int, width: int) -> str:
    """A word in brackets with the words around it; alone, without brackets, if none are wanted."""
    if not width:
        return sentence[token]
    before, after = sentence[max(0, token - width) : token], sentence[token + 1 : token + 1 + width]
    return " ".join([*before, f"[{sentence[token]}]", *after])
