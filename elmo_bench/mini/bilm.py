"""The biLM of the mini scale: trained on the generated text where it is not there yet, in about a minute and a half."""

from __future__ import annotations

from pathlib import Path

from elmo_bench.locks import held


def ensure_bilm(folder: Path) -> Path:
    """The folder of the biLM inside a mini data set; conf/pretrain/mini.yaml is its recipe.

    Interrupted, the training goes on from its last checkpoint; of several processes one trains and the others wait. On
    one thread, whatever the machine has: for matrices this small it is the fastest, and it leaves the other cores to
    the baseline.
    """
    output = folder / "bilm"
    if (output / "card.json").is_file():
        return output
    import torch

    from elmo_bench import cli
    from elmo_bench.pretrain import make_recipe, pretrain

    work = folder / "pretrain"
    threads = torch.get_num_threads()
    with held(work, f"another process is training the biLM of {folder}; waiting for it"):
        if not (output / "card.json").is_file():
            cfg = cli.compose(["pretrain=mini", f"root={folder}"], "pretrain")
            torch.set_num_threads(1)
            try:
                pretrain(make_recipe(cfg.recipe), folder, work, output, cfg.compile, cfg.every)
            finally:
                torch.set_num_threads(threads)
    return output
