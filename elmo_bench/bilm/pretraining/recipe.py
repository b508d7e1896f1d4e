"""What decides which biLM comes out of pretraining, and its identity."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from elmo_bench.bilm.corpus import sources
from elmo_bench.system import hashing
from elmo_bench.system.errors import UserError


@dataclass(frozen=True)
class Recipe:
    """Everything that decides which biLM comes out.

    Attributes:
        options: the biLM's sizes, as its options.json.
        text: training text, as (path or pattern, tokens to take or None for all).
        heldout: texts for perplexity, likewise.
        vocabulary: words of the softmax.
        tokens: training tokens to see (once for both directions); passes over the text repeat if it has fewer.
        words: a file with the softmax's words, one a line, in place of the most frequent ones of the text; they are
            put in order of frequency, which the log-uniform sample takes them to have.
        rows, steps: parallel streams and unrolled steps of an update (truncated back-propagation).
        negatives: sample of the softmax; one for both directions, or one `each`.
        optimiser: adam, or the release's adagrad, whose accumulators begin at `accumulator`.
        lr: peak of the learning rate; linear warm-up over `warmup` updates, then linear decay to a twentieth, if any.
        softmax_lr: the softmax learns so many times as fast: a rare word has few updates to find its place in.
        loss_times: the loss is multiplied by it before its gradients are taken.
        clip: bound on the total gradient norm of everything but the softmax, or of that too.
        dropout: of the input of every LSTM layer and of the last one's output.
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
    optimiser: str = "adam"
    accumulator: float = 1.0
    decay: bool = True
    loss_times: float = 1.0
    clip_softmax: bool = False
    dropout: float = 0.0
    negatives_each: bool = False

    def __post_init__(self):
        """Raises `UserError` where a value cannot be meant."""
        if self.optimiser not in ("adam", "adagrad"):
            raise UserError(f"recipe.optimiser={self.optimiser}: there are adam and adagrad")
        for name in ("vocabulary", "tokens", "rows", "steps", "negatives", "warmup"):
            if not isinstance(value := getattr(self, name), int) or isinstance(value, bool) or value < 1:
                raise UserError(f"recipe.{name}={value}: expected a whole number from 1")
        if not 0 <= self.dropout < 1:
            raise UserError(f"recipe.dropout={self.dropout}: expected 0 to below 1")
        if not 2 <= self.negatives < self.vocabulary:
            raise UserError(f"recipe.negatives={self.negatives}: expected 2 to below the vocabulary, {self.vocabulary}")

    @property
    def updates(self) -> int:
        return max(1, self.tokens // (self.rows * self.steps))

    def rate(self, update: int) -> float:
        """The learning rate of an update, counted from 0."""
        decay = max(0.05, 1 - update / self.updates) if self.decay else 1.0
        return self.lr * min(1.0, (update + 1) / self.warmup) * decay

    def content(self, root: Path) -> dict:
        """All that decides the outcome: settings that are not the default's, and of each file the sha256.

        Raises:
            UserError: a file is missing.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        values["text"] = [[sha256(path), tokens] for path, tokens in sources(root, self.text)]
        if self.words is not None:
            values["words"] = sha256(root / self.words)
        del values["heldout"]
        return values

    def key(self, root: Path) -> str:
        """Identity of the run: other settings or another text are another run."""
        return hashing.fingerprint(self.content(root), 12)


def sha256(path: Path) -> str:
    """Of a file's content. Raises `UserError` where there is none."""
    try:
        return hashing.sha256(path)
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the path and data_root", path) from None
