"""The biLM of the mini scale: trained on the generated text where it is not there yet, in about a minute and a half."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from elmo_bench.configuration import pages
from elmo_bench.configuration.schema import BilmConfig, Places
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.locks import held

VERSION = 2  # of the training: raised when the same recipe gives another model, rounding aside


class MiniBilm:
    """Makes the biLM of `bilm=mini`: the folder of its options lies in that of the text."""

    seeded = True

    def __init__(self, bilm: BilmConfig, roots: Places):
        assert bilm.options is not None
        self.folder, self.seed = Path(bilm.options).parent.parent, bilm.seed

    def recipe(self) -> dict[str, Any]:
        """conf/pretrain/mini.yaml with the seed of the block; the text is that of the scale."""
        return {"version": VERSION, **copy.deepcopy(_recipe(places.CONF, self.folder, self.seed))}

    def make(self) -> Path:
        """The folder of the biLM."""
        return ensure_bilm(self.folder, self.seed)


def ensure_bilm(folder: Path, seed: int = 1) -> Path:
    """The folder of the biLM of a seed inside a mini data set; conf/pretrain/mini.yaml is its recipe.

    An interrupted training resumes from its last checkpoint; of several processes one trains and the others wait. One
    of another recipe, or with damaged files, is replaced. On one thread, whatever the machine has: for matrices this
    small it is the fastest, and it leaves the other cores to the baseline.
    """
    output, work = (folder / pages.seeded(name, seed) for name in ("bilm", "pretrain"))
    cfg = _page(folder, seed)
    if _trained(output, cfg.recipe):
        return output
    import torch

    from elmo_bench.bilm.pretraining.run import make_recipe, pretrain

    threads = torch.get_num_threads()
    with held(work, f"another process is training the biLM of {output}; waiting for it"):
        if not _trained(output, cfg.recipe):
            of_seed = "" if seed == 1 else f" from seed {seed}"
            print(f"training a biLM on the generated text{of_seed}, about a minute and a half", flush=True)
            torch.set_num_threads(1)
            try:
                pretrain(make_recipe(cfg.recipe), folder, work, output, cfg.compile, cfg.every)
            finally:
                torch.set_num_threads(threads)
    return output


def _page(folder: Path, seed: int) -> DictConfig:
    return pages.compose(["pretrain=mini", f"root={folder}", f"recipe.seed={seed}"], "pretrain")


@cache
def _recipe(conf: Path, folder: Path, seed: int) -> dict[str, Any]:
    """Plain values; composed once for all runs of a sweep."""
    recipe: Any = OmegaConf.to_container(_page(folder, seed).recipe, resolve=True)
    return recipe


def _trained(output: Path, recipe: DictConfig) -> bool:
    """Whether there is a biLM whose card names this recipe, and whose files are those of the card."""
    from elmo_bench.bilm.card import check_folder, read_card  # imports torch, which a recorded run does not need

    try:
        named = read_card(output).get("recipe")
        check_folder(output)
    except UserError:
        return False
    if not isinstance(named, dict):
        return False
    wanted = OmegaConf.to_container(recipe, resolve=True)
    return isinstance(wanted, dict) and all(named.get(key) == value for key, value in wanted.items())
