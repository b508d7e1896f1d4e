"""Annotated sentences in the column formats of the real data sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from elmo_bench.mini.language.phrases import Sentence
from elmo_bench.mini.stories import Document
from elmo_bench.text.brackets import write_mentions, write_spans
from elmo_bench.text.tags import Span, encode


def iob2(sentences: Iterable[Sentence]) -> str:
    """Word and IOB2 tag, tab-separated; a blank line after every sentence."""
    lines: list[str] = []
    for sentence in sentences:
        tags = encode(sentence.entities, len(sentence.words), "iob2")
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
            columns.append(write_spans([*proposition.arguments, verb], size))
        parse = ["(TOP*", *["*"] * (size - 2), "*)"] if size > 1 else ["(TOP*)"]
        for i in range(size):
            row = [name, "0", str(i), sentence.words[i], sentence.tags[i], parse[i], lemmas[i], rolesets[i]]
            lines.append("\t".join([*row, "-", "-", "*", *(column[i] for column in columns), "-"]))
        lines.append("")
    return "\n".join([*lines, "#end document"]) + "\n"


def coref(document: Document) -> str:
    """CoNLL-2012 columns, tab-separated: document, part, number, word, XX, five times -, *, clusters."""
    sizes = Counter(span.type for sentence in document.sentences for span in sentence.mentions)
    ids: dict[str, int] = {}
    lines = [f"#begin document ({document.name}); part 000"]
    for sentence in document.sentences:
        mentions = [span for span in sentence.mentions if sizes[span.type] > 1]
        numbered = [span._replace(type=str(ids.setdefault(span.type, len(ids)))) for span in mentions]
        cells = write_mentions(numbered, len(sentence.words))
        for i, word in enumerate(sentence.words):
            row = [document.name, "0", str(i), word, "XX", *"-----", "*", cells[i]]
            lines.append("\t".join(row))
        lines.append("")
    return "\n".join([*lines, "#end document"]) + "\n"
