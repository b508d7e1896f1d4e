"""Training a biLM on plain text: a loop that can be stopped anywhere and goes on where it was.

Plain torch rather than Lightning: the data is one endless stream whose LSTM state runs on from update to update, the
softmax has sparse gradients of its own optimiser, and a checkpoint must hold that state too.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

from elmo_bench.bilm.corpus import Corpus, Source
from elmo_bench.bilm.lm import BidirectionalLM, Chunk, Negatives, WordTypes, chunks
from elmo_bench.bilm.lstm import State
from elmo_bench.bilm.model import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.system.errors import UserError
from elmo_bench.system.progress import tell


@dataclass(frozen=True)
class Recipe:
    """Everything that decides which biLM comes out.

    Attributes:
        text: training text, as (path, tokens to take or None for all).
        heldout: texts for perplexity, likewise.
        vocabulary: words of the softmax.
        tokens: training tokens to see (once for both directions); passes over the text repeat if it has fewer.
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
    betas: tuple[float, float] = field(default=(0.9, 0.99))

    @property
    def updates(self) -> int:
        return max(1, self.tokens // (self.rows * self.steps))

    def key(self) -> str:
        """Identity of the run, from the recipe and its text's names."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:12]


class Trainer:
    """One training run in one folder.

    Args:
        recipe: what to train.
        root: folder that the recipe's text paths are relative to.
        folder: checkpoint and log live here; a run found here goes on.
        every: seconds between checkpoints.
        compile: compile the pointwise work (needs a C++ compiler; worth it beyond a few minutes of training).
    """

    def __init__(self, recipe: Recipe, root: Path, folder: Path, every: float = 300.0, compile: bool = False):
        self.recipe, self.folder, self.every = recipe, folder, every
        self.console = Console(stderr=True)
        folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(recipe.seed)
        self.console.print("reading the text", style="dim")
        self.corpus = Corpus.read([Source(root / path, tokens) for path, tokens in recipe.text], recipe.seed)
        self.words = self.corpus.vocabulary(recipe.vocabulary)
        if len(self.words) <= recipe.negatives:
            raise UserError(f"{recipe.negatives} negatives need a larger vocabulary than {len(self.words)} words")
        dtype = torch.bfloat16 if recipe.bfloat16 else torch.float32
        self.lm = BidirectionalLM(BiLM(Options.parse(recipe.options)), len(self.words), dtype)
        self.types = WordTypes(self.corpus.types, self.lm.bilm.encoder)
        softmax = [*self.lm.softmax.parameters(), *self.lm.softmax_bias.parameters()]
        self.dense: list[nn.Parameter] = list(self.lm.bilm.parameters())
        self.optimisers: list[torch.optim.Optimizer] = [
            torch.optim.Adam(self.dense, recipe.lr, betas=recipe.betas, fused=True),
            torch.optim.SparseAdam(softmax, recipe.lr, betas=recipe.betas),
        ]
        self.states = self.lm.start(recipe.rows)
        self.update, self.seconds = 0, 0.0
        self._resume()
        if compile:
            self.lm.compile()

    def fit(self) -> None:
        """Runs to the end of the recipe, with a progress bar where there is a terminal."""
        recipe, saved, started = self.recipe, time.monotonic(), time.monotonic() - self.seconds
        columns = TextColumn("biLM"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        columns = (*columns, TextColumn("{task.fields[info]}"))
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal) as progress:
            bar = progress.add_task("", total=recipe.updates, completed=self.update, info="")
            for pair in islice(self._chunks(), recipe.updates - self.update):
                loss = self._step(pair)
                self.update += 1
                self.seconds = time.monotonic() - started
                if self.update % 50 == 0 or self.update == recipe.updates:
                    self._log(loss)
                    progress.update(bar, completed=self.update, info=f"sampled loss {loss:.3f}")
                    tell(f"biLM: update {self.update} of {recipe.updates}, sampled loss {loss:.3f}")
                if time.monotonic() - saved > self.every or self.update == recipe.updates:
                    self._save()
                    saved = time.monotonic()

    def card(self) -> dict:
        """What a reader of the weights must know: text, size, time and machine."""
        return {
            "recipe": asdict(self.recipe),
            "text_tokens": len(self.corpus.tokens),
            "tokens_seen": self.update * self.recipe.rows * self.recipe.steps,
            "updates": self.update,
            "hours": round(self.seconds / 3600, 3),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}",
        }

    def _step(self, pair: tuple[Chunk, Chunk]) -> float:
        recipe = self.recipe
        rate = recipe.lr * min(1.0, (self.update + 1) / recipe.warmup) * max(0.05, 1 - self.update / recipe.updates)
        generator = np.random.default_rng((recipe.seed, self.update))  # a function of the update: nothing to save
        negatives = Negatives.draw(recipe.negatives, len(self.words), generator)
        loss = self.lm.loss(pair, self.types, self.states, negatives)
        loss.backward()
        nn.utils.clip_grad_norm_(self.dense, recipe.clip)
        for optimiser, times in zip(self.optimisers, (1.0, recipe.softmax_lr), strict=True):
            for group in optimiser.param_groups:
                group["lr"] = rate * times
            optimiser.step()
            optimiser.zero_grad()
        return loss.item()

    def _chunks(self) -> Iterator[tuple[Chunk, Chunk]]:
        """Passes over the text without end, from the current update on."""
        streams, recipe = self.corpus.streams(self.words), self.recipe
        per_pass = len(streams[0].inputs) // recipe.rows // recipe.steps
        if not per_pass:
            raise UserError(f"the training text is too short for {recipe.rows} rows of {recipe.steps} steps")
        first = self.update % per_pass
        while True:
            yield from zip(*(chunks(stream, recipe.rows, recipe.steps, first) for stream in streams), strict=True)
            first = 0

    def _log(self, loss: float) -> None:
        with open(self.folder / "log.csv", "a", newline="", encoding="utf-8") as file:
            tokens = self.update * self.recipe.rows * self.recipe.steps
            csv.writer(file).writerow([self.update, tokens, f"{loss:.4f}", f"{self.seconds:.1f}"])

    def _save(self) -> None:
        state = {
            "lm": self.lm.state_dict(),
            "optimisers": [optimiser.state_dict() for optimiser in self.optimisers],
            "states": [[tuple(layer) for layer in layers] for layers in self.states],
            "update": self.update,
            "seconds": self.seconds,
        }
        partial = self.folder / "checkpoint.partial"
        torch.save(state, partial)
        os.replace(partial, self.folder / "checkpoint.pt")

    def _resume(self) -> None:
        path = self.folder / "checkpoint.pt"
        if not path.exists():
            return
        state = torch.load(path, weights_only=True)
        self.lm.load_state_dict(state["lm"])
        for optimiser, saved in zip(self.optimisers, state["optimisers"], strict=True):
            optimiser.load_state_dict(saved)
        self.states = [[State(*layer) for layer in layers] for layers in state["states"]]
        self.update, self.seconds = state["update"], state["seconds"]
        self.console.print(f"going on after update {self.update} of {self.recipe.updates}", style="dim")
