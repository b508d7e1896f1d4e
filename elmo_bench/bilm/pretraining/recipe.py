"""What decides which biLM comes out of pretraining, and its identity."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from elmo_bench.system.errors import UserError


@dataclass(frozen=True)
class Recipe:
    """Everything that decides which biLM comes out.

    Attributes:
        options: the biLM's sizes, as its options.json.
        text: training text, as (path, tokens to take or None for all).
        heldout: texts for perplexity, likewise.
        vocabulary: words of the softmax.
        tokens: training tokens to see (once for both directions); passes over the text repeat if it has fewer.
        words: a file with the softmax's words, one a line, in place of the most frequent ones of the text; they are
            put in order of frequency, which the log-uniform sample takes them to have.
        rows, steps: parallel streams and unrolled steps of an update (truncated back-propagation).
        negatives: sample of the softmax.
        lr: peak of Adam's learning rate; linear warm-up over `warmup` updates, then linear decay to a twentieth.
        softmax_lr: the softmax learns so many times as fast: a rare word has few updates to find its place in.
        clip: bound on the total gradient norm of everything but the softmax.
        bfloat16: computes the products in bfloat16 (parameters, cells and sums stay float32).
    """

    options: dict
    text: list[tuple[str, int | None]]
    heldout: list[tuple[str, int | None]]
    vocabulary: int
    tokens: int
    rows: int = 64
    steps: int = 20
    negatives: int = 4096
    lr: float = 2e-3
    warmup: int = 500
    clip: float = 5.0
    seed: int = 1
    bfloat16: bool = False
    softmax_lr: float = 1.0
    betas: tuple[float, float] = (0.9, 0.99)
    words: str | None = None

    @property
    def updates(self) -> int:
        return max(1, self.tokens // (self.rows * self.steps))

    def rate(self, update: int) -> float:
        """The learning rate of an update, counted from 0."""
        return self.lr * min(1.0, (update + 1) / self.warmup) * max(0.05, 1 - update / self.updates)

    def content(self, root: Path) -> dict:
        """The recipe with the sha256 of each file that training reads in the place of its path.

        Raises:
            UserError: a file is missing.
        """
        values = asdict(self)
        values["text"] = [[sha256(root / path), tokens] for path, tokens in self.text]
        values["words"] = None if self.words is None else sha256(root / self.words)
        del values["heldout"]
        return {key: value for key, value in values.items() if value is not None}

    def key(self, root: Path) -> str:
        """Identity of the run: other settings or another text are another run."""
        return hashlib.sha256(json.dumps(self.content(root), sort_keys=True).encode()).hexdigest()[:12]


def sha256(path: Path) -> str:
    """Of a file's content. Raises `UserError` where there is none."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the path and data_root", path) from None
