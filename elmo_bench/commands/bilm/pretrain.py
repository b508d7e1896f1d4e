"""A biLM from plain text: `elmo-bench pretrain scale=open data_root=FOLDER`, or `make pretrain SCALE=open`."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from elmo_bench.commands import usage
from elmo_bench.commands.command import Argument, Command, files
from elmo_bench.configuration import checks, pages
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal.console import choices

COMMAND = Command(
    (
        Argument("scale", "the recipe, a file in conf/pretrain/", "open"),
        usage.ROOTS[0],
        Argument("output", "folder for the biLM; by default models/ and the recipe's name", None, "FOLDER"),
        Argument("every", "seconds between checkpoints", 300),
        Argument("compile", "compile the pointwise work; false where there is no C++ compiler", True, kind=bool),
        Argument("stop", "stop and export after this update; recipe.start=FOLDER continues it", None, "UPDATE"),
        Argument("force", "train again although there is a biLM", False, kind=bool),
        Argument("device", "auto, cpu or cuda", "auto"),
        Argument("wandb", "send the log to W&B too, offline without a key", None, "{project:NAME}"),
    ),
    (
        ("scale=open data_root=FOLDER", "reads the recipe's text below FOLDER"),
        ("scale=original data_root=FOLDER device=cuda", "the paper's biLM by the release's recipe"),
    ),
    (
        "Writes options.json and weights.hdf5 in the official layout, the softmax and its vocabulary, and a card with "
        "perplexities. Running the command again resumes from the last checkpoint.",
        "On several GPUs: torchrun --no-python --nproc-per-node=N elmo-bench pretrain KEY=VALUE ...",
    ),
    again="running the command again resumes from the last checkpoint",
    overrides=True,
    more=lambda: [files(["pretrain"])],
    page="bilms",
)


def _chosen(arguments: list[str]) -> tuple[list[str], bool]:
    """The arguments as Hydra takes them, and whether they ask for the configuration alone, with `--cfg job`.

    A configuration file may leave out keys that every recipe has, for which Hydra wants a plus.
    """
    from elmo_bench.bilm.pretraining.recipe import Recipe

    keys = {f"recipe.{each.name}" for each in dataclasses.fields(Recipe)}
    for scale in (a.removeprefix("scale=") for a in arguments if a.startswith("scale=")):
        if scale not in places.named("pretrain"):
            raise UserError(f"scale={scale}: no recipe for it; {choices(scale, places.named('pretrain'))}")
    chosen = [f"pretrain={a.removeprefix('scale=')}" if a.startswith("scale=") else a for a in arguments]
    chosen = [f"++{a.lstrip('+')}" if a.lstrip("+").partition("=")[0] in keys else a for a in chosen]
    if shown := chosen.count("--cfg") == 1 and "job" in chosen:
        chosen = [a for a in chosen if a not in ("--cfg", "job")]
    return chosen, shown


def _make_text(scale: str, root: Path, cache_root: str) -> None:
    """Generates missing or damaged text of the mini scale again: another text would make another biLM."""
    from elmo_bench.configuration import schema
    from elmo_bench.identity.makers import maker
    from elmo_bench.mini.data import mend

    if scale in places.named("scale"):
        cfg = pages.compose([f"scale={scale}"])
        cfg.cache_root = cache_root
        run = schema.typed(cfg)
        if (text := maker(run.scale, run.places)) and Path(run.scale.folder or "").absolute() == root:
            text.make()
            return
    mend(root)


def main() -> None:
    """The entry point."""
    from rich.console import Console

    from elmo_bench.bilm.card import REMEDY, check_folder, read_card
    from elmo_bench.bilm.pretraining.parallel import leave
    from elmo_bench.bilm.pretraining.run import is_of, make_recipe, pretrain, show

    chosen, shown = _chosen(sys.argv[1:])
    cfg = pages.compose(chosen, "pretrain")
    if shown:
        print(OmegaConf.to_yaml(cfg), end="")
        return
    if cfg.root is None:
        raise UserError(f"no training text: give {places.DATA_ROOT}, a folder that contains lm/")
    if cfg.stop is not None:
        checks.whole(cfg.stop, "stop", 0)
    checks.number(cfg.every, "every", ge=0)
    for name in ("compile", "force"):
        checks.one_of(cfg[name], name, (True, False))
    output, root = Path(cfg.output), Path(cfg.root).absolute()
    recipe = make_recipe(cfg.recipe, root)
    _make_text(cfg.name, root, cfg.cache_root)
    if output.exists() and not (output / "card.json").is_file():
        raise UserError("exists, but is not a biLM trained here (no card.json); give another output=", output)
    card = read_card(output, REMEDY) if output.exists() and not cfg.force else None
    if card and not is_of(card, recipe, root):
        raise UserError(
            "trained by another recipe or on other text; force=true replaces it, another output= keeps it", output
        )
    if card and card.get("updates", recipe.updates) >= recipe.end(cfg.stop):
        check_folder(output, REMEDY)
        print(f"{output} exists already; force=true trains it again", file=sys.stderr)
    else:
        work = Path(cfg.cache_root) / "pretrain"
        wandb: Any = OmegaConf.to_container(cfg.wandb) if cfg.wandb else None
        card = pretrain(recipe, root, work, output, cfg.compile, cfg.every, cfg.force, cfg.device, wandb, cfg.stop)
    if card:
        show(card, Console())
    leave()
