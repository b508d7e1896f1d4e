"""The biLM of the mini scale: the one that comes with the project, or else trained on the generated text.

`models/mini` saves the first result 10 to 20 minutes, and gives every machine the same vectors.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from elmo_bench.configuration import composing
from elmo_bench.configuration.schema import BilmConfig, RunConfig
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.files import write_bytes
from elmo_bench.system.storage.integrity import check_digests
from elmo_bench.system.storage.locks import held

VERSION = 2  # of the training: raised when the same recipe gives another model, rounding aside


class MiniBilm:
    """Makes the biLM of `bilm=mini`: the folder of its options lies in that of the text.

    It is copied from `models_root` if the biLM there has the same recipe and text, and trained otherwise. Interrupted
    training resumes; other processes wait. A biLM of another recipe, or with damaged files, is replaced.
    """

    seeded = True

    def __init__(self, bilm: BilmConfig, roots: RunConfig):
        assert bilm.options is not None
        self.folder, self.seed = Path(bilm.options).parent.parent, bilm.seed
        self.brought = places.shipped(roots.models_root, "mini")
        made = self.folder / composing.seeded("bilm", bilm.seed)
        if [bilm.options, bilm.weights] != [str(made / name) for name in ("options.json", "weights.hdf5")]:
            raise UserError("bilm=mini makes its own files; name others by bilm=custom bilm.options=.. bilm.weights=..")

    def recipe(self) -> dict[str, Any]:
        """conf/pretrain/mini.yaml with the seed of the block; the text is that of the scale."""
        plain: Any = OmegaConf.to_container(_page(places.CONF, self.folder, self.seed).recipe, resolve=True)
        return {"version": VERSION, **plain}

    def make(self) -> Path:
        """The folder of the biLM."""
        from elmo_bench.bilm.card import CARD, FILES, is_private  # imports torch, which a recorded run does not need

        output, work = (self.folder / composing.seeded(name, self.seed) for name in ("bilm", "pretrain"))
        if is_private(output) and self._is_trained(output):
            return output
        with held(work, "biLM: being trained once for both runs", wait=True):
            if is_private(output) and self._is_trained(output):
                return output
            if self._is_trained(self.brought):
                for name in (*FILES, CARD):  # a folder without a card is not trained
                    write_bytes(output / name, (self.brought / name).read_bytes())
            else:
                self._train(work, output)
        return output

    def _is_trained(self, bilm: Path) -> bool:
        """Whether there is a whole biLM whose card names this recipe and this text."""
        from elmo_bench.bilm.card import check_folder, read_card

        try:
            card = read_card(bilm)
            check_folder(bilm)
            check_digests(self.folder, card["sha256"], "train the biLM")
        except (KeyError, UserError):
            return False
        named = card.get("recipe")
        return isinstance(named, dict) and self.recipe().items() <= {**named, "version": VERSION}.items()

    def _train(self, work: Path, output: Path) -> None:
        import torch

        from elmo_bench.bilm.pretraining.run import make_recipe, pretrain

        of_seed = "" if self.seed == 1 else f" from seed {self.seed}"
        print(f"training a biLM on the generated text{of_seed}, 10 to 20 minutes", flush=True)
        threads, page = torch.get_num_threads(), _page(places.CONF, self.folder, self.seed)
        torch.set_num_threads(1)  # the fastest for matrices this small; leaves the other cores to the baseline
        try:
            pretrain(make_recipe(page.recipe), self.folder, work, output, page.compile, page.every)
        finally:
            torch.set_num_threads(threads)


@cache
def _page(conf: Path, folder: Path, seed: int) -> DictConfig:
    """conf/pretrain/mini.yaml with this text and seed; composed once for all runs of a sweep."""
    return composing.compose(["pretrain=mini", f"root={folder}", f"recipe.seed={seed}"], "pretrain")
