"""A biLM from plain text: `python -m elmo_bench.pretrain scale=open data_root=...`.

Stopped anywhere, the same command goes on from the last checkpoint. What it writes: options.json and weights.hdf5 in
the official layout, the softmax and its vocabulary (for perplexity and fine-tuning), and a card with perplexities.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table
from safetensors.torch import save_file

from elmo_bench import cli
from elmo_bench.bilm.corpus import Corpus, sources
from elmo_bench.bilm.lm import BidirectionalLM, load_lm
from elmo_bench.bilm.pretraining.parallel import Group, choose_device
from elmo_bench.bilm.pretraining.recipe import Recipe
from elmo_bench.bilm.pretraining.trainer import Trainer
from elmo_bench.errors import UserError
from elmo_bench.locks import alone


def pretrain(
    recipe: Recipe,
    root: Path,
    work: Path,
    output: Path,
    compile: bool = False,
    every: float = 300.0,
    force: bool = False,
    device: str = "cpu",
    wandb: dict[str, Any] | None = None,
) -> dict:
    """Trains, exports and measures.

    Args:
        recipe: what to train.
        root: folder that the recipe's text lies under.
        work: checkpoints live in a folder of this one named by the recipe and the content of its text.
        output: folder for the finished biLM; it appears only when it is whole.
        compile: compile the pointwise work (worth it beyond minutes, needs a C++ compiler).
        every: seconds between checkpoints.
        force: begins anew, whatever was trained before.
        device: auto, cpu or cuda; under torchrun each process has its own share of the rows.
        wandb: arguments of a W&B run that gets what the log gets.

    Returns:
        The model card.
    """
    folder, place = work / recipe.key(root), choose_device(device)
    group = Group.join(place)
    with alone(folder, "another process is training this biLM; wait for it, or stop it first", group.first):
        if force and group.first:
            (folder / "checkpoint.pt").unlink(missing_ok=True)
        group.wait()
        trainer = Trainer(recipe, root, folder, every, compile, work / "text", place, group, wandb)
        trainer.fit()
        card = _write(trainer, root, output) if group.first else {}
        group.wait()
    return card


def _write(trainer: Trainer, root: Path, output: Path) -> dict:
    """Exports and measures; `output` appears only when it is whole."""
    partial = output.with_name(f".{output.name}.{os.getpid()}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        export(trainer.lm, trainer.words, partial)
        found = perplexities(partial, root, trainer.recipe.heldout, trainer.device)
        card = {**trainer.card(), "perplexity": found}
        (partial / "card.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
        if output.exists():
            shutil.rmtree(output)
        partial.rename(output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return card


def export(lm: BidirectionalLM, words: list[str], folder: Path) -> None:
    """The biLM in the official layout and its softmax, all in float16."""
    lm.bilm.export(folder / "options.json", folder / "weights.hdf5", torch.float16)
    softmax = {"weight": lm.softmax.weight, "bias": lm.softmax_bias.weight.squeeze(-1)}
    half = {name: tensor.detach().half().contiguous() for name, tensor in softmax.items()}
    save_file(half, folder / "softmax.safetensors")
    (folder / "vocabulary.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")


def perplexities(
    folder: Path, root: Path, texts: list[tuple[str, int | None]], device: torch.device | None = None
) -> dict[str, dict[str, float]]:
    """Forward, backward and mean full-softmax perplexity of an exported biLM on each text, by the text's path."""
    lm, words = load_lm(folder)
    lm.to(device)
    found = {}
    for path, tokens in texts:
        corpus = Corpus.read(sources(root, [(path, tokens)]))
        found[path] = lm.perplexity(corpus, words)
    return found


def show(card: dict[str, Any], console: Console) -> None:
    """Prints the perplexities of a card."""
    hours, tokens = card["hours"], card["tokens_seen"] / 1e6
    table = Table(
        "held-out text", "tokens", "forward", "backward", "mean", title=f"{tokens:.1f}M tokens, {hours:.2f} h"
    )
    for path, row in card["perplexity"].items():
        table.add_row(path, str(row["tokens"]), *(f"{row[key]:.1f}" for key in ("forward", "backward", "mean")))
    console.print(table)


def make_recipe(cfg: DictConfig) -> Recipe:
    """The `recipe:` block of a page of conf/pretrain/."""
    values: dict[str, Any] = OmegaConf.to_container(cfg, resolve=True)  # type: ignore[assignment]
    for key in ("text", "heldout"):
        values[key] = [tuple(pair) for pair in values[key]]
    values["betas"] = tuple(values.get("betas", (0.9, 0.99)))
    unknown = sorted(set(values) - {field.name for field in fields(Recipe)})
    if unknown:
        raise UserError(f"recipe.{unknown[0]}: there is no such key; elmo_bench/bilm/pretraining/recipe.py lists them")
    return Recipe(**values)


def finished(output: Path) -> dict[str, Any]:
    """The card of a finished biLM. Raises `UserError` where it cannot be read."""
    try:
        return json.loads((output / "card.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UserError(f"no readable card.json ({error}); force=true trains anew", output) from None


def is_of(card: dict[str, Any], recipe: Recipe, root: Path) -> bool:
    """Whether a card is of this recipe and of a text with the content that it has now; older cards do not say."""
    return "key" not in card or card["key"] == recipe.key(root)


def main() -> None:
    """The entry point."""
    pages = [f"pretrain={a.removeprefix('scale=')}" if a.startswith("scale=") else a for a in sys.argv[1:]]
    cfg = cli.compose(pages, "pretrain")
    if cfg.root is None:
        raise UserError("where is the text? give data_root=FOLDER (make: DATA_ROOT=FOLDER) with lm/ in it")
    output, root, recipe = Path(cfg.output), Path(cfg.root), make_recipe(cfg.recipe)
    if output.exists() and not (output / "card.json").is_file():
        raise UserError("is there, but is no biLM that was trained here (no card.json); give another output=", output)
    if output.exists() and not cfg.force:
        card = finished(output)
        if not is_of(card, recipe, root):
            raise UserError(
                "trained by another recipe or on other text; force=true replaces it, output= keeps it", output
            )
        print(f"{output} is there already; force=true trains it anew", file=sys.stderr)
    else:
        work, wandb = Path(cfg.cache_root) / "pretrain", OmegaConf.to_container(cfg.wandb) if cfg.wandb else None
        card = pretrain(
            recipe, root, work, output, cfg.compile, cfg.every, cfg.force, cfg.device, wandb  # type: ignore[arg-type]
        )  # fmt: skip
    if card:
        show(card, Console())


if __name__ == "__main__":
    cli.report(main)
