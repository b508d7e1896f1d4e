"""Reads semantic roles from CoNLL-2012 columns: a sentence, one of its predicates, and the tags of its arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, compress, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

import torch
from pydantic import PositiveInt

from elmo_bench.configuration.keys import valid
from elmo_bench.system.errors import UserError, notice
from elmo_bench.task import Batch, Row
from elmo_bench.text import conll2012, tags
from elmo_bench.text.batching import TextReader
from elmo_bench.text.brackets import write_spans
from elmo_bench.text.columns import with_documents
from elmo_bench.text.conll2012 import END, FRAME, LEMMA, ONLY_VERBS, WORD, ConllSentence, Predicate
from elmo_bench.text.part import WHOLE, Part
from elmo_bench.text.source import FILES, SPLITS, check_keys, tables
from elmo_bench.text.tags import Span
from elmo_bench.text.tokenizer import are_words, sentence_of
from elmo_bench.text.vocabulary import Vocabulary, warn_unknown
from tasks.srl.metric import VERB

if TYPE_CHECKING:
    from datasets import DatasetDict

MOST = 0.9  # a share of known roles below this is reported
SCHEME = "iob2"
LISTED = 10  # maximum number of places in a message


@dataclass(eq=False)
class SrlReader(TextReader):
    """A row is {"tokens": [str], "predicates": [int], "tags": [[str]], "sentence": int, "document": str}.

    These are words, predicates, IOB2 tags for each predicate, the number of the sentence in its split, and the name of
    its document, unless the split is a single document. If a split has arguments inside others, "inner" has them, as
    tags of the same form.

    In a data set, each row has one predicate: a sentence gives as many rows as it has predicates. A row of raw text has
    all requested predicates. `collate` makes a line of the batch per predicate, but the biLM reads each sentence once.

    Vocabularies, all from the training split: "words" that occur at least `min_count` times; "labels", both tags of
    every role. A role that occurs only in dev or test counts as O in the loss, and as missed in the metric.

    Args:
        data: {train, dev, test}, each a file, a folder, a list or several of these, see `conll2012.find_files`; below
            {folder} if given. Also `predicates`: "all", or "verbs" for words tagged VB*; and `every`: n trains on every
            n-th sentence only (1: on all).
        lower: look words up in lower case.
        min_count: minimum count of a word in the vocabulary.
        longest: training sentences with more words are left out.
    """

    fields = ("tokens",)

    data: Mapping[str, Any]
    lower: bool = True
    min_count: int = 1
    longest: int | None = None

    def __post_init__(self):
        self.every, self.chosen = self.data.get("every", 1), self.data.get("predicates", "all")
        valid(Literal["all", "verbs"], self.chosen, "task.data.predicates")
        valid(PositiveInt, self.every, "task.data.every")

    def load(self, part: Part = WHOLE) -> DatasetDict:
        """Reads all splits and makes the vocabularies.

        A part of the training data is drawn from its sentences, each with all its predicates, which share its words.
        """
        check_keys(self.data, "every", "predicates", places=FILES)
        splits = {split: with_documents(self._rows(split)) for split in SPLITS}
        for split, rows in splits.items():
            if not rows:
                hint = " whose part of speech is VB*; set predicates=all" if self.chosen == "verbs" else ""
                raise UserError(f"the {split} data contain no predicate{hint}", self.data[split])
        by_sentence = [list(rows) for _, rows in groupby(splits["train"], itemgetter("sentence"))]
        splits["train"] = list(chain.from_iterable(part.of(by_sentence, "sentences", len)))
        sentences = dict.fromkeys(tuple(row["tokens"]) for row in splits["train"])
        roles = {tag[2:] for row in splits["train"] for tag in row["tags"][0] if tag != "O"}
        self.vocabularies = {
            "words": Vocabulary.count((word for words in sentences for word in words), self.min_count, self.lower),
            "labels": Vocabulary(tags.labels(roles, SCHEME), special=False),
        }
        for split in ("dev", "test"):
            found = [tag for row in splits[split] for tag in row["tags"][0] if tag[:1] == "B" and tag[2:] != "V"]
            if not found:
                message = f"the {split} data contain no argument, so nothing can be scored"
                raise UserError(message, self.data[split])
            remedy = "are the roles written in the same way, ARG0 or A0, in both?"
            warn_unknown(found, self.vocabularies["labels"], split, "roles", remedy, MOST)
        return tables(splits)

    def _rows(self, split: str) -> list[Row]:
        """The rows of a split; prints the number of arguments inside others, if any.

        A word has one label, so the model learns only the outer argument; the metric counts both.
        """
        rows: list[Row] = []
        places: list[str] = []  # where arguments are inside others
        documents = conll2012.read_split(self.data, split)
        sentences = ((document.name, sentence) for document in documents for sentence in document.sentences)
        for number, (document, sentence) in enumerate(sentences):
            words = sentence.words
            if split == "train" and (number % self.every or len(words) > (self.longest or len(words))):
                continue
            for predicate in self._chosen(sentence, sentence.predicates()):
                layers: tuple[list[Span], list[Span]] = [], []  # of the outer arguments and of those inside them
                for argument in predicate.arguments:
                    free = [not layer or argument.start >= layer[-1].end for layer in layers]
                    if not free[0]:
                        places.append(f"{sentence.path}:{sentence.lines[argument.start]}")
                    if any(free):
                        layers[free.index(True)].append(argument)
                outer, inner = (tags.encode(layer, len(words), SCHEME) for layer in layers)
                row = {"tokens": words, "predicates": [predicate.index], "tags": [outer], "inner": [inner]}
                rows.append(row | {"sentence": number, "document": document})
        if not places:
            return [{key: value for key, value in row.items() if key != "inner"} for row in rows]
        listed = ", ".join(places[:LISTED]) + (f" and {len(places) - LISTED} more" if len(places) > LISTED else "")
        notice(f"srl {split}: {len(places)} arguments lie inside others and are not learned, only scored ({listed})")
        return rows

    def _chosen(self, sentence: ConllSentence, found: Sequence[Predicate], unknown: bool = False) -> list[Predicate]:
        """The selected predicates: all, or the verbs; with `unknown` also words without a part of speech."""
        pos = sentence.pos
        kinds = [pos[each.index] for each in found]
        counted = (self.chosen == "all" or kind.startswith(VERB) or (unknown and kind == "-") for kind in kinds)
        return list(compress(found, counted))

    def collate(self, rows: Sequence[Row]) -> Batch:
        """Text field "tokens" with B lines, one per predicate; a row without predicates gives one line without a flag.

        Labels: "predicates" (B, T) int64, 1 at the predicate; if all rows have tags, "tags" (B, T) int64, 0 (O) at
        padding.
        """
        lines = [(row, predicate) for row in rows for predicate in row["predicates"] or [None]]
        text = self.text([row["tokens"] for row, _ in lines])
        if len(lines) > len(rows):
            text = text._replace(parts=[[length] for length in text.lengths])  # the biLM reads a sentence once
        flags = torch.zeros_like(text.words)  # (B, T)
        for flag, (_, predicate) in zip(flags, lines, strict=True):
            if predicate is not None:
                flag[predicate] = 1
        labels = {"predicates": flags} | self.gold_tags(rows, lambda sequences: sequences)
        return Batch(list(rows), {"tokens": text}, labels)

    def from_text(self, /, **raw: Any) -> Row:
        """A row from {"tokens": [...], "predicates": [...]} or {"text": "...", "predicates": [...]}.

        Predicates are word numbers from 0. Optional: "lemmas", one for each predicate, which the official scorer
        compares. Further keys are ignored.
        """
        row = sentence_of(raw)
        predicates, last = _numbers(raw.get("predicates"), row["tokens"]), len(row["tokens"]) - 1
        if not isinstance(predicates, list) or not all(type(i) is int and 0 <= i <= last for i in predicates):
            raise UserError(f'"predicates" must be a list of word numbers, here from 0 to {last}')
        if len(set(predicates)) < len(predicates):
            raise UserError('"predicates" has a word twice')
        row["predicates"] = predicates
        if (lemmas := raw.get("lemmas")) is not None:
            if not are_words(lemmas) or len(lemmas) != len(predicates):
                raise UserError('"lemmas" must be a list with a word for each predicate')
            row["lemmas"] = lemmas
        return row

    def from_file(self, path: str) -> list[Row]:
        """A row without tags for each sentence, with its predicates: as in training, all or the verbs.

        In a file without arguments these are the words with a frame, or with a lemma if no word has a frame. A
        predicate without a part of speech ("-") may be a verb. A notice counts omitted predicates.
        """
        documents = list(conll2012.read_documents(path))
        pairs = [(document, sentence) for document in documents for sentence in document.sentences]
        annotated = any(sentence.argument_columns() for _, sentence in pairs)
        mark = FRAME if any(sentence.marked(FRAME) for _, sentence in pairs) else LEMMA
        rows, left_out = [], 0
        for document, sentence in pairs:
            predicates = sentence.predicates() if annotated else sentence.marked(mark)
            chosen = self._chosen(sentence, predicates, unknown=True)
            left_out += len(predicates) - len(chosen)
            given = {"document": document.name, "part": document.part}
            given |= {"predicates": [each.index for each in chosen], "lemmas": [each.lemma for each in chosen]}
            senses = [each.frame for each in chosen]
            rows.append({"tokens": sentence.words, "senses": senses, **given, "input": given})
        if left_out:
            notice(
                f"{left_out} predicates are not verbs and left out, as in training (task.data.predicates=verbs)", path
            )
        return rows

    def unanswered(self, row: Row) -> dict[str, list[Any]]:
        """Frames without arguments."""
        return {"frames": [{"predicate": place, "arguments": []} for place in row["predicates"]]}

    def official(self, predictions: Sequence[Mapping[str, Any]], rows: Sequence[Row]) -> str:
        """A CoNLL-2012 file with the arguments. The default lemma of a predicate is its word, the default frame 01."""
        lines: list[str] = [ONLY_VERBS] if self.chosen == "verbs" and rows else []
        before = None
        for prediction, row in zip(predictions, rows, strict=True):
            name, part = row.get("document", "document"), row.get("part", "000")
            if (name, part) != before:
                lines += [END] * (before is not None) + [conll2012.begin(name, part)]
                before = name, part
            words, places = row["tokens"], row["predicates"]
            lemmas, frames = ["-"] * len(words), ["-"] * len(words)
            for number, place in enumerate(places):
                lemmas[place] = row["lemmas"][number] if "lemmas" in row else words[place]
                frames[place] = row["senses"][number] if "senses" in row else "01"
            answers = sorted(prediction["frames"], key=itemgetter("predicate"))
            found = [[Span(a["label"], a["start"], a["end"]) for a in each["arguments"]] for each in answers]
            columns = {WORD: words, LEMMA: lemmas, FRAME: frames}
            arguments = [write_spans(spans, len(words)) for spans in found]
            lines.append(conll2012.write_sentence(name, part, columns, arguments))
        return "".join([*lines, END]) if lines else ""


def _numbers(predicates: Any, words: Sequence[str]) -> Any:
    """The numbers of predicates named by their words, in a list or in a text with commas; numbers stay unchanged."""
    named = predicates.replace(",", " ").split() if isinstance(predicates, str) else predicates
    if not isinstance(named, list):
        return named
    for word in named:
        if isinstance(word, str) and words.count(word) != 1:
            raise UserError(f'"predicates": {word} occurs {words.count(word)} times; give its number, from 0')
    return [words.index(each) if isinstance(each, str) else each for each in named]
