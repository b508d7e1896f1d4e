"""The recipe of a pretraining run, which determines the resulting biLM, and its identity."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import ConfigDict, Field, NonNegativeInt, Strict, WrapValidator, model_validator

from elmo_bench.bilm.corpus import sources
from elmo_bench.bilm.lm import has_softmax, softmax_files
from elmo_bench.configuration.keys import LARGEST, Keys, Share, Text
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import hashing

AS_WRITTEN = WrapValidator(lambda value, check: (check(value), value)[1])  # 10 is not 10.0 in the hash of a recipe
Whole = Annotated[int, Field(ge=1, le=2**53)]
Positive = Annotated[float, Field(gt=0, le=LARGEST), AS_WRITTEN]
Part = Annotated[Share, AS_WRITTEN]
Texts = list[Annotated[tuple[Text, Whole | None], Strict(False)]]


class Recipe(Keys):
    """Everything that determines the resulting biLM."""

    model_config = ConfigDict(frozen=True)

    options: dict[str, Any]
    """the biLM's sizes, as in its options.json"""
    text: Texts
    """training text, as (path or pattern, tokens to use or None for all); on the command line a path is enough"""
    heldout: Texts
    """texts on which perplexity is measured, written in the same way"""
    vocabulary: Whole
    """number of words of the softmax"""
    tokens: Whole
    """training tokens (counted once for both directions); a shorter text is read repeatedly"""
    rows: Whole = 64
    """streams of text that are read in parallel"""
    steps: Whole = 20
    """words of each stream in an update (truncated back-propagation)"""
    negatives: Whole = 4096
    """size of the softmax's sample"""
    lr: Annotated[float, Field(ge=0, le=LARGEST), AS_WRITTEN] = 2e-3
    """peak learning rate, after a linear warm-up"""
    warmup: Whole = 500
    """updates until the learning rate is at its peak"""
    clip: Positive = 5.0
    """bound on the total gradient norm of all parameters except the softmax"""
    seed: NonNegativeInt = 1
    """seed of the initial weights, the order of sentences and the samples"""
    bfloat16: bool = False
    """compute matrix products in bfloat16 (parameters, cells and sums stay float32)"""
    softmax_lr: Positive = 1.0
    """factor on the learning rate of the softmax, because a rare word gets few updates"""
    betas: Annotated[tuple[Part, Part], Strict(False)] = (0.9, 0.99)
    """Adam's decay rates of the means of gradients and of their squares"""
    words: Text | None = None
    """a file with the softmax's words, one per line, instead of the most frequent ones of the text; they are sorted by
    frequency, as the log-uniform sample assumes"""
    optimiser: Literal["adam", "adagrad"] = "adam"
    """adam, or the release's adagrad"""
    accumulator: Positive = 1.0
    """Adagrad's initial value of the sums of squared gradients"""
    decay: bool = True
    """decay the learning rate linearly, to a twentieth of the peak"""
    loss_times: Positive = 1.0
    """factor on the loss before the backward pass"""
    clip_softmax: bool = False
    """include the softmax in the norm that `clip` bounds"""
    dropout: Part = 0.0
    """dropout on the input of every LSTM layer and on the output of the last"""
    negatives_each: bool = False
    """draw a sample for each direction instead of one for both"""
    start: Text | None = None
    """a folder with an unfinished biLM (`stop=`) and its card; the run continues it at the same place in the text and
    in the decay, but with a new optimiser and new LSTM states"""
    parent: Annotated[tuple[Text, Text], Strict(False)] | None = None
    """options.json and weights of a biLM to tune. The run starts from these weights at its first update, and with the
    softmax and vocabulary beside them if there are any. The learning rate may then be 0."""
    frozen: bool = False
    """train the softmax alone"""

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.lr == 0 and self.parent is None:
            raise ValueError("recipe.lr=0: should be greater than 0, except with a parent")
        if not 2 <= self.negatives < self.vocabulary:
            least = f"should be 2 to below the vocabulary, {self.vocabulary}"
            raise ValueError(f"recipe.negatives={self.negatives}: {least}")
        return self

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
        """The inputs of the training: files, folders and patterns."""
        named = [*(path for path, _ in (*self.text, *self.heldout)), *filter(None, (self.words, self.start))]
        return [*(root / path for path in named), *(parent_files(root, self.parent) if self.parent else ())]

    def content(self, root: Path) -> dict:
        """All that determines the result: settings that differ from their defaults, and the sha256 of each file."""
        values = self.identifying()
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
    """The files of a biLM to tune: options, weights, and its softmax and vocabulary if they exist."""
    options, weights = (root / path for path in parent)
    return [options, weights, *(softmax_files(weights.parent) if has_softmax(weights.parent) else [])]


def sha256(path: Path) -> str:
    """The sha256 of a file. Raises `UserError` if it cannot be read."""
    try:
        return hashing.sha256(path)
    except OSError as error:
        raise UserError(f"cannot be read ({error.strerror}); check the path and data_root", path) from None
