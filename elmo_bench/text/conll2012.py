"""The CoNLL-2012 format (OntoNotes): documents with predicates, their arguments, coreference and speakers, as a stream.

One token per line, an empty line after each sentence, `#begin document (NAME); part 000` and `#end document` around
each part of a document; without these lines, the first two columns identify the parts. Columns, separated by tabs
or spaces: document, part, number, word, part of speech, parse bit, predicate lemma, frame, word sense, speaker, named
entities, arguments (one column for each predicate of the sentence, so sentences differ in width), coreference. An empty
cell is written `-`; in the last column it may be left empty, but the column itself is needed.

Training, `score` and `predict` read files here, and `predict` writes them here.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage.files import below, distinct, ending, numbered_lines
from elmo_bench.text import brackets
from elmo_bench.text.columns import Block, read_blocks, write_rows
from elmo_bench.text.source import TABLES
from elmo_bench.text.tags import Span

DOCUMENT, PART, NUMBER, WORD, POS, PARSE, LEMMA, FRAME, SENSE, SPEAKER, NAMES, ARGUMENTS = range(12)
WIDTH = 12  # columns of a sentence without predicates, including coreference
ENDINGS = ("_gold_conll", ".gold_conll", ".conll")  # of the files to search for in a folder
CONLL = tuple(ending + packed for ending in ENDINGS for packed in ("", ".gz", ".xz"))
_BEGIN = re.compile(r"#\s*begin[\s_]+document:?\s+\(?(.*?)\)?(?:;\s*part\s+(\S+))?", re.IGNORECASE)
_BEGINS, _ENDS, _DOCUMENT = (
    re.compile(rf"#\s*{word}", re.IGNORECASE) for word in ("begin(?![a-z])", "end(?![a-z])", ".*doc")
)
OUTSIDE = "a sentence outside any document"
EXPECTED = "'#begin document (NAME); part 000'"
SKELETON = "[WORD]"  # in place of words, when OntoNotes is distributed without its texts
MISSING = 0.25  # a document is refused if this share of its words is missing


class Predicate(NamedTuple):
    """A predicate and its arguments."""

    index: int  # its row in the sentence, from 0
    lemma: str
    frame: str  # of the lemma, such as "01"; "-" if the file gives none
    arguments: list[Span]  # by start, outer spans first; labels as in the file (ARG0, C-ARG1, R-ARG0, V)


class ConllSentence(Block):
    """One sentence; its bracket columns are parsed on demand, so faults in unused columns do no harm."""

    __slots__ = ()

    @property
    def words(self) -> list[str]:
        return self.column(WORD)

    @property
    def pos(self) -> list[str]:
        return self.column(POS)

    @property
    def speakers(self) -> list[str]:
        """The speaker of every word; "-" if unknown."""
        return self.column(SPEAKER)

    def predicates(self) -> list[Predicate]:
        """The predicates, by row. A word with a frame but no column is not annotated, and so no predicate."""
        columns, words = self.argument_columns(), self.words
        lemmas, frames = self.column(LEMMA), self.column(FRAME)
        arguments = [self._read(column, brackets.spans) for column in columns]
        verbs = [{span.start for span in spans if span.type == "V"} for spans in arguments]
        of_any = set[int]().union(*verbs)
        # A lemma without a frame marks a word with a known sense, or a predicate in a file without frames.
        rows = [i for i, frame in enumerate(frames) if frame != "-"]
        rows = rows or [i for i, lemma in enumerate(lemmas) if lemma != "-" and columns]
        if len(rows) > len(columns) == len(of_any):
            rows = [i for i in rows if i in of_any]
        if len(rows) != len(columns):
            lost = next((i for i in rows if i not in of_any), None) if len(columns) < len(rows) else None
            message = "" if lost is None else f"the predicate {words[lost]!r} has no column of arguments: "
            message += f"the sentence has {len(rows)} predicates but {len(columns)} columns of arguments"
            raise UserError(f"{message}; correct the file", self.path, self.lines[lost or 0])
        for i, own in zip(rows, verbs, strict=True):
            if own and i not in own and own & {*rows}:
                message = f"the column of the predicate {words[i]!r} has its V at {words[min(own)]!r}"
                order = "columns of arguments must be in the order of the predicates"
                raise UserError(f"{message}: {order}; correct the file", self.path, self.lines[i])
        return [Predicate(i, lemmas[i], frames[i], spans) for i, spans in zip(rows, arguments, strict=True)]

    def argument_columns(self) -> list[list[str]]:
        """One column for each predicate; the last column, coreference, must not be one of them."""
        for cell, line in zip(self.column(-1), self.lines, strict=True):
            if "(V*" in cell:
                message = "the last column has arguments, so the coreference column is missing"
                raise UserError(f"{message}; add it, with - in every row", self.path, line)
        return [self.column(i) for i in range(ARGUMENTS, len(self.rows[0]) - 1)]

    def marked(self, column: int) -> list[Predicate]:
        """The words for which a column has an entry, as predicates without arguments."""
        named = zip(self.column(LEMMA), self.column(FRAME), self.column(column), strict=True)
        return [Predicate(i, lemma, frame, []) for i, (lemma, frame, mark) in enumerate(named) if mark != "-"]

    def mentions(self) -> list[Span]:
        """The mentions of entities, by start, outer mentions first; a span's type is its cluster."""
        return self._read(self.column(-1), lambda column: brackets.distinct(brackets.mentions(column)))

    def _read(self, column: list[str], read: Callable[[Sequence[str]], list[Span]]) -> list[Span]:
        try:
            return read(column)
        except brackets.BracketError as error:
            raise UserError(f"{error}; correct the file", self.path, self.lines[error.index]) from None


class Document(NamedTuple):
    """One part of a document; clusters never go beyond a part."""

    name: str
    part: str  # as in the file: "000"
    sentences: list[ConllSentence]
    path: Path
    line: int  # its first line

    @property
    def key(self) -> tuple[str, str]:
        """Identifies a part: the name of its document, and its number without leading zeros."""
        return self.name, self.part.lstrip("0") if re.fullmatch("[0-9]+", self.part) else self.part

    @property
    def genre(self) -> str:
        """The first folder of its name ("bc/cctv/00/cctv_0001" -> "bc"); "-" for a name without folders."""
        first, slash, _ = self.name.partition("/")
        return first if slash else "-"

    def clusters(self) -> list[list[list[int]]]:
        """The mentions of each cluster in text order, as [first word, last word] counted over the document."""
        clusters: dict[str, list[list[int]]] = {}
        before = 0  # words of the sentences so far
        for sentence in self.sentences:
            for cluster, start, end in sentence.mentions():
                clusters.setdefault(cluster, []).append([before + start, before + end - 1])
            before += len(sentence.rows)
        return list(clusters.values())


def read_documents(paths: StrPath | Iterable[Path], strict: bool = True) -> Iterator[Document]:
    """The documents of one or more files, one after another; only one is in memory at a time.

    Args:
        paths: a file, plain, `.gz` or `.xz`; or several, as from `find_files`.
        strict: refuse rows with too few columns, or of another width than the other rows of their sentence. Otherwise,
            as in the reference scorer of coreference, only the last column and the document marks matter.
    """
    seen: dict[tuple[str, str], str] = {}
    for path in [Path(paths)] if isinstance(paths, str | PathLike) else paths:
        for document in _read_file(path, strict):
            where = f"{document.path}:{document.line}"
            if (first := seen.setdefault(document.key, where)) != where:
                first = first.replace(f"{document.path}:", "line ")
                message = f"part {document.part} of document {document.name} occurs again; the first begins at {first}"
                message += f"; a document is part 0 if its line is not as in {EXPECTED}" if document.part == "0" else ""
                raise UserError(message, document.path, document.line)
            words = [row[WORD] for sentence in document.sentences for row in sentence.rows if len(row) >= WIDTH]
            missing = words.count(SKELETON)
            if missing and missing >= MISSING * len(words):
                message = f"{missing} of {len(words)} words are missing, replaced by {SKELETON}"
                remedy = "insert the words of OntoNotes (skeleton2conll.sh)"
                raise UserError(f"{message}; {remedy}", document.path, document.line)
            yield document


def _read_file(path: Path, strict: bool) -> Iterator[Document]:
    document, marked, unknown = None, False, 0
    widths: Any = "sentence" if strict else "any"
    for block in read_blocks(path, comment="#", apart=True, widths=widths, minimum=WIDTH, last="-"):
        line = block.lines[0]
        if block.rows:
            if document is None and marked:
                raise UserError(f"{OUTSIDE}; expected {EXPECTED}", path, line)
            if not marked:
                row = block.rows[0]
                if unknown or len(row) < WIDTH:
                    raise UserError(f"{OUTSIDE}; expected {EXPECTED}", path, unknown or line)
                name, part = row[DOCUMENT], row[PART]
                if document is not None and (name, part) != document[:2]:
                    yield document
                    document = None
                document = document or Document(name, part, [], path, line)
            assert document is not None
            if strict:
                _check_numbers(block)
            document.sentences.append(ConllSentence(*block))
        elif _BEGINS.match(block.comments[0]):
            if document is not None:
                raise UserError(f"a document begins before the one at line {document.line} ends", path, line)
            match = _BEGIN.fullmatch(block.comments[0].rstrip())
            if match is None:
                raise UserError(f"expected {EXPECTED}", path, line)
            document, marked = Document(match[1], match[2] or "0", [], path, line), True
        elif _ENDS.match(block.comments[0]):
            if document is None or not marked:
                raise UserError("'#end document' without its '#begin document'", path, line)
            yield document
            document = None
        elif not unknown and _DOCUMENT.match(block.comments[0]):
            unknown = line
    if document is not None:
        if marked:
            raise UserError("this document has no '#end document'; is the file cut off?", path, document.line)
        yield document


def _check_numbers(block: Block) -> None:
    """Refuses a sentence whose words are numbered from 0 more than once. Other numbers are ignored."""
    numbers = block.column(NUMBER)
    again = numbers.index("0", 1) if "0" in numbers[1:] else 0
    if again > 1 and numbers[:again] == [str(i) for i in range(again)]:
        message = "the words are numbered from 0 again: an empty line is missing between sentences"
        raise UserError(message, block.path, block.lines[again])


def read_split(data: Mapping[str, Any], split: str) -> Iterator[Document]:
    """The documents that `data` names for a split, below its `folder` if it has one; see `find_files`."""
    if data.get(split) is None:
        raise UserError(f"no file is named for {split}: set task.data.{split}")
    if "folder" in data and data["folder"] is None:
        raise UserError("set task.data.folder to the folder of the CoNLL-2012 files (conll-2012/v4/data)")
    paths = find_files(data[split], data.get("folder"))
    for path in paths:
        if ending(path) in TABLES:
            raise UserError("this task reads CoNLL-2012 columns, not tables; see docs/data.md", path)
    return read_documents(paths)


def write_sentence(
    document: str, part: str, columns: Mapping[int, Sequence[str]], arguments: Sequence[Sequence[str]] = ()
) -> str:
    """The lines of a sentence and the empty line after it; the inverse of reading it.

    Args:
        document, part: the first two columns.
        columns: the known columns, by their number (WORD, POS, ...); -1 is coreference.
        arguments: a column for each predicate.
    """
    rows = []
    for i in range(len(columns[WORD])):
        known = {NUMBER: str(i), NAMES: "*", **{number: column[i] for number, column in columns.items()}}
        cells = [document, part, *(known.get(number, "-") for number in range(NUMBER, ARGUMENTS))]
        rows.append([*cells, *(column[i] for column in arguments), known.get(-1, "-")])
    return write_rows(rows, "\t")


def begin(document: str, part: str) -> str:
    """The line that begins a part of a document."""
    return f"#begin document ({document}); part {part}\n"


END = "#end document\n"
# First line of predictions: which annotations of the gold file the model does not predict. Official scorers skip it.
ONLY_VERBS, NO_SINGLETONS = "# only verbs are predicates\n", "# no clusters of one mention\n"


def find_files(source: StrPath | Iterable[str], folder: StrPath | None = None) -> list[Path]:
    """The files that `source` names; those of a folder in the order of their names, those of a list in its order.

    Args:
        source: a file; a folder, searched with all its subfolders, also linked ones, for names that end in
            `_gold_conll` or `.conll`, optionally followed by `.gz` or `.xz`; a list (`.txt`, `.list`, `.id`) with the
            name of a file, a folder or a document on each line, as the CoNLL-2012 splits are distributed, unless it
            begins as a file of columns; or several of these.
        folder: the base of relative paths, also of those in a list; by default a list's own folder.
    """
    if not isinstance(source, str | PathLike):
        return distinct([path for each in source for path in find_files(each, folder)])
    path = Path(os.path.expanduser(Path(folder or "", source)))
    if path.is_dir():
        files = [file for file in below(path) if file.name.endswith(CONLL)]
        if not files:
            endings = " or ".join(ENDINGS)
            raise UserError(f"no file below this folder ends in {endings} (optionally with .gz or .xz)", path)
        return distinct(files)
    if path.suffix in (".txt", ".list", ".id") and path.is_file():
        _, first = next(numbered_lines(path), (0, ""))
        if not first:
            raise UserError("the list of files is empty", path)
        if not _BEGINS.match(first) and len(first.split()) < WIDTH:
            return distinct([*_listed(path, Path(os.path.expanduser(folder)) if folder else path.parent)])
    return [path]


def _listed(path: Path, folder: Path) -> Iterator[Path]:
    """The files named by a list: each line names a file, a folder, or a document, in any version."""
    for number, line in numbered_lines(path):
        name = line.strip()
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            raise UserError(f"{name} leads out of {folder}; name a path below it", path, number)
        place = folder / name
        if os.path.exists(place):
            yield from find_files(place) if place.is_dir() else [place]
            continue
        beside = place.parent.iterdir() if os.path.isdir(place.parent) else ()
        prefixes = f"{place.name}.", f"{place.name}_"
        files = sorted(file for file in beside if file.name.startswith(prefixes) and file.name.endswith(CONLL))
        if not files:
            raise UserError(f"{name}: no such file, folder or document in {folder}", path, number)
        yield from files
