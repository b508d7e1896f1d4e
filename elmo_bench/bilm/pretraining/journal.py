"""The training log: a line of a CSV file every few updates, also sent to the progress bar and to W&B."""

from __future__ import annotations

import csv
import math
import re
from pathlib import Path
from typing import Any

from elmo_bench.system.storage.disk import writing
from elmo_bench.system.storage.files import replacing
from elmo_bench.system.wandb_runs import WandbRun, opened


def entry(update: int, size: int, loss: float, updates_a_second: float, seconds: float, left: int) -> dict[str, float]:
    """A line of the log, by the names of its columns.

    Args:
        update: the last one, of `size` tokens, counted once for both directions.
        loss: sampled, in nats per token; its perplexity is not comparable with that of the full softmax.
        updates_a_second: since the line before.
        seconds: of training so far.
        left: updates that remain.
    """
    return {
        "update": update,
        "tokens": update * size,
        "loss": loss,
        "perplexity": math.exp(min(loss, 100.0)),
        "tokens_a_second": updates_a_second * size,
        "seconds": seconds,
        "seconds_left": left / updates_a_second,
    }


class Journal:
    """The file `log.csv` of a training's folder.

    Args:
        path: of the file.
        wandb: keyword arguments of an additional W&B run, offline without a key; None: no W&B run.
    """

    def __init__(self, path: Path, wandb: dict[str, Any] | None = None):
        self.path = path
        self.run = WandbRun() if wandb is None else opened(path.parent, **wandb)

    def write(self, values: dict[str, float]) -> None:
        """Adds a line."""
        new = not self.path.exists()
        with writing(self.path), open(self.path, "a", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(values)
            writer.writerow(f"{value:.6g}" if isinstance(value, float) else value for value in values.values())
        self.run.log(values, step=int(values["update"]))

    def shorten(self, update: int) -> None:
        """Drops the lines after an update, which a resumed run writes again."""
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
        self.run.close()
