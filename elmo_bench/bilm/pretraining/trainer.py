"""Training a biLM on plain text: a loop that can be stopped anywhere and goes on where it was.

Plain torch rather than Lightning: the data is one endless stream whose LSTM state runs on from update to update, the
softmax has an optimiser of its own that touches single rows, and a checkpoint must hold that state too.
"""

from __future__ import annotations

import csv
import math
import os
import platform
import time
from collections.abc import Iterator
from dataclasses import asdict
from itertools import count, islice
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

from elmo_bench.bilm.corpus import UNKNOWN, Corpus, Source
from elmo_bench.bilm.lm import BidirectionalLM, Chunk, chunks
from elmo_bench.bilm.lstm import State
from elmo_bench.bilm.model import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.bilm.pretraining import checkpoint, step
from elmo_bench.bilm.pretraining.ahead import ahead
from elmo_bench.bilm.pretraining.batches import Batch, Batcher
from elmo_bench.bilm.pretraining.convolutions import WordTypes
from elmo_bench.bilm.pretraining.optimisers import RowAdam
from elmo_bench.bilm.pretraining.pointwise import EAGER, Pointwise
from elmo_bench.bilm.pretraining.recipe import Recipe, sha256
from elmo_bench.system.errors import UserError
from elmo_bench.system.files import open_text
from elmo_bench.system.progress import tell

LOG = ("update", "tokens", "loss", "perplexity", "tokens_a_second", "seconds", "seconds_left")


class Trainer:
    """One training run in one folder.

    Args:
        recipe: what to train.
        root: folder that the recipe's paths are relative to.
        folder: checkpoint and log live here; a run found here goes on.
        every: seconds between checkpoints.
        compile: compile the pointwise work (needs a C++ compiler; worth it beyond a few minutes of training).
        cache: folder that keeps the text in numbers, by its content; None: reads it anew.

    Raises:
        UserError: the recipe cannot be followed, a file is missing or damaged.
    """

    def __init__(
        self,
        recipe: Recipe,
        root: Path,
        folder: Path,
        every: float = 300.0,
        compile: bool = False,
        cache: Path | None = None,
    ):
        self.recipe, self.root, self.folder, self.every = recipe, root, folder, every
        self.console = Console(stderr=True)
        folder.mkdir(parents=True, exist_ok=True)
        torch.manual_seed(recipe.seed)
        self.console.print("reading the text", style="dim")
        self.corpus = Corpus.read([Source(root / path, tokens) for path, tokens in recipe.text], recipe.seed, cache)
        self.words = self._vocabulary()
        if not 2 <= recipe.negatives < len(self.words):
            raise UserError(f"{recipe.negatives} negatives need a larger vocabulary than {len(self.words)} words")
        dtype = torch.bfloat16 if recipe.bfloat16 else torch.float32
        self.lm = BidirectionalLM(BiLM(Options.parse(recipe.options)), len(self.words), dtype)
        types = WordTypes(self.corpus.types, self.lm.bilm.encoder)
        self.batcher = Batcher(types, len(self.words), recipe.negatives, recipe.seed)
        self.dense: list[nn.Parameter] = list(self.lm.bilm.parameters())
        self.adam = torch.optim.Adam(self.dense, recipe.lr, betas=recipe.betas, fused=True)
        self.row_adam = RowAdam([self.lm.softmax.weight, self.lm.softmax_bias.weight], recipe.betas)
        self.states = self.lm.start(recipe.rows)
        self.update, self.seconds = 0, 0.0
        self.pointwise = Pointwise.compiled() if compile else EAGER
        self._resume()

    def fit(self) -> None:
        """Runs to the end of the recipe, with a progress bar where there is a terminal."""
        recipe, saved, started = self.recipe, time.monotonic(), time.monotonic() - self.seconds
        columns = TextColumn("biLM"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        columns = (*columns, TextColumn("{task.fields[info]}"))
        told, before = self.update, self.seconds
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal) as progress:
            bar = progress.add_task("", total=recipe.updates, completed=self.update, info="")
            for batch in ahead(islice(self._batches(), recipe.updates - self.update)):
                loss = self._step(batch)
                self.update += 1
                self.seconds = time.monotonic() - started
                if self.update % 50 == 0 or self.update == recipe.updates:
                    info = self._log(loss.item(), (self.update - told) / max(self.seconds - before, 1e-9))
                    told, before = self.update, self.seconds
                    progress.update(bar, completed=self.update, info=info)
                    tell(f"biLM: update {self.update} of {recipe.updates}, {info}")
                if time.monotonic() - saved > self.every or self.update == recipe.updates:
                    self._save()
                    saved = time.monotonic()

    def card(self) -> dict:
        """What a reader of the weights must know: text, size, time and machine."""
        recipe = {**asdict(self.recipe), "betas": list(self.recipe.betas)}
        files = {path: sha256(self.root / path) for path, _ in self.recipe.text}
        if self.recipe.words is not None:  # its place is that of one machine, its content is not
            recipe["words"] = sha256(self.root / self.recipe.words)
        return {
            "recipe": recipe,
            "sha256": files,
            "text_tokens": len(self.corpus.tokens),
            "tokens_seen": self.update * self.recipe.rows * self.recipe.steps,
            "updates": self.update,
            "hours": round(self.seconds / 3600, 3),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}",
        }

    def _vocabulary(self) -> list[str]:
        recipe = self.recipe
        if recipe.words is None:
            return self.corpus.vocabulary(recipe.vocabulary)
        path = self.root / recipe.words
        with open_text(path) as lines:
            words = [line.rstrip("\n") for line in lines]
        if UNKNOWN not in words:
            raise UserError(f"no line {UNKNOWN}; a vocabulary for the softmax needs one", path)
        if len(words) != recipe.vocabulary or len(set(words)) != len(words):
            raise UserError(f"{len(set(words))} different words where the recipe asks for {recipe.vocabulary}", path)
        return self.corpus.by_frequency(words)

    def _step(self, batch: Batch) -> torch.Tensor:
        """One update; returns the sampled loss."""
        recipe, rate = self.recipe, self.recipe.rate(self.update)
        rows = step.touched(self.lm, batch)
        loss = step.loss(self.lm, batch, rows, self.states, self.pointwise)
        loss.backward()
        nn.utils.clip_grad_norm_(self.dense, recipe.clip)
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()
        self.adam.zero_grad()
        gradients = [row.grad for row in rows if row.grad is not None]
        self.row_adam.step(batch.ids, [row.detach() for row in rows], gradients, rate * recipe.softmax_lr)
        return loss.detach()

    def _batches(self) -> Iterator[Batch]:
        for update, pair in zip(count(self.update), self._chunks(), strict=False):
            yield self.batcher.make(pair, update)

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

    def _log(self, loss: float, updates_a_second: float) -> str:
        size = self.recipe.rows * self.recipe.steps
        rate, left = updates_a_second * size, (self.recipe.updates - self.update) / updates_a_second
        row = (self.update, self.update * size, f"{loss:.4f}", f"{math.exp(min(loss, 100)):.1f}")
        row = (*row, f"{rate:.0f}", f"{self.seconds:.1f}", f"{left:.0f}")
        path = self.folder / "log.csv"
        new = not path.exists()
        with open(path, "a", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([LOG, row] if new else [row])
        return f"{rate:,.0f} tokens/s, sampled loss {loss:.3f} (perplexity {math.exp(min(loss, 100)):.0f})"

    def _save(self) -> None:
        state = {
            "lm": self.lm.state_dict(),
            "adam": self.adam.state_dict(),
            "row_adam": self.row_adam.state_dict(),
            "states": [[tuple(layer) for layer in layers] for layers in self.states],
            "update": self.update,
            "seconds": self.seconds,
        }
        checkpoint.save(state, self.folder / "checkpoint.pt")

    def _resume(self) -> None:
        path = self.folder / "checkpoint.pt"
        if not path.exists():
            (self.folder / "log.csv").unlink(missing_ok=True)
            return
        state = checkpoint.load(path)
        self.lm.load_state_dict(state["lm"])
        self.adam.load_state_dict(state["adam"])
        self.row_adam.load_state_dict(state["row_adam"])
        self.states = [[State(*layer) for layer in layers] for layers in state["states"]]
        self.update, self.seconds = state["update"], state["seconds"]
        self._shorten_log()
        self.console.print(f"going on after update {self.update} of {self.recipe.updates}", style="dim")

    def _shorten_log(self) -> None:
        """Drops what was logged after the checkpoint: it comes again."""
        path = self.folder / "log.csv"
        if path.exists():
            header, *lines = path.read_text(encoding="utf-8").splitlines()
            kept = [line for line in lines if int(line.split(",")[0]) <= self.update]
            path.write_text("\n".join([header, *kept]) + "\n", encoding="utf-8")
