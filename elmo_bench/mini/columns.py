"""Annotated sentences in the column formats of the real data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from elmo_bench.mini.language.phrases import Sentence, Span
from elmo_bench.mini.stories import Document


def iob2(sentences: Iterable[Sentence]) -> str:
    """Word and IOB2 tag, tab-separated; a blank line after every sentence."""
    lines: list[str] = []
    for sentence in sentences:
        tags = ["O"] * len(sentence.words)
        for span in sentence.entities:
            tags[span.start : span.end] = [f"I-{span.label}"] * (span.end - span.start)
            tags[span.start] = f"B-{span.label}"
        lines += [f"{word}\t{tag}" for word, tag in zip(sentence.words, tags, strict=True)]
        lines.append("")
    return "\n".join(lines) + "\n"


def srl(name: str, sentences: Sequence[Sentence]) -> str:
    """CoNLL-2012 columns, tab-separated.

    Document, part, number, word, part of speech, parse bit, predicate lemma, roleset, -, -, *, then a column of
    arguments for every predicate, -.
    """
    lines = [f"#begin document ({name}); part 000"]
    for sentence in sentences:
        size = len(sentence.words)
        lemmas, rolesets = ["-"] * size, ["-"] * size
        columns = []
        for proposition in sentence.propositions:
            lemmas[proposition.index], rolesets[proposition.index] = proposition.lemma, proposition.number
            verb = Span("V", proposition.index, proposition.index + 1)
            columns.append(_brackets([*proposition.arguments, verb], size))
        parse = ["(TOP*", *["*"] * (size - 2), "*)"] if size > 1 else ["(TOP*)"]
        for i in range(size):
            row = [name, "0", str(i), sentence.words[i], sentence.tags[i], parse[i], lemmas[i], rolesets[i]]
            lines.append("\t".join([*row, "-", "-", "*", *(column[i] for column in columns), "-"]))
        lines.append("")
    return "\n".join([*lines, "#end document"]) + "\n"


def _brackets(spans: Sequence[Span], size: int) -> list[str]:
    """(ARG0* ... *) over the words; spans of one predicate do not overlap."""
    opening, closing = [""] * size, [""] * size
    for span in spans:
        opening[span.start] += f"({span.label}"
        closing[span.end - 1] += ")"
    return [f"{first}*{last}" for first, last in zip(opening, closing, strict=True)]


def coref(document: Document) -> str:
    """CoNLL-2012 columns, tab-separated: document, part, number, word, XX, four times -, speaker, *, clusters."""
    sizes = Counter(span.label for sentence in document.sentences for span in sentence.mentions)
    ids: dict[str, int] = {}
    lines = [f"#begin document ({document.name}); part 000"]
    for sentence in document.sentences:
        cells: list[list[str]] = [[] for _ in sentence.words]
        mentions = [span for span in sentence.mentions if sizes[span.label] > 1]
        for span in mentions:  # outer mentions first
            number = ids.setdefault(span.label, len(ids))
            cells[span.start].append(f"({number})" if span.end == span.start + 1 else f"({number}")
        for span in reversed(mentions):  # inner mentions first
            if span.end > span.start + 1:
                cells[span.end - 1].append(f"{ids[span.label]})")
        speaker = sentence.speaker or "-"
        for i, word in enumerate(sentence.words):
            row = [document.name, "0", str(i), word, "XX", "-", "-", "-", "-", speaker, "*", "|".join(cells[i]) or "-"]
            lines.append("\t".join(row))
        lines.append("")
    return "\n".join([*lines, "#end document"]) + "\n"
