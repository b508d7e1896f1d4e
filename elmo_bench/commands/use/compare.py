"""A word in two sentences, layer by layer: `elmo-bench compare options=O weights=W word=play first=... second=...`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from elmo_bench.commands.command import Argument, Command, whole
from elmo_bench.commands.usage import BILM_FILES, bilm_files
from elmo_bench.system.errors import UserError

if TYPE_CHECKING:  # `--help` does not import it
    from elmo_bench.bilm import BiLM

COMMAND = Command(
    (
        *BILM_FILES,
        Argument("word", "a word of both sentences, as it stands there"),
        Argument("first", "a tokenized sentence", value="'WORDS'"),
        Argument("second", "another one", value="'WORDS'"),
        Argument("first_at", "which of the word's occurrences in the first sentence, from 1", 1, kind=whole(1)),
        Argument("second_at", "the same for the second sentence", 1, kind=whole(1)),
        Argument(
            "state", "LSTM state at the start of a sentence: zero or warm (the state after eight empty sentences)",
            "warm", kind=Literal["zero", "warm"],
        ),
    ),
    (("word=play first='they play chess' second='a play by Ibsen'", "by the open biLM"),),
    (
        "Prints the cosine of the two vectors in each layer, and how far they are apart, 1 - cosine. Layer 0 knows "
        "the characters alone: there a word always equals itself, cosine 1. The halves of a layer, which read the "
        "words before and those after, are also compared by themselves.",
    ),
    page="bilms",
)  # fmt: skip


def cosines(bilm: BiLM, sentences: Sequence[Sequence[str]], places: Sequence[int]) -> list[tuple[float, float, float]]:
    """Of each layer the cosine of two words' vectors, of their forward halves and of their backward halves."""
    import torch
    from torch.nn import functional as F

    first, second = (
        layers[:, place].double() for layers, place in zip(bilm.encode(sentences), places, strict=True)
    )  # (L+1, 2P)
    half = first.shape[1] // 2
    parts = [slice(None), slice(half), slice(half, None)]
    columns = [F.cosine_similarity(first[:, part], second[:, part], dim=-1) for part in parts]
    return [
        (whole, forward, backward) for whole, forward, backward in torch.stack(columns, dim=1).clamp(-1, 1).tolist()
    ]


def place(word: str, sentence: Sequence[str], number: int, name: str) -> int:
    """The position of an occurrence of a word, counted from 1, in the sentence that an argument gave.

    Raises:
        UserError: the sentence does not have that many of the word.
    """
    found = [i for i, one in enumerate(sentence) if one == word]
    if not found:
        raise UserError(f"word={word} does not occur in {name}='{' '.join(sentence)}'; separate words by spaces")
    if number > len(found):
        raise UserError(f"{name}_at={number}: {word} occurs {len(found)} times in {name}='{' '.join(sentence)}'")
    return found[number - 1]


def main() -> None:
    """The entry point."""
    given = COMMAND.parse()
    names = ("first", "second")
    sentences = [given[name].split() for name in names]
    places = [
        place(given["word"], sentence, given[f"{name}_at"], name)
        for name, sentence in zip(names, sentences, strict=True)
    ]

    from elmo_bench.bilm import BiLM

    bilm = BiLM.from_files(*bilm_files(given), given["state"])
    print("layer  cosine  apart  forward  backward")
    for layer, (both, forward, backward) in enumerate(cosines(bilm, sentences, places)):
        print(f"{layer:5}  {both:6.3f}  {1 - both:5.3f}  {forward:7.3f}  {backward:8.3f}")
