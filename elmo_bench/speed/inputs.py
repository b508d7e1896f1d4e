"""What is measured on: sentences, from the open data if available, else generated; sizes of the released biLMs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from elmo_bench.bilm.options import Options
from elmo_bench.system.storage.files import open_text

SHORTEST, LONGEST = 5, 50
FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
Sentence = Sequence[str]


def read_sentences(data_root: Path | str | None, number: int) -> tuple[list[Sentence], str]:
    """`number` sentences of 5 to 50 tokens, drawn at random, and a description of their source.

    Raises:
        UserError: the open text is there but damaged.
    """
    files = sorted(Path(data_root, "lm").glob("dev.*.txt*")) if data_root else []
    draw = random.Random(1)
    if not files:
        return generated(number, draw), "made-up words by Zipf's law (no data_root/lm)"
    sentences: list[Sentence] = []
    for path in files:
        with open_text(path) as lines:
            tokenized = (line.split() for line in lines)
            sentences += [words for words in tokenized if SHORTEST <= len(words) <= LONGEST]
    draw.shuffle(sentences)
    return sentences[:number], ", ".join(path.name.split(".")[1] for path in files)


def generated(number: int, draw: random.Random) -> list[Sentence]:
    """Sentences with lengths and word frequencies close to those of written English."""
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    vocabulary = ["".join(draw.choices(letters, range(26, 0, -1), k=1 + min(i, 9) // 2 + draw.randrange(7)))
                  for i in range(20_000)]  # fmt: skip
    weights = list(accumulate(1 / (rank + 3) for rank in range(len(vocabulary))))
    lengths = [min(LONGEST, max(SHORTEST, round(draw.gammavariate(3, 7)))) for _ in range(number)]
    return [draw.choices(vocabulary, cum_weights=weights, k=length) for length in lengths]


def official(dim: int, projection: int, highways: int) -> Options:
    """A size of the release."""
    lstm = {"dim": dim, "projection_dim": projection, "n_layers": 2, "cell_clip": 3, "proj_clip": 3}
    cnn = {"embedding": {"dim": 16}, "filters": FILTERS, "n_highway": highways, "max_characters_per_token": 50}
    return Options.parse({"lstm": {**lstm, "use_skip_connections": True}, "char_cnn": cnn})


SMALL, ORIGINAL = official(1024, 128, 1), official(4096, 512, 2)  # 13.6 and 93.6 million parameters
