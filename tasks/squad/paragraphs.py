"""Reads and checks paragraphs with questions, from SQuAD v1.1 files or the hub; draws subsets of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, count, repeat
from pathlib import Path
from typing import Any, NamedTuple

from elmo_bench.configuration.keys import shape, valid
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import ending, read_text
from elmo_bench.system.storage.json_text import begins_array, parse
from elmo_bench.system.storage.json_text import read as read_json
from elmo_bench.text.source import Table
from elmo_bench.text.tokenizer import has_words

SLACK = 2  # characters between an answer and its `answer_start`, at most


class AnswerSpan(NamedTuple):
    """A part of the context: `context[start : start + len(text)] == text`, if all white space is equal."""

    text: str
    start: int


class Question(NamedTuple):
    """A question with all its gold answers; without any if the file has no answers."""

    id: str
    text: str
    answers: list[AnswerSpan]


class Paragraph(NamedTuple):
    """A context and the questions about it."""

    title: str  # of its article
    context: str
    questions: list[Question]


def is_release(path: Path) -> bool:
    """Whether a file has the release's layout and is not a table: a `.json` that is not an array of objects."""
    return ending(path) == ".json" and not begins_array(read_text(path, line=True))


def read(opened: Table | Path, answered: bool = True) -> list[Paragraph]:
    """The paragraphs of a SQuAD v1.1 file, plain, .gz or .xz, or of a table, in their order, after `check`."""
    if isinstance(opened, Path):
        return check(_of_release(opened), opened, answered)
    return check(_of_table(opened, answered), opened.path or opened.origin, answered)


def check(paragraphs: Iterable[Paragraph], path: Any, answered: bool = True) -> list[Paragraph]:
    """The paragraphs, with every answer at its position in the context.

    An empty context, question or answer, a repeated id, an answer not found near its start and, if `answered`, a
    question without an answer are errors.
    """
    seen: set[str] = set()
    kept = []
    for number, paragraph in enumerate(paragraphs, start=1):
        if not has_words(paragraph.context):
            ids = ", ".join(question.id for question in paragraph.questions[:3])
            about = f"question {ids}: " if ids else f"paragraph {number} ({paragraph.title}): "
            raise UserError(f"{about}the context is empty", path)
        questions = [_checked(question, paragraph.context, path, answered) for question in paragraph.questions]
        for question in questions:
            if question.id in seen:
                raise UserError(f"question {question.id}: the id occurs twice", path)
            seen.add(question.id)
        kept.append(paragraph._replace(questions=questions))
    if not seen:
        raise UserError("contains no question", path)
    return kept


def _checked(question: Question, context: str, path: Any, answered: bool) -> Question:
    where = f"question {question.id}:"
    if not has_words(question.text):
        raise UserError(f"{where} the question is empty", path)
    if answered and not question.answers:
        raise UserError(f"{where} no answer; v2.0 of SQuAD has such questions, v1.1 has none", path)
    answers = []
    for text, start in question.answers:
        if not has_words(text):
            raise UserError(f"{where} an answer is empty", path)
        answer = placed(AnswerSpan(text, start), context)
        if answer is None:
            place = context.find(text)
            hint = "nowhere" if place < 0 else f"at {place}"
            raise UserError(f"{where} the answer {text!r} is not in its context at {start} (found {hint})", path)
        answers.append(answer)
    return question._replace(answers=answers)


def placed(answer: AnswerSpan, context: str) -> AnswerSpan | None:
    """The answer as found in the context, at most SLACK characters away from its `start`; None if it is not there.

    All white space is equal, and spaces at either end of the answer may be missing in the context.
    """
    text, start = answer
    if start >= 0 and context.startswith(text, start):
        return answer
    near = range(max(start - SLACK, 0), start + SLACK + 1)
    for form in (text, text.strip()):
        places = [i for i in near if _plain(context[i : i + len(form)]) == _plain(form)]
        if places:
            return AnswerSpan(form, min(places, key=lambda place: abs(place - start)))
    return None


def _plain(text: str) -> str:
    """The text with a space for every character that is white space."""
    return "".join(" " if char.isspace() else char for char in text)


# The layout of the files.
QUESTION = shape(id=str | int, question=str, answers=(list[shape(text=str, answer_start=int)], []))
RELEASE = shape(data=list[shape(title=(Any, ""), paragraphs=list[shape(context=str, qas=list[dict])])])


def _of_release(path: Path) -> Iterator[Paragraph]:
    content = read_json(path)
    try:
        for article in valid(RELEASE, content).data:
            for paragraph in article.paragraphs:
                found = [valid(QUESTION, qa, f"question {qa.get('id')}") for qa in paragraph.qas]
                spans = [[AnswerSpan(each.text, each.answer_start) for each in qa.answers] for qa in found]
                questions = [Question(str(qa.id), qa.question, each) for qa, each in zip(found, spans, strict=True)]
                yield Paragraph(str(article.title), paragraph.context, questions)
    except UserError as error:
        raise UserError(f"{error.message}; is it a SQuAD v1.1 file?", path) from None


def _of_table(table: Table, answered: bool) -> Iterable[Paragraph]:
    """Paragraphs of a table, one question per row; rows with the same title and context are merged.

    If not `answered`, answers are ignored, and each row is a paragraph. Columns id and title may be missing.
    """
    table.require("context", "question", *["answers"] * answered)
    paragraphs: dict[tuple[Any, ...], Paragraph] = {}
    known, none = table.rows.column_names, [None] * len(table.rows)
    ids, titles = (table.rows[name] if name in known else none for name in ("id", "title"))
    spans = answers_of(table) if answered else repeat([])
    columns = numbered(ids), titles, table.texts("context"), table.texts("question"), spans
    for row, (id, title, context, question, found) in enumerate(zip(*columns, strict=False)):
        paragraph = Paragraph("" if title is None else str(title), context, [])
        key = (*paragraph[:2], None if answered else row)
        paragraphs.setdefault(key, paragraph).questions.append(Question(id, question, found))
    return paragraphs.values()


def answers_of(table: Table) -> Iterator[list[AnswerSpan]]:
    """The answers of each row: {"text": [...], "answer_start": [...]}, in CSV as JSON."""
    for row, cell in enumerate(table.cells("answers")):
        try:
            cell = parse(cell) if isinstance(cell, str) else cell
            spans = [AnswerSpan(*each) for each in zip(cell["text"], cell["answer_start"], strict=True)]
        except (KeyError, TypeError, ValueError):
            raise table.fault(row, 'answers is not {"text": [...], "answer_start": [...]}') from None
        if not all(isinstance(text, str) and type(start) is int for text, start in spans):
            raise table.fault(row, "an answer is not text with a whole number as its start")
        yield spans


def numbered(ids: Iterable[Any]) -> list[str]:
    """The ids as text; an empty id becomes a number different from all others."""
    known = ["" if id is None else str(id) for id in ids]
    given = {*known}
    numbers = (number for number in map(str, count(1)) if number not in given)
    return [id or next(numbers) for id in known]


def chosen(paragraphs: Sequence[Paragraph], questions: int, draw: int) -> list[Paragraph]:
    """Paragraphs drawn at random until they have `questions` questions, in their original order, or all paragraphs."""
    order = random.Random(f"paragraphs {draw}").sample(range(len(paragraphs)), len(paragraphs))
    before = accumulate((len(paragraphs[i].questions) for i in order), initial=0)
    return [paragraphs[i] for i in sorted(i for i, number in zip(order, before, strict=False) if number < questions)]


def parted(paragraphs: Sequence[Paragraph], questions: int, draw: int) -> tuple[list[Paragraph], list[Paragraph]]:
    """Training and development paragraphs; for development, articles are drawn until they have `questions` questions.

    It is an error if nothing would be held out, or nothing left for training.
    """
    titles, asked = sorted({paragraph.title for paragraph in paragraphs}), Counter[str]()
    for paragraph in paragraphs:
        asked[paragraph.title] += len(paragraph.questions)
    random.Random(f"articles {draw}").shuffle(titles)
    before = accumulate((asked[title] for title in titles), initial=0)
    held = {title for title, number in zip(titles, before, strict=False) if number < questions}
    if not held or len(held) == len(titles):
        raise UserError(
            f"{questions} of the questions about {len(titles)} articles cannot be held out: set task.data.dev "
            "or task.reader.held_out"
        )
    return [p for p in paragraphs if p.title not in held], [p for p in paragraphs if p.title in held]
