"""What the readers of the tasks share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from elmo_bench.text.batching import pad_tokens
from elmo_bench.text.tokens import Tokens
from elmo_bench.text.vocabulary import Vocabulary


class TextReader:
    """Looks words up in vocabularies.

    Attributes:
        vocabularies: those of the training split by their names, "words" and perhaps others; none before `load`.
        lower: look words up in lower case; characters always keep their case.
        char_limit: the most characters of a word; the rest is cut off.
    """

    lower: bool
    char_limit: int = 50

    @cached_property
    def vocabularies(self) -> dict[str, Vocabulary]:
        return {}

    def text(self, sentences: Sequence[Sequence[str]]) -> Tokens:
        """One text field of a batch."""
        words, chars = self.vocabularies["words"], self.vocabularies.get("chars")
        return pad_tokens(sentences, words, chars, lower=self.lower, char_limit=self.char_limit)
