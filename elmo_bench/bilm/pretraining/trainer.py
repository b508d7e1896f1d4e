"""Training a biLM on plain text: a loop that can be stopped at any time and resumes from its last checkpoint.

Plain torch rather than Lightning: the data are one endless stream whose LSTM state is carried from update to update,
the softmax has a separate optimiser for single rows, and checkpoints must include all of this.
"""

from __future__ import annotations

import csv
import math
import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from io import BytesIO
from itertools import count, islice
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from torch import nn

from elmo_bench.bilm.card import read_card
from elmo_bench.bilm.corpus import Corpus, most_frequent, sources
from elmo_bench.bilm.lm import (
    BidirectionalLM,
    Chunk,
    WordTypes,
    chunks,
    has_softmax,
    load_lm,
    read_lm,
    read_vocabulary,
    softmax_files,
)
from elmo_bench.bilm.lstm import State
from elmo_bench.bilm.model import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.bilm.pretraining import step
from elmo_bench.bilm.pretraining.parallel import ProcessGroup
from elmo_bench.bilm.pretraining.recipe import Recipe, sha256
from elmo_bench.bilm.pretraining.step import Batcher, UpdateInput
from elmo_bench.bilm.weights import stored_dtype
from elmo_bench.nn.numerics import Fault, Watch, all_finite, bfloat16_pays
from elmo_bench.nn.packing import ahead, pinned
from elmo_bench.system.console import tell
from elmo_bench.system.errors import UserError, explained
from elmo_bench.system.machine import keep_freed_memory
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.disk import writing
from elmo_bench.system.storage.files import others, replacing, write_bytes
from elmo_bench.system.storage.integrity import load_checkpoint
from elmo_bench.text.vocabulary import coverage


class Journal:
    """The file `log.csv` of a training's folder.

    Args:
        path: the file.
        opened: opens an additional W&B run in a folder; None: there is no such run.
    """

    def __init__(self, path: Path, opened: Callable[[Path], Any] | None = None):
        limits.regular(path)
        self.path = path
        self.run = opened and opened(path.parent)

    def write(self, values: dict[str, float]) -> None:
        """Adds a line, by the names of its columns, of which the first is `update`."""
        new = not self.path.exists()
        with writing(self.path), open(self.path, "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(values)
            writer.writerow(f"{value:.6g}" if isinstance(value, float) else value for value in values.values())
        if self.run:
            self.run.log(values, step=int(values["update"]))

    def shorten(self, update: int) -> None:
        """Drops the lines after an update, because a resumed run writes them again."""
        if not self.path.exists():
            return
        if update == 0:
            self.path.unlink()
            return
        header, *lines = self.path.read_text(encoding="utf-8").split("\n")
        kept = [line for line in lines if (match := re.match("[0-9]{1,18},", line)) and int(match[0][:-1]) <= update]
        with replacing(self.path) as file:
            file.write("\n".join([header, *kept]) + "\n")

    def close(self) -> None:
        if self.run:
            self.run.close()


SMALLER = "lower recipe.rows, recipe.steps or recipe.negatives, which changes the recipe and so the biLM"
LOW_COVERAGE = 0.1  # a vocabulary that covers a smaller share of the running words is not meant for the text
REMEDY = "force=true trains from the start"
CPU, ALONE = torch.device("cpu"), ProcessGroup()


class Trainer:
    """One training run in one folder.

    Args:
        recipe: the recipe of the biLM.
        root: folder that the recipe's paths are relative to.
        folder: the folder for checkpoint and log; if it contains a checkpoint, the run resumes from it.
        every: seconds between checkpoints.
        compile: on a GPU, compile the LSTMs' cells (worthwhile for more than a few minutes).
        device: where to compute.
        group: the processes that share the rows; each makes its own trainer with the same arguments.
        wandb: passed to `Journal` as `opened`.
    """

    def __init__(
        self,
        recipe: Recipe,
        root: Path,
        folder: Path,
        every: float = 300.0,
        compile: bool = False,
        device: torch.device = CPU,
        group: ProcessGroup = ALONE,
        wandb: Callable[[Path], Any] | None = None,
    ):
        self.recipe, self.root, self.folder, self.every = recipe, root, folder, every
        self.device, self.group = device, group
        self.eager = device.type == "cuda" and not compile
        self.console = Console(stderr=True, quiet=not group.first)
        folder.mkdir(parents=True, exist_ok=True)
        keep_freed_memory(however_large=True)
        torch.manual_seed(recipe.seed)
        self.console.print("reading the text", style="dim")
        self.corpus = Corpus.read(sources(root, recipe.text), recipe.seed)
        self.words = self._vocabulary()
        if recipe.negatives >= len(self.words):
            raise UserError(f"{recipe.negatives} negatives need a larger vocabulary than {len(self.words)} words")
        dtype = torch.bfloat16 if recipe.bfloat16 else torch.float32
        if recipe.bfloat16 and not bfloat16_pays(device):
            slow = "this processor multiplies bfloat16 slower than float32: bfloat16=false in the recipe is faster"
            self.console.print(slow, highlight=False, soft_wrap=True)
        self.lm = BidirectionalLM(BiLM(Options.parse(recipe.options)), len(self.words), dtype).to(device)
        types, share = WordTypes(self.corpus.types, self.lm.bilm.encoder), group.share(recipe.rows)
        self.batcher = Batcher(types, len(self.words), recipe.negatives, recipe.seed, recipe.negatives_each, share)
        self.lm.bilm.requires_grad_(not recipe.frozen)
        self.dense: list[nn.Parameter] = list(self.lm.bilm.parameters())
        group.average_during_backward(p for p in self.dense if p.requires_grad)
        self.tables = [self.lm.softmax.weight, self.lm.softmax_bias.weight]
        self.optimiser, self.row_optimiser = step.optimisers(recipe, self.dense, self.tables)
        self.states = self.lm.bilm.zeros(len(range(recipe.rows)[self.batcher.share]))
        self.first = self._start()
        self.update, self.seconds, self.watch = self.first, 0.0, Watch()
        self.writing: Future[None] | None = None
        self._resume()
        self.journal = Journal(folder / "log.csv", wandb) if group.first else None
        if self.journal:
            self.journal.shorten(self.update)

    def fit(self, stop: int | None = None) -> None:
        """Trains to the end of the recipe or to update `stop`, with a progress bar on a terminal."""
        recipe, device, end, saved = self.recipe, self.device, self.recipe.end(stop), time.monotonic()
        doing = f"training on {recipe.rows * recipe.steps} tokens ({recipe.rows} rows of {recipe.steps} steps)"
        started = saved - self.seconds
        columns = TextColumn("biLM"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        columns = (*columns, TextColumn("{task.fields[info]}"))
        logged = self.update, self.seconds
        with (
            torch.compiler.set_stance("force_eager") if self.eager else nullcontext(),
            ThreadPoolExecutor(1, "checkpoint") as self.writer,  # at its end, the last checkpoint is written
            Progress(*columns, console=self.console, disable=not self.console.is_terminal) as progress,
        ):
            bar = progress.add_task("", total=recipe.updates, completed=self.update, info="")
            numbered = zip(count(self.update), self._chunks(), strict=False)
            batches = ahead(pinned(self.batcher.make(pair, update), device) for update, pair in numbered)
            for batch in islice(batches, max(0, end - self.update)):
                with explained(lambda: doing, SMALLER):
                    loss = self._step(batch.to(device))
                self.update += 1
                self.seconds = time.monotonic() - started
                last = self.update == end
                if self.update % 50 == 0 or last:
                    self._log(loss, logged, progress, bar)
                    logged = self.update, self.seconds
                asked = self.group.size == 1 or self.update % 10 == 0  # processes decide together, every ten updates
                if last or (asked and self.group.agree(time.monotonic() - saved > self.every)):
                    self._save()
                    saved = time.monotonic()
            self._written()
        if self.journal:
            self.journal.close()

    def card(self) -> dict:
        """The model card: recipe, text, size, time and machine."""
        recipe = self.recipe.model_dump(mode="json")
        files = {}
        for path, _ in self.recipe.text:
            files |= {os.path.relpath(file, self.root): sha256(file) for file, _ in sources(self.root, [(path, None)])}
        if self.recipe.words is not None:  # the path is specific to one machine, the content is not
            recipe["words"] = sha256(self.root / self.recipe.words)
        if self.recipe.parent is not None:
            recipe["parent"] = sha256(self.root / self.recipe.parent[1])
        if self.recipe.start is not None:
            recipe["start"] = sha256(self.root / self.recipe.start / "weights.hdf5")
        return {
            "key": self.recipe.key(self.root),
            "recipe": recipe,
            "sha256": files,
            "text_tokens": len(self.corpus.tokens),
            "tokens_seen": self.update * self.recipe.rows * self.recipe.steps,
            "updates": self.update,
            "hours": round(self.seconds / 3600, 3),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores, torch {torch.__version__}",
        }

    @property
    def dtype(self) -> torch.dtype:
        """The type of the exported numbers: a tuned biLM keeps its parent's, so that nothing is rounded."""
        return torch.float16 if self.recipe.parent is None else stored_dtype(self.root / self.recipe.parent[1])

    def _vocabulary(self) -> list[str]:
        recipe = self.recipe
        if recipe.parent is not None and has_softmax(folder := (self.root / recipe.parent[1]).parent):
            return self._covering(softmax_files(folder)[1])
        if recipe.words is None:
            return most_frequent(self.corpus.counts, recipe.vocabulary)
        return self.corpus.by_frequency(self._covering(self.root / recipe.words, recipe.vocabulary))

    def _covering(self, path: Path, size: int | None = None) -> list[str]:
        """A given vocabulary; prints the share of the text that it covers. Raises `UserError` if that is too small."""
        words = read_vocabulary(path, size)
        remedy, total = "is it a list of its words, one per line and nothing else?", len(self.corpus.tokens)
        known = total - self.corpus.unknown(words)[0]
        message = coverage(path, known, total, "running words of the text", LOW_COVERAGE, remedy)
        self.console.print(message, style="dim", highlight=False, soft_wrap=True)
        return words

    def _start(self) -> int:
        """Loads the weights of the biLM that this run tunes or continues; returns the number of its updates."""
        if self.recipe.parent is not None:
            options, weights = (self.root / path for path in self.recipe.parent)
            if has_softmax(weights.parent):
                self.lm.load_state_dict(read_lm(options, weights)[0].state_dict())
            else:
                self.lm.bilm.load_state_dict(BiLM.from_files(options, weights).state_dict())
        if self.recipe.start is None:
            return 0
        folder = self.root / self.recipe.start
        earlier, words = load_lm(folder)
        if earlier.bilm.options != self.lm.bilm.options or words != self.words:
            raise UserError("a biLM of other sizes or with another vocabulary; recipe.start needs the same", folder)
        updates = read_card(folder).get("updates")
        if not isinstance(updates, int):
            raise UserError("its card.json does not give the update at which it stopped", folder)
        self.lm.load_state_dict(earlier.state_dict())
        return updates

    def _step(self, batch: UpdateInput) -> torch.Tensor:
        """One update; returns the sampled loss of this process's rows."""
        recipe, rate = self.recipe, self.recipe.rate(self.update, self.first)
        rows = step.touched(self.lm, batch)
        self.group.average_during_backward(rows)
        seed = (recipe.seed * 1_000_003 + self.update) * self.group.size + self.group.rank  # of update and process
        loss = step.loss(self.lm, batch, rows, self.states, step.Dropout(recipe.dropout, seed, self.device))
        (loss * recipe.loss_times).backward()
        self.group.received()
        gradients = [row.grad for row in rows if row.grad is not None]
        clipped = [*self.dense, *rows] if recipe.clip_softmax else self.dense
        norm = nn.utils.clip_grad_norm_(clipped, recipe.clip)
        if self.group.size == 1:  # a process must not stop alone; the gradients are averaged over all
            self._stop_at(self.watch.add(self.update + 1, "loss", loss))
        self._stop_at(self.watch.add(self.update + 1, "gradient", norm))
        if rate:  # a step of length 0 could still turn -0.0 into 0.0
            for table, gradient in zip(self.tables, gradients, strict=True):
                step.give_rows(table, batch.ids, gradient)
            step.change(self.optimiser, rate)
            step.change(self.row_optimiser, rate * recipe.softmax_lr)
        self.lm.zero_grad()
        return loss.detach()

    def _stop_at(self, fault: Fault | None) -> None:
        """Raises `UserError` for a number that is not finite."""
        if fault is None:
            return
        saved = "the last checkpoint is older" if self._checkpoint.exists() else "there is no checkpoint yet"
        rate = self.recipe.rate(fault.step - 1, self.first)
        raise UserError(
            f"update {fault.step}: the {fault.what} is {fault.value} at learning rate {rate:g}; {saved}; "
            "lower recipe.lr or recipe.clip"
        )

    @property
    def _checkpoint(self) -> Path:
        return self.folder / "checkpoint.pt"

    def _chunks(self) -> Iterator[tuple[Chunk, Chunk]]:
        """The chunks of repeated passes over the text, from the current update on."""
        streams, recipe = self.corpus.streams(self.words), self.recipe
        per_pass = len(streams[0].inputs) // recipe.rows // recipe.steps
        if not per_pass:
            raise UserError(f"the training text is too short for {recipe.rows} rows of {recipe.steps} steps")
        first = self.update % per_pass
        while True:
            yield from zip(*(chunks(stream, recipe.rows, recipe.steps, first) for stream in streams), strict=True)
            first = 0

    def _log(self, loss: torch.Tensor, logged: tuple[int, float], progress: Progress, bar: TaskID) -> None:
        """Logs the progress; `logged` is the update and the seconds at the previous log entry."""
        loss = self.group.mean(loss)
        self._stop_at(self.watch.look() or self.watch.add(self.update, "loss", loss) or self.watch.look())
        if self.journal is None:
            return
        rate = (self.update - logged[0]) / max(self.seconds - logged[1], 1e-9)
        size, left = self.recipe.rows * self.recipe.steps, self.recipe.updates - self.update
        values = {
            "update": self.update,
            "tokens": self.update * size,  # counted once for both directions
            "loss": loss.item(),  # sampled, in nats per token; its perplexity is not that of the full softmax
            "perplexity": math.exp(min(loss.item(), 100.0)),
            "tokens_a_second": rate * size,
            "seconds": self.seconds,
            "seconds_left": left / rate,
        }
        self.journal.write(values)
        line = "{tokens_a_second:,.0f} tokens/s, sampled loss {loss:.3f} (perplexity {perplexity:.0f})".format_map(
            values
        )
        progress.update(bar, completed=self.update, info=line)
        tell(f"biLM: update {self.update} of {self.recipe.updates}, {line}")

    def _save(self) -> None:
        """Writes a checkpoint, unless the weights are no longer finite; training continues while a thread writes."""
        self._stop_at(self.watch.look())
        if not all_finite(self.lm.parameters()):
            self._stop_at(Fault(self.update, "weight", math.nan))
        states = [self.group.gather(part, 2) for part in self.states]
        if self.group.first:
            state = {
                "lm": self.lm.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "row_optimiser": self.row_optimiser.state_dict(),
                "states": [list(zip(*direction, strict=True)) for direction in zip(*states, strict=True)],
                "update": self.update,
                "seconds": self.seconds,
            }
            self._written()
            torch.save(state, copy := BytesIO())
            self.writing = self.writer.submit(write_bytes, self._checkpoint, copy.getbuffer())

    def _written(self) -> None:
        """Waits until the previous checkpoint is written; raises its error, if any."""
        if self.writing is not None:
            self.writing.result()

    def _resume(self) -> None:
        if not self._checkpoint.exists():
            return
        if why := others(self._checkpoint):
            raise UserError(f"{why}; {REMEDY}", self._checkpoint)
        try:
            self._go_on(load_checkpoint(self._checkpoint, REMEDY))
        except (LookupError, TypeError, AttributeError, ValueError, RuntimeError) as error:
            reason = f"{type(error).__name__}: {error}"
            raise UserError(f"not a checkpoint of this training ({reason}); {REMEDY}", self._checkpoint) from error
        self.console.print(f"resuming after update {self.update} of {self.recipe.updates}", style="dim")

    def _go_on(self, state: dict[str, Any]) -> None:
        """Restores the content of a checkpoint; raises an error of Python or torch if its structure differs."""
        if "param_groups" not in state["row_optimiser"]:
            raise UserError(f"written by an earlier version of this package; {REMEDY}", self._checkpoint)
        self.lm.load_state_dict(state["lm"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.row_optimiser.load_state_dict(state["row_optimiser"])
        share, device = self.batcher.share, self.device
        parts = [
            torch.stack([torch.stack([layer[part][share] for layer in layers]) for layers in state["states"]])
            for part in (0, 1)
        ]
        self.states = State(*(part.to(device) for part in parts))
        self.update, self.seconds = int(state["update"]), float(state["seconds"])
