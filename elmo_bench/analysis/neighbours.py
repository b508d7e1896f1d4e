"""The paper's Table 4."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_bench.system.errors import UserError

if TYPE_CHECKING:  # `--help` does not import them
    from elmo_bench.analysis.neighbour_index import Index, Neighbour
    from elmo_bench.analysis.settings import NeighboursConfig
    from elmo_bench.analysis.study import Study

HEADER = ["word", "layer", "cosine", "same word", "neighbours"]
NOTE = (
    "The {number} nearest words by cosine among {tokens} words of text, in each layer, without those of the sentence "
    "itself. Layer 0 knows no context: its neighbours are words. Cosine: of the first and of the last neighbour. "
    "Same word: how many of the neighbours are the same word. Shown: the first {shown}, each in [ ] with the words "
    "around it. {scale}"
)
SHOWN, AROUND = 4, 3  # neighbours in a cell, and words on each side of one


def corpus(settings: NeighboursConfig) -> list[list[str]]:
    """The sentences of the text, up to `settings.tokens` tokens. Raises `UserError` if it has none."""
    if settings.text is None:
        raise UserError("no text: give text=FILE, and format=columns if it has a word a line")
    sentences, tokens = [], 0
    for sentence in _sentences(Path(settings.text), settings):
        tokens += len(sentence)
        if settings.tokens is not None and tokens > settings.tokens:
            break
        sentences.append(sentence)
    if not any(sentences):
        raise UserError("holds no words", settings.text)
    return sentences


def _sentences(path: Path, settings: NeighboursConfig) -> Iterator[list[str]]:
    from elmo_bench.system.storage.files import open_text
    from elmo_bench.text.columns import read_blocks

    if settings.format == "columns":
        yield from (block.column(settings.column) for block in read_blocks(path, comment="# "))
        return
    with open_text(path) as lines:
        yield from (line.split() for line in lines)


def measure(study: Study[NeighboursConfig], queries: Sequence[dict[str, str]]) -> dict[str, Any]:
    """The table: title, note, header and rows, and the neighbours of each query.

    Raises:
        UserError: no queries, or a word that is not in its sentence.
    """
    from elmo_bench.analysis.neighbour_index import Index

    if not isinstance(queries, list) or not queries:
        raise UserError("no queries: give word=WORD and sentence='TOKEN TOKEN ...'")
    places = [place(query) for query in queries]  # before anything is computed
    (source,) = study.open(cached=False).values()
    index = Index(source, corpus(study.settings), Path(study.run.cache_root) / "neighbours")
    rows: list[list[str]] = []
    measured = []
    for sentence, token in places:
        vectors = source.layers([sentence])[0, :, token].detach().cpu()  # (L, W)
        started = time.perf_counter()
        found = index.search(vectors, sentence, token, study.settings.number)
        seconds = time.perf_counter() - started
        rows += _rows(index, sentence, token, found)
        measured.append({"sentence": sentence, "token": token, "seconds": round(seconds, 4), "neighbours": found})
    name, scale = study.run.bilm.name, study.run.scale
    note = NOTE.format(number=study.settings.number, tokens=index.tokens, shown=SHOWN, scale=scale.note)
    title = f"Table 4: nearest neighbours, scale {scale.name}, biLM {name}"
    return {"title": title, "note": note.strip(), "header": HEADER, "rows": rows, "measured": measured}


def place(query: dict[str, str]) -> tuple[list[str], int]:
    """The tokens of a query's sentence, and where its word first stands. Raises `UserError` if it does not."""
    if not isinstance(query, dict) or set(query) != {"word", "sentence"}:
        raise UserError("queries: each is {word: WORD, sentence: 'TOKEN TOKEN ...'}")
    word, sentence = str(query["word"]), str(query["sentence"]).split()
    if word not in sentence:
        raise UserError(f"word={word}: not in the sentence; its words are {' '.join(sentence) or 'none'}")
    return sentence, sentence.index(word)


def _rows(index: Index, sentence: list[str], token: int, found: list[list[Neighbour]]) -> list[list[str]]:
    rows = []
    for layer, near in enumerate(found):
        words = [index.sentences[one.sentence][one.token] for one in near]
        cosines = f"{near[0].cosine:.2f} to {near[-1].cosine:.2f}" if near else ""
        shown = [_around(index.sentences[one.sentence], one.token, AROUND if layer else 0) for one in near[:SHOWN]]
        same = sum(word.lower() == sentence[token].lower() for word in words)
        cells = str(layer), cosines, f"{same} of {len(near)}", " / ".join(shown)
        rows.append([_around(sentence, token, AROUND), *cells])
    return rows


def _around(sentence: Sequence[str], token: int, width: int) -> str:
    """A word in brackets with the words around it; alone, without brackets, if none are wanted."""
    if not width:
        return sentence[token]
    before, after = sentence[max(0, token - width) : token], sentence[token + 1 : token + 1 + width]
    return " ".join([*before, f"[{sentence[token]}]", *after])
