"""A mapping between strings and ids, and the coverage of a text by a list such as a vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from elmo_bench.system.errors import StrPath, UserError, notice


class Vocabulary:
    """A fixed list of strings with ids; with special items, id 0 is padding and id 1 the unknown item.

    Args:
        items: the strings in id order, without the special ones.
        special: `True` puts "<pad>" and "<unk>" first (words, characters); `False` has only the items (labels).
    """

    PAD, UNK = "<pad>", "<unk>"

    def __init__(self, items: Iterable[str], special: bool = True):
        self.special = special
        self.items: list[str] = ([self.PAD, self.UNK] if special else []) + list(items)
        self._ids = {item: i for i, item in enumerate(self.items)}
        if len(self._ids) != len(self.items):
            raise ValueError("the items of a vocabulary must be distinct")

    @classmethod
    def count(cls, items: Iterable[str], minimum: int = 1, lower: bool = False) -> Vocabulary:
        """The items seen at least `minimum` times, most frequent first, ties by code point (the same everywhere).

        Args:
            items: may be a `Counter`.
            minimum: minimum count of an item.
            lower: count and keep the items in lower case.
        """
        seen, counts = Counter(items), Counter[str]()
        for item, number in seen.items():
            counts[item.lower() if lower else item] += number
        kept = [item for item, number in counts.items() if number >= minimum and item not in (cls.PAD, cls.UNK)]
        return cls(sorted(kept, key=lambda item: (-counts[item], item)))

    @classmethod
    def of_words(cls, words: Iterable[str], minimum: int, characters: int, lower: bool) -> dict[str, Vocabulary]:
        """The vocabularies "words" (see `count`) and "chars": cased characters seen at least `characters` times."""
        seen, chars = Counter(words), Counter[str]()
        for word, number in seen.items():
            for char in word:
                chars[char] += number
        return {"words": cls.count(seen, minimum, lower), "chars": cls.count(chars, characters)}

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: str) -> bool:
        return item in self._ids

    def __getitem__(self, item: str) -> int:
        """The id; an unknown item gives 1 in a vocabulary with special items, else raises KeyError."""
        return self._ids.get(item, 1) if self.special else self._ids[item]

    def state(self) -> dict:
        """Plain containers for a checkpoint; `Vocabulary.restore` is the inverse."""
        return {"items": self.items[2:] if self.special else self.items, "special": self.special}

    @classmethod
    def restore(cls, state: dict) -> Vocabulary:
        """The inverse of `state`; other content is a TypeError, KeyError or ValueError."""
        if not isinstance(state["special"], bool) or not all(isinstance(item, str) for item in state["items"]):
            raise TypeError("the items of a vocabulary must be strings")
        return cls(state["items"], state["special"])


def coverage(path: StrPath, known: int, number: int, what: str, least: float, remedy: str) -> str:
    """A message with the coverage of a text by a list: a vocabulary, word vectors, an inventory of senses.

    Args:
        path: the file of the list, or the key that names it.
        known, number: the covered and the total number of `what`, such as "running words of the text".
        least: a list that covers a smaller share is not meant for the text, which is an error.
        remedy: the remedy in that case.
    """
    message = f"has {known} of the {number} {what} ({known / max(number, 1):.1%})"
    if known < least * number or (known == 0 < least):
        raise UserError(f"{message}; {remedy}", path)
    return f"{path} {message}"


def warn_unknown(
    items: Sequence[str], vocabulary: Vocabulary, split: str, what: str, remedy: str, most: float = 1.0
) -> None:
    """Prints the number of a split's items that the training data contain, if their share is below `most`.

    For dev, a share below a hundredth is an error, as in `coverage`.
    """
    known = sum(item in vocabulary for item in items)
    if known < most * len(items):
        least = 0.01 if split == "dev" else 0.0
        notice(coverage("task.data.train", known, len(items), f"{what} of {split}", least, remedy))
