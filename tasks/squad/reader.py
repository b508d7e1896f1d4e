"""Reads SQuAD v1.1 from files or the hub, tokenizes it, maps answers to spans of words, and makes batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from elmo_bench.configuration.keys import valid
from elmo_bench.system.errors import UserError, notice
from elmo_bench.system.storage import json_text
from elmo_bench.task import Batch, Row
from elmo_bench.text import tokenizer
from elmo_bench.text.batching import TextReader
from elmo_bench.text.part import WHOLE, Part
from elmo_bench.text.source import SPLITS, DataSource, mapped, with_inputs
from elmo_bench.text.tokenizer import TextWord, has_words
from elmo_bench.text.vocabulary import Vocabulary

from .paragraphs import Paragraph, chosen, is_release, numbered, parted, read

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, Features

HUB_SPLITS = {"train": "train", "test": "validation"}


class Context(NamedTuple):
    """The words of a paragraph and the lengths of its sentences."""

    words: list[TextWord]
    sentences: list[int]  # number of words in each
    apart: bool  # as `tokenizer.words` takes it


@dataclass(eq=False)
class SquadReader(TextReader):
    """A row is a question: {"id", "title", "question": [word], "context": [[word]], "starts": [int], "ends": [int],
    "text", "answers", "span"}.

    `title` is the article's. `context` is the paragraph as a list of sentences, as the biLM reads it; `starts` and,
    unless `apart`, `ends` give the characters of `text` at which each word begins and ends; `span` the first and last
    word of the first answer; `answers` the texts of all answers.

    Without a file for dev, the development set consists of whole articles drawn from the training set.

    Args:
        data: the files {train, dev, test} below {folder} if given, or without train {hub, revision}.
        sequence: the unit that the biLM reads: a "sentence", or the whole "paragraph" as in the paper.
        train_questions: draw whole paragraphs at random, from all articles, until they have this many questions, and
            train on those. None: train on all.
        held_out: minimum number of questions in a development set drawn from the training set.
        train_words: limit on a training context; whole sentences are left out, but never those of the answer.
        draw: the seed of both draws; the same for all runs.
        lower: look words up in lower case.
        min_count: minimum count of a word in the vocabulary.
        char_min_count: the same for characters.
        char_limit: longer words are cut to this many characters.
        apart: also split the data set's texts at apostrophes and accents inside words, as in all runs so far; see
            `tokenizer.words`. Never applies to `predict`.
        window: `predict` splits a longer context into windows of whole sentences with at most this many words, and
            returns the most confident answer.

    Attributes:
        off_borders: by split, the ids of questions whose answer begins or ends inside a word; the model learns the
            words that cover it.
    """

    fields = ("question", "context")
    json_keys, official_ending, keys = frozenset({"data"}), ".json", ()

    data: Mapping[str, Any]
    sequence: str = "sentence"
    train_questions: int | None = None
    held_out: int = 0
    train_words: int | None = None
    draw: int = 1
    lower: bool = False
    min_count: int = 1
    char_min_count: int = 1
    char_limit: int = 14
    apart: bool = True
    window: int = 1000

    def __post_init__(self):
        valid(Literal["sentence", "paragraph"], self.sequence, "task.reader.sequence")
        self.source = DataSource(self.data, "task.data.train=FILE and test=FILE", native=is_release)
        self.off_borders: dict[str, list[str]] = {}

    # Reading.

    def load(self, part: Part = WHOLE) -> DatasetDict:
        """Reads all splits, makes the vocabularies, and prints the number of answers that begin or end inside a word.

        A part of the training data is drawn from its paragraphs (after `train_questions`), each with all its
        questions, which share its words.
        """
        paragraphs = self._paragraphs()
        if self.train_questions is not None:
            paragraphs["train"] = chosen(paragraphs["train"], self.train_questions, self.draw)
        paragraphs["train"] = part.of(paragraphs["train"], "paragraphs", lambda paragraph: len(paragraph.questions))
        words: Counter[str] = Counter()
        splits = {split: self._split(paragraphs.pop(split), split, words) for split in ("train", "dev", "test")}
        self.vocabularies = Vocabulary.of_words(words, self.min_count, self.char_min_count, self.lower)
        from datasets import DatasetDict

        return DatasetDict(splits)  # type: ignore[arg-type]

    def _paragraphs(self) -> dict[str, list[Paragraph]]:
        data = self.source.data
        named = {split: theirs for split, theirs in SPLITS.items() if split != "dev" or data.get("dev")}
        opened = self.source.load(HUB_SPLITS if self.source.from_hub else named)
        if self.source.from_hub and data.get("dev"):
            opened["dev"] = self.source.path("dev")
        paragraphs = {split: read(each) for split, each in opened.items()}
        if "dev" not in paragraphs:
            paragraphs["train"], paragraphs["dev"] = parted(paragraphs["train"], self.held_out, self.draw)
        return paragraphs

    def _split(self, paragraphs: Sequence[Paragraph], split: str, words: Counter[str]) -> Dataset:
        """The table of a split; `words` counts the words of training."""
        rows = self._rows(paragraphs, split)
        dataset = mapped(counted(rows, words) if split == "train" else rows, _features(ends=not self.apart))
        off = self.off_borders[split]
        example = f", e.g. of question {off[0]}" if off else ""
        notice(
            f"squad {split}: {len(dataset)} questions about {len(paragraphs)} paragraphs; {len(off)} answers "
            f"({100 * len(off) / max(len(dataset), 1):.1f} %) begin or end inside a word{example}",
        )
        return dataset

    def _rows(self, paragraphs: Sequence[Paragraph], split: str) -> Iterator[Row]:
        limit = self.train_words if split == "train" else None
        off = self.off_borders[split] = []
        for paragraph in paragraphs:
            context = self._context(paragraph.context, self.apart)
            for question in paragraph.questions:
                words = [word.form for word in tokenizer.words(question.text, self.apart)]
                text, start = question.answers[0]
                *span, whole = tokenizer.covering(context.words, start, start + len(text))
                if not whole:
                    off.append(question.id)
                row = {"id": question.id, "question": words, "answers": [answer.text for answer in question.answers]}
                row |= {"text": paragraph.context, "title": paragraph.title}
                yield row | self._window(context, span, limit)

    def _context(self, text: str, apart: bool) -> Context:
        words = tokenizer.words(text, apart)
        return Context(words, tokenizer.sentence_lengths(words), apart)

    def _window(self, context: Context, span: Sequence[int] | None, limit: int | None) -> Row:
        """The part of a context kept in a row, as sentences, with the starts of its words and the span in it."""
        lengths, first, last = context.sentences, 0, None
        if limit is not None and span is not None:
            first, last = window(lengths, span, limit)
        skipped, kept = sum(lengths[:first]), lengths[first:last]
        words = context.words[skipped : skipped + sum(kept)]
        forms = iter(words)
        pieces = [
            [word.form for word in islice(forms, length)]
            for length in (kept if self.sequence == "sentence" else [sum(kept)])
        ]
        row: Row = {"context": pieces, "starts": [word.start for word in words]}
        if not context.apart:
            row["ends"] = [word.end for word in words]
        return row | {"span": span and [span[0] - skipped, span[1] - skipped]}

    # Batches.

    def collate(self, rows: Sequence[Row]) -> Batch:
        """Text fields "question" and "context"; label "span" (B, 2) int64, first and last word, if all have one."""
        contexts = [[word for sentence in row["context"] for word in sentence] for row in rows]
        parts = [list(map(len, row["context"])) for row in rows]
        texts = {
            "question": self.text([row["question"] for row in rows]),
            "context": self.text(contexts)._replace(parts=parts),
        }
        return Batch(list(rows), texts, self.gold(rows, "span"))

    # Raw text.

    def from_text(self, /, **raw: Any) -> Row:
        """A row from {"context": "...", "question": "...", "id": "..."}; the id may be missing. Further keys are
        ignored.
        """
        for key in ("context", "question"):
            if not isinstance(raw.get(key), str):
                raise UserError('expected {"context": "a paragraph", "question": "about it"}')
            if not has_words(raw[key]):
                raise UserError(f"the {key} has no words")
        id = raw.get("id")
        return self._asked(raw["context"], raw["question"], "" if id is None else str(id), apart=False)

    def from_file(self, path: str) -> list[Row]:
        """A row without answers for every question of a file, tokenized as in training."""
        opened = self.source.open(path)
        rows = [
            self._asked(paragraph.context, question.text, question.id, self.apart)
            for paragraph in read(opened, answered=False)
            for question in paragraph.questions
        ]
        return with_inputs(rows, opened)

    def _asked(self, context: str, question: str, id: str, apart: bool) -> Row:
        words = [word.form for word in tokenizer.words(question, apart)]
        return {"id": id, "question": words, "text": context} | self._window(self._context(context, apart), None, None)

    def windows(self, row: Row) -> list[Row]:
        """The row, or several rows that divide its context by sentences, each of at most `window` words."""
        if len(row["starts"]) <= self.window:
            return [row]
        pieces = [words[i : i + self.window] for words in row["context"] for i in range(0, len(words), self.window)]
        rows: list[Row] = []
        begin, first, size = 0, 0, 0  # words before the window, its first piece, its words
        for number, length in enumerate([*map(len, pieces), self.window], start=0):
            if size + length > self.window:
                part = {key: row[key][begin : begin + size] for key in ("starts", "ends") if key in row}
                rows.append(row | part | {"context": pieces[first:number]})
                begin, first, size = begin + size, number, 0
            size += length
        return rows

    def confidence(self, prediction: Mapping[str, Any]) -> float:
        """The probability of an answer in its window."""
        return prediction["score"]

    def unanswered(self, row: Row) -> dict[str, str]:
        """An empty answer."""
        return {"answer": ""}

    def official(self, predictions: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> str:
        """The JSON object {id: answer} that the official evaluation reads; a question without an id gets a number."""
        answers: dict[str, str] = {}
        for prediction, id in zip(predictions, numbered(row["id"] for row in rows), strict=True):
            if id in answers:
                raise UserError(f'every question needs a distinct "id"; {id!r} occurs twice')
            answers[id] = prediction["answer"]
        return json_text.dumps(answers, ensure_ascii=False) + "\n"


def _features(ends: bool) -> Features:
    from datasets import Features, List, Value

    text, number = Value("string"), Value("int32")
    return Features({
        "id": text, "question": List(text), "context": List(List(text)), "starts": List(number), "span": List(number),
        "answers": List(text), "text": text, "title": text, **({"ends": List(number)} if ends else {}),
    })  # fmt: skip


def counted(rows: Iterable[Row], words: Counter[str]) -> Iterator[Row]:
    """The same rows; `words` counts the words of the questions, and of each paragraph once.

    Counted while the rows are made, because the finished table would have to be read again.
    """
    texts: set[str] = set()
    for row in rows:
        words.update(row["question"])
        if row["text"] not in texts:
            texts.add(row["text"])
            words.update(chain.from_iterable(row["context"]))
        yield row


def window(lengths: Sequence[int], span: Sequence[int], limit: int) -> tuple[int, int]:
    """The sentences [first, last) to keep so that they have at most `limit` words and all of `span`.

    Sentences are dropped from the end, and once the answer is in the last one, from the beginning. Sentences of the
    answer stay, whatever their length.
    """
    ends = list(accumulate(lengths))
    first, last = 0, len(lengths)
    while last - first > 1 and ends[last - 1] - (ends[first] - lengths[first]) > limit:
        if ends[last - 2] > span[1]:  # the last sentence comes after the answer
            last -= 1
        elif ends[first] <= span[0]:  # the first comes before it
            first += 1
        else:
            break
    return first, last
