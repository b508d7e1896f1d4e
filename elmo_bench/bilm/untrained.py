"""The control `bilm=untrained`: a biLM before training, with the sizes of the scale's own biLM.

A model's gain with it comes from the architecture (characters, recurrence, width), not from unlabelled text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from elmo_bench.bilm.card import check_files
from elmo_bench.configuration.schema import BilmConfig
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text, yaml_text
from elmo_bench.system.storage.integrity import is_made_here, note
from elmo_bench.system.storage.locks import held

SEED = 1
VERSION = 1  # raised when the same sizes and seed give other weights


class UntrainedBilm:
    """Makes random weights and their options file.

    Args:
        bilm: names the two files to write, and as `like` the source of the sizes: an options file, or a file in
            conf/pretrain.
        places: not used.
    """

    def __init__(self, bilm: BilmConfig, places: Any = None):
        assert bilm.options is not None
        assert bilm.weights is not None
        assert bilm.like is not None
        self.options, self.weights, self.like = Path(bilm.options), Path(bilm.weights), Path(bilm.like)

    def recipe(self) -> dict[str, Any]:
        """The sizes. Raises `UserError` if they cannot be read."""
        return {"untrained": VERSION, "options": self._sizes()}

    def make(self) -> Path:
        """Writes both files, unless weights of these sizes exist, unchanged since they were written."""
        import torch

        from elmo_bench.bilm.model import BiLM
        from elmo_bench.bilm.options import Options

        sizes = self._sizes()
        with held(self.weights.parent, "untrained biLM: being written once for both runs", wait=True):
            try:
                fits = is_made_here(self.weights) and Options.read(self.options) == Options.parse(sizes)
            except UserError:
                fits = False
            if not fits:
                with torch.random.fork_rng(devices=[]):
                    torch.manual_seed(SEED)
                    BiLM(Options.parse(sizes, self.like)).export(self.options, self.weights)
                note(self.options)
                note(self.weights)
        return self.weights

    def _sizes(self) -> dict[str, Any]:
        check_files(self.like)
        if self.like.suffix != ".yaml":
            return json_text.read(self.like)
        sizes = OmegaConf.select(yaml_text.read(self.like), "recipe.options")
        if not isinstance(sizes, DictConfig):
            raise UserError("does not contain the options of a biLM, a block `recipe.options`", self.like)
        plain: Any = OmegaConf.to_container(sizes)
        return plain
