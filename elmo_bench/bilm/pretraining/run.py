"""Pretrains a biLM on plain text: training, export and perplexities.

Writes options.json and weights.hdf5 in the official layout, the softmax and its vocabulary (for perplexity and
fine-tuning), and a card with perplexities. An interrupted run resumes from its last checkpoint.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from glob import glob
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig, OmegaConf
from rich.console import Console
from rich.table import Table
from safetensors.torch import save

from elmo_bench.bilm.card import CARD, write_card
from elmo_bench.bilm.corpus import Corpus, sources
from elmo_bench.bilm.lm import BidirectionalLM, load_lm
from elmo_bench.bilm.pretraining.parallel import ProcessGroup, choose_device
from elmo_bench.bilm.pretraining.recipe import Recipe
from elmo_bench.bilm.pretraining.trainer import Trainer
from elmo_bench.configuration.keys import valid
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import outputs
from elmo_bench.system.storage.files import write_bytes, write_text
from elmo_bench.system.storage.hashing import fingerprint
from elmo_bench.system.storage.locks import held


def pretrain(
    recipe: Recipe,
    root: Path,
    work: Path,
    output: Path,
    compile: bool = False,
    every: float = 300.0,
    force: bool = False,
    device: str = "cpu",
    wandb: Callable[[Path], Any] | None = None,
    stop: int | None = None,
    about: Mapping[str, Any] | None = None,
) -> dict:
    """Trains, exports and measures.

    Args:
        recipe: the recipe of the biLM.
        root: folder that the recipe's paths are relative to.
        work: contains the folder of checkpoints, which is named by a hash of the recipe and its text.
        output: folder for the finished biLM; it appears only when it is complete.
        compile: compile the LSTMs' cells (needs a C++ compiler; worthwhile for more than a few minutes).
        every: seconds between checkpoints.
        force: start from the beginning, ignoring any checkpoint.
        device: auto, cpu or cuda; under torchrun each process has its own share of the rows.
        wandb: opens in a folder a W&B run that also receives the log.
        stop: the update after which to stop and export the unfinished biLM; None: the recipe's last.
        about: further keys for the card.

    Returns:
        The model card; empty in all processes except the first.
    """
    folder, place = work / recipe.key(root), choose_device(device)
    group = ProcessGroup.join(place)
    outputs.apart(output, recipe.files(root))
    written = work / "outputs" / fingerprint(os.path.realpath(output))  # one lock, even if links lead to the folder
    with ExitStack() as locks:
        if group.first:
            locks.enter_context(held(folder, "another process is training this biLM; wait for it, or stop it first"))
            locks.enter_context(
                held(written, f"another process trains a biLM for {output}; wait for it, or stop it first")
            )
        if force and group.first:
            (folder / "checkpoint.pt").unlink(missing_ok=True)
        group.wait()
        before = outputs.begun(output, CARD) if group.first else None
        trainer = Trainer(recipe, root, folder, every, compile, place, group, wandb)
        trainer.fit(stop)
        card: dict = {}
        if group.first:
            with outputs.filled(output, CARD, before) as partial:
                export(trainer.lm, trainer.words, partial, trainer.dtype)
                measured = perplexities(partial, root, recipe.heldout, trainer.device)
                card = write_card(partial, {**trainer.card(), **(about or {}), "perplexity": measured})
        group.wait()
    return card


def export(lm: BidirectionalLM, words: list[str], folder: Path, dtype: torch.dtype = torch.float16) -> None:
    """The biLM in the official layout and its softmax, with numbers of one type."""
    lm.bilm.export(folder / "options.json", folder / "weights.hdf5", dtype)
    softmax = {"weight": lm.softmax.weight, "bias": lm.softmax_bias.weight.squeeze(-1)}
    numbers = {name: tensor.detach().cpu().to(dtype).contiguous() for name, tensor in softmax.items()}
    write_bytes(folder / "softmax.safetensors", save(numbers))
    write_text(folder / "vocabulary.txt", "".join(f"{word}\n" for word in words))


def perplexities(
    folder: Path, root: Path, texts: list[tuple[str, int | None]], device: torch.device | None = None
) -> dict[str, dict[str, Any]]:
    """Forward, backward and mean full-softmax perplexity of an exported biLM, for each text's path."""
    lm, words = load_lm(folder)
    lm.to(device)
    by_text = {}
    for path, tokens in texts:
        corpus = Corpus.read(sources(root, [(path, tokens)]))
        by_text[path] = lm.perplexity(corpus, words, name=path)
    return by_text


def show(card: dict[str, Any], console: Console) -> None:
    """Prints the perplexities of a card, and the number of words of each text that are not in the vocabulary."""
    hours, tokens = card["hours"], card["tokens_seen"] / 1e6
    columns = ("held-out text", "tokens", "unknown words", "forward", "backward", "mean")
    table = Table(*columns, title=f"{tokens:.1f}M tokens, {hours:.2f} h")
    for path, row in card["perplexity"].items():
        unknown = str(row.get("unknown_words", "-"))  # missing in older cards
        measured = (f"{row[key]:.1f}" for key in ("forward", "backward", "mean"))
        table.add_row(path, str(row["tokens"]), unknown, *measured)
    if card["perplexity"]:
        console.print(table)


def make_recipe(cfg: DictConfig, root: Path | None = None) -> Recipe:
    """The `recipe:` block of a file in conf/pretrain/.

    Args:
        cfg: the block.
        root: the folder of the text. Files missing there may be in the current folder.
    """
    values: dict[str, Any] = OmegaConf.to_container(cfg, resolve=True)  # type: ignore[assignment]
    for key in ("text", "heldout"):
        listed = values[key] or []  # a file, or a list of files or pairs
        listed = [listed] if isinstance(listed, str) else listed
        if key == "text" and not listed:
            raise UserError("recipe.text names no file")
        values[key] = [(each, None) if isinstance(each, str) else tuple(each) for each in listed]
        if root is not None:
            values[key] = [(_below(path, root), *tokens) for path, *tokens in values[key]]
    for key in ("words", "start", "parent"):
        if root is not None and values.get(key) is not None:
            values[key] = _below(values[key], root)
    return valid(Recipe, values, "recipe")


def _below(value: Any, root: Path) -> Any:
    """A path below `root`, or below the current folder if it exists only there; also for each path of a list."""
    if not isinstance(value, str):
        return tuple(_below(each, root) for each in value)
    here, below = (os.path.exists(path) or glob(path) for path in (value, str(root / value)))  # or one of a pattern
    return os.path.abspath(value) if here and not below else value


def is_of(card: dict[str, Any], recipe: Recipe, root: Path) -> bool:
    """Whether a card has this recipe and the current content of its text; True for older cards without a key."""
    return "key" not in card or card["key"] == recipe.key(root)
