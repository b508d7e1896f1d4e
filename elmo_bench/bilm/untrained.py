"""The control `bilm=untrained`: a biLM as it is before training, of the sizes of the scale's own.

What a model gains with it comes from the architecture alone (characters, recurrence, width), not from unlabelled text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from elmo_bench.bilm.model import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.system.errors import UserError
from elmo_bench.system.locks import held

SEED = 1


def ensure(config: Any) -> Path:
    """Writes random weights to `config.bilm.weights`, unless weights that fit `config.bilm.options` are there.

    Raises:
        UserError: the options cannot be read, the weights cannot be written.
    """
    options, weights = Path(config["bilm"]["options"]), Path(config["bilm"]["weights"])
    with held(weights.parent, f"another process is writing {weights}; waiting for it"):
        if not _fits(options, weights):
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(SEED)
                BiLM(Options.read(options)).export(weights.with_suffix(".json"), weights)
    return weights


def _fits(options: Path, weights: Path) -> bool:
    try:
        return weights.is_file() and bool(BiLM.from_files(options, weights))
    except UserError:
        return False
