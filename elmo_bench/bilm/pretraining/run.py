"""A biLM from plain text: training, export and the perplexities of its card.

What it writes: options.json and weights.hdf5 in the official layout, the softmax and its vocabulary (for perplexity and
fine-tuning), and a card with perplexities. A training that was stopped resumes from its last checkpoint.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table
from safetensors.torch import save_file

from elmo_bench.bilm.corpus import Corpus, sources
from elmo_bench.bilm.lm import BidirectionalLM, load_lm
from elmo_bench.bilm.pretraining.parallel import Group, choose_device
from elmo_bench.bilm.pretraining.recipe import Recipe
from elmo_bench.bilm.pretraining.trainer import Trainer
from elmo_bench.system.errors import UserError
from elmo_bench.system.locks import alone


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
        The model card; empty in all processes but the first.
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
