"""The recipe of a pretraining run, which determines the resulting biLM, and its identity."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path

from elmo_bench.bilm.corpus import sources
from elmo_bench.bilm.lm import has_softmax, softmax_files
from elmo_bench.configuration import checks
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import hashing


@dataclass(frozen=True)
class Recipe:
    """Everything that determines the resulting biLM.

    Attributes:
        options: the biLM's sizes, as in its options.json.
        text: training text, as (path or pattern, tokens to use or None for all); on the command line a path is enough.
        heldout: texts on which perplexity is measured, written in the same way.
        vocabulary: number of words of the softmax.
        tokens: training tokens (counted once for both directions); a shorter text is read repeatedly.
        words: a file with the softmax's words, one per line, instead of the most frequent ones of the text; they are
            sorted by frequency, as the log-uniform sample assumes.
        rows: streams of text that are read in parallel.
        steps: words of each stream in an update (truncated back-propagation).
        negatives: size of the softmax's sample.
        negatives_each: draw a sample for each direction instead of one for both.
        start: a folder with an unfinished biLM (`stop=`) and its card; the run continues it: same place in the text and
            in the decay, but the optimiser and the LSTM states start anew.
        parent: options.json and weights of a biLM to tune. The run starts from these weights at its first update, and
            with the softmax and vocabulary beside them if there are any. The learning rate may then be 0.
        frozen: train the softmax alone.
        optimiser: adam, or the release's adagrad.
        betas: of Adam: decay rates of the means of gradients and of their squares.
        accumulator: of Adagrad: the value from which the sums of squared gradients start.
        lr: peak learning rate, after a linear warm-up.
        warmup: updates until the learning rate is at its peak.
        decay: decay the learning rate linearly, to a twentieth of the peak.
        softmax_lr: factor on the learning rate of the softmax, because a rare word gets few updates.
        loss_times: factor on the loss before the backward pass.
        clip: bound on the total gradient norm of all parameters except the softmax.
        clip_softmax: include the softmax in that norm.
        seed: of the initial weights, the order of sentences and the samples.
        dropout: on the input of every LSTM layer and on the last one's output.
        bfloat16: compute matrix products in bfloat16 (parameters, cells and sums stay float32).
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
    start: str | None = None
    parent: tuple[str, str] | None = None
    frozen: bool = False

    def __post_init__(self):
        """Raises `UserError` for an invalid value."""
        checks.one_of(self.optimiser, "recipe.optimiser", ("adam", "adagrad"))
        for name in ("vocabulary", "tokens", "rows", "steps", "negatives", "warmup"):
            checks.whole(getattr(self, name), f"recipe.{name}", 1, 2**53)
        checks.whole(self.seed, "recipe.seed", 0)
        checks.number(self.lr, "recipe.lr", **({"gt": 0} if self.parent is None else {"ge": 0}))
        for name in ("clip", "softmax_lr", "accumulator", "loss_times"):
            checks.number(getattr(self, name), f"recipe.{name}", gt=0)
        checks.number(self.dropout, "recipe.dropout", ge=0, lt=1)
        for beta in self.betas:
            checks.number(beta, "recipe.betas", ge=0, lt=1)
        if len(self.betas) != 2:
            raise UserError(f"recipe.betas={list(self.betas)}: two numbers are needed")
        for listed in (self.text, self.heldout):
            if not all(not isinstance(one, str) and len(one) == 2 for one in listed):
                raise UserError(f"recipe.text={listed}: expected [[FILE,TOKENS],...], null for all tokens")
        for path, tokens in [*self.text, *self.heldout]:
            if tokens is not None:
                checks.whole(tokens, f"recipe: the tokens of {path}", 1, 2**53)
        if not 2 <= self.negatives < self.vocabulary:
            raise UserError(f"recipe.negatives={self.negatives}: expected 2 to below the vocabulary, {self.vocabulary}")

    @property
    def updates(self) -> int:
        return max(1, self.tokens // (self.rows * self.steps))

    def end(self, stop: int | None = None) -> int:
        """The number of updates of a run that stops after update `stop`; None: at the end of the recipe."""
        return self.updates if stop is None else min(stop, self.updates)

    def rate(self, update: int, first: int = 0) -> float:
        """The learning rate of an update, counted from 0; `first` is the update at which this run started."""
        decay = max(0.05, 1 - update / self.updates) if self.decay else 1.0
        return self.lr * min(1.0, (update - first + 1) / self.warmup) * decay

    def files(self, root: Path) -> list[Path]:
        """What the training reads: files, folders and patterns."""
        named = [*(path for path, _ in (*self.text, *self.heldout)), *filter(None, (self.words, self.start))]
        return [*(root / path for path in named), *(parent_files(root, self.parent) if self.parent else ())]

    def content(self, root: Path) -> dict:
        """Everything that determines the result: settings that differ from their defaults, and the sha256 of each file.

        Raises:
            UserError: a file is missing.
        """
        values = {f.name: getattr(self, f.name) for f in fields(self) if getattr(self, f.name) != f.default}
        values["text"] = [[sha256(path), tokens] for path, tokens in sources(root, self.text)]
        if self.words is not None:
            values["words"] = sha256(root / self.words)
        if self.start is not None:
            values["start"] = [sha256(root / self.start / file) for file in ("weights.hdf5", "softmax.safetensors")]
        if self.parent is not None:
            values["parent"] = [sha256(path) for path in parent_files(root, self.parent)]
        del values["heldout"]
        return values

    def key(self, root: Path) -> str:
        """The identity of the run, a hash of its settings and its text."""
        return hashing.fingerprint(self.content(root), 12)


def parent_files(root: Path, parent: tuple[str, str]) -> list[Path]:
    """The files of a biLM to tune: options, weights, and if they are there, its softmax and vocabulary."""
    options, weights = (root / path for path in parent)
    return [options, weights, *(softmax_files(weights.parent) if has_softmax(weights.parent) else [])]


def sha256(path: Path) -> str:
    """The sha256 of a file. Raises `UserError` if it cannot be read."""
    try:
        return hashing.sha256(path)
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the path and data_root", path) from None
