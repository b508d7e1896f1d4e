"""Commands that make and measure biLMs."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveInt

from elmo_bench.commands.command import (
    Command,
    Examples,
    File,
    Folder,
    HelpSection,
    Name,
    Texts,
    described,
    files,
    run_keys,
    several,
)
from elmo_bench.configuration.keys import fields, valid
from elmo_bench.speed import PARTS
from elmo_bench.system import machine, places
from elmo_bench.system.console import choices, tables
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import write_text

RESUMES = "running the command again resumes from the last checkpoint"


class Pretrain(Command):
    """Train a biLM on plain text.

    Writes options.json and weights.hdf5 in the official layout, the softmax and its vocabulary, and a card with
    perplexities. Running the command again resumes from the last checkpoint.

    On several GPUs: torchrun --no-python --nproc-per-node=N elmo-bench pretrain KEY=VALUE ...
    """

    page: ClassVar[str] = "bilms"
    again: ClassVar[str] = RESUMES
    overrides: ClassVar[bool] = True
    examples: ClassVar[Examples] = {
        "scale=open data_root=FOLDER": "reads the recipe's text below FOLDER",
        "scale=original data_root=FOLDER device=cuda": "the paper's biLM by the release's recipe",
    }

    scale: str = "open"
    """the recipe, a file in conf/pretrain/"""
    data_root: Folder | None = None
    """folder of the data; also the environment variable DATA_ROOT"""
    output: Folder | None = None
    """folder for the biLM; by default models/ and the recipe's name"""
    every: NonNegativeFloat = 300
    """seconds between checkpoints"""
    compile: bool = True
    """on a GPU, compile the pointwise operations by torch.compile"""
    stop: Annotated[NonNegativeInt, "UPDATE"] | None = None
    """stop and export after this update; recipe.start=FOLDER continues it"""
    force: bool = False
    """train again even if the biLM exists"""
    device: str = "auto"
    """auto, cpu or cuda"""
    wandb: Annotated[dict[str, Any], "{project:NAME}"] | None = None
    """also send the log to W&B, offline without a key"""

    @classmethod
    def sections(cls) -> Sequence[HelpSection]:
        return [files(["pretrain"])]

    @classmethod
    def parse(cls, argv: Sequence[str]) -> Pretrain:
        """All arguments are keys of conf/pretrain.yaml and of the recipe."""
        return cls(typed=[*argv])

    def run(self) -> None:
        from omegaconf import OmegaConf

        from elmo_bench.bilm.card import REMEDY, check_folder, read_card
        from elmo_bench.bilm.pretraining.parallel import leave
        from elmo_bench.bilm.pretraining.run import is_of, make_recipe, pretrain, show
        from elmo_bench.configuration import composing
        from elmo_bench.records.wandb_runs import opened

        typed, shown = chosen_recipe(self.typed)
        cfg = composing.compose(typed, "pretrain")
        if shown:
            print(OmegaConf.to_yaml(cfg), end="")
            return
        plain: Any = OmegaConf.to_container(cfg, resolve=True)
        given = valid(Pretrain, {key: plain[key] for key in fields(Pretrain) if key in plain})
        if cfg.root is None:
            raise UserError(f"no training text: give {places.DATA_ROOT}, a folder that contains lm/")
        output, root = Path(given.output), Path(cfg.root).absolute()
        recipe = make_recipe(cfg.recipe, root)
        _make_text(cfg.name, root, cfg.cache_root)
        if output.exists() and not (output / "card.json").is_file():
            raise UserError("exists, but is not a biLM trained here (no card.json); give another output=", output)
        card = read_card(output, REMEDY) if output.exists() and not given.force else None
        if card and not is_of(card, recipe, root):
            raise UserError(
                "trained by another recipe or on other text; force=true replaces it, another output= keeps it", output
            )
        if card and card.get("updates", recipe.updates) >= recipe.end(given.stop):
            check_folder(output, REMEDY)
            print(f"{output} exists already; force=true trains it again", file=sys.stderr)
        else:
            wandb = partial(opened, **given.wandb) if given.wandb else None
            how = given.compile, given.every, given.force, given.device, wandb, given.stop
            card = pretrain(recipe, root, Path(cfg.cache_root) / "pretrain", output, *how)
        if card:
            show(card, tables())
        leave()


def chosen_recipe(arguments: Sequence[str]) -> tuple[list[str], bool]:
    """The arguments for Hydra, and whether they ask only for the configuration, with `--cfg job`.

    A configuration file may leave out keys that every recipe has; for these, Hydra needs a plus.
    """
    from elmo_bench.bilm.pretraining.recipe import Recipe

    keys = {f"recipe.{name}" for name in Recipe.model_fields}
    for scale in (a.removeprefix("scale=") for a in arguments if a.startswith("scale=")):
        if scale not in places.named("pretrain"):
            raise UserError(f"scale={scale}: no recipe for it; {choices(scale, places.named('pretrain'))}")
    chosen = [f"pretrain={a.removeprefix('scale=')}" if a.startswith("scale=") else a for a in arguments]
    chosen = [f"++{a.lstrip('+')}" if a.lstrip("+").partition("=")[0] in keys else a for a in chosen]
    if shown := chosen.count("--cfg") == 1 and "job" in chosen:
        chosen = [a for a in chosen if a not in ("--cfg", "job")]
    return chosen, shown


def _make_text(scale: str, root: Path, cache_root: str) -> None:
    """Generates missing or damaged text of the mini scale again, because another text would give another biLM."""
    from elmo_bench.configuration import composing
    from elmo_bench.mini.data import mend
    from elmo_bench.records.settings import maker

    if scale in places.named("scale"):
        cfg = composing.compose([f"scale={scale}"])
        cfg.cache_root = cache_root
        run = composing.validated(cfg)
        if (text := maker(run.scale, run)) and Path(run.scale.folder or "").absolute() == root:
            text.make()
            return
    mend(root)


class Vocabulary(Command):
    """Write the words of a text by frequency, for the softmax of a biLM.

    The text has one tokenized sentence per line. <S>, </S> and <UNK> come first, then the words by frequency, as
    required for recipe.words of `elmo-bench pretrain`.
    """

    page: ClassVar[str] = "bilms"
    examples: ClassVar[Examples] = {
        "text=corpus.txt.gz output=words.txt size=50000": "the 49,997 most frequent words and the markers",
        "text='news.en-*' output=words.txt least=3": "as in the release's vocabulary of the 1B Word Benchmark",
    }
    text: Texts
    """a file (plain, .gz, .xz), a folder of such files, or a quoted pattern"""
    output: File
    """the file to write, one word per line"""
    size: Annotated[int, Field(ge=4), "N"] | None = None
    """maximum number of words, including the three markers; by default all"""
    least: PositiveInt = 1
    """words seen less often are left out"""

    def run(self) -> None:
        from elmo_bench.bilm.corpus import most_frequent, sources
        from elmo_bench.system.console import tracked
        from elmo_bench.system.storage.files import replacing

        output = Path(self.output)
        if output.is_dir() or not output.parent.is_dir():
            raise UserError("cannot be written: give the name of a file in an existing folder", output)
        counts = Counter[str]()
        for source in tracked(sources(Path(), [(self.text, None)]), "counting words"):
            for words in source.sentences():
                counts.update(words)
        words = most_frequent(counts, self.size, self.least)
        with replacing(output) as file:
            file.writelines(f"{word}\n" for word in words)
        known = sum(counts[word] for word in words)
        print(f"{len(words)} words -> {output}; they cover {known / counts.total():.2%} of {counts.total()} tokens")


class Tune(Command):
    """Tune a biLM on the training text of a task, without its labels.

    Prints the full-softmax perplexity of dev before and after one pass over the training sentences, and writes it to a
    record, results/own/analysis/SCALE/tuning/ID.json, for the report. Sentences of dev and test are left out of the
    text. In runs, the tuned biLM is bilm=tuned; for other commands, give its folder. If the parent has no softmax, like
    the official files, a new one is trained first, with the biLM frozen; `before` is the perplexity with it.

    Beside task= (or task=all) and scale=, bilm.parent=NAME chooses the biLM to tune, and bilm.tuning.lr=X and the other
    keys of the scale's file in conf/tuning/ change the settings. Any other key of the configuration may be given, too.
    """

    page: ClassVar[str] = "bilms"
    again: ClassVar[str] = RESUMES
    overrides: ClassVar[bool] = True
    examples: ClassVar[Examples] = {
        "task=snli": "the biLM of the mini scale on SNLI's sentences",
        "task=all scale=open data_root=FOLDER": "Table 7: perplexities of all six tasks before and after",
    }

    @classmethod
    def sections(cls) -> Sequence[HelpSection]:
        from elmo_bench.configuration.schema import TuningConfig

        named = ["task", "scale", "bilm", "tuning"]
        return [files(named), HelpSection("Keys of tuning", described(TuningConfig, "bilm.tuning.")), run_keys()]

    def run(self) -> None:
        from elmo_bench.configuration import composing, pages
        from elmo_bench.records.missing import check_files
        from elmo_bench.records.settings import maker
        from elmo_bench.reporting.study_tables import show_study
        from elmo_bench.tuning import TunedBilm, table

        if named := next((one for one in self.typed if one.startswith("bilm=") and one != "bilm=tuned"), None):
            raise UserError(f"{named}: give bilm.parent={named.partition('=')[2]}, the biLM to tune")
        overrides = ["bilm=tuned", *(one for one in self.typed if one != "task=all")]
        tasks = [f"task={task}" for task in pages.tasks()] if "task=all" in self.typed else []
        runs = [composing.run_config([*overrides, task]) for task in tasks]
        runs = [run for run in runs if run.scale.name in run.task.scales] or [composing.run_config(overrides)]
        for run in runs:
            check_files(run, text_alone=True)
        for run in runs:
            if data := maker(run.scale, run):
                data.make()
            TunedBilm(run.bilm, run).make(run.force)
        show_study(table.write(runs), runs[0].results_root)


class OfBilm(Command):
    """A command that reads a biLM."""

    bilm: Name = "open"
    """open, mini, or a folder with a biLM in the official layout"""
    options: File | None = None
    """instead of bilm: the options file of a biLM, in the official layout"""
    weights: File | None = None
    """and its weights file"""

    def files(self) -> tuple[Path, Path]:
        """The given options and weights, or those of `bilm`."""
        from elmo_bench.bilm.card import files_of

        if self.options and self.weights:
            return Path(self.options), Path(self.weights)
        if self.options or self.weights:
            raise UserError("options and weights belong together; give both, or neither for bilm=open")
        return files_of(self.bilm)


class Perplexity(OfBilm):
    """The perplexity of a biLM on a text, by the full softmax.

    Prints a JSON object: the perplexity forward (given the previous words), backward (given the following words) and
    their mean, as in the paper; the number of predictions of each direction, including ends of sentences; the size of
    the vocabulary, and the number of words of the text that it lacks. All these words count as <UNK>, so
    compare perplexities only for the same vocabulary and text.

    The state is carried from sentence to sentence, as in training. A long text is read in 32 equal parts; up to 31
    predictions at its end are left out.

    The folder of the weights must contain softmax.safetensors and vocabulary.txt. The official files have no softmax;
    `elmo-bench tune` trains one.
    """

    page: ClassVar[str] = "bilms"
    examples: ClassVar[Examples] = {
        "text=text.txt.xz": "by the open biLM", "bilm=own/biLM text=text.txt": "by a biLM in a folder",
    }  # fmt: skip
    text: Texts
    """one tokenized sentence per line; a file, a folder of files or a quoted pattern"""

    def run(self) -> None:
        from elmo_bench.bilm.corpus import Corpus, sources
        from elmo_bench.bilm.lm import has_softmax, read_lm

        options, weights = self.files()
        if not has_softmax(weights.parent):
            raise UserError(
                "no softmax.safetensors and vocabulary.txt beside these weights, which perplexity needs; the "
                "official files have none, and `elmo-bench tune` trains one",
                weights,
            )
        lm, words = read_lm(options, weights)
        corpus = Corpus.read(sources(Path(), [(self.text, None)]))
        measured = lm.perplexity(corpus, words, name=self.text)
        predictions, running = measured.pop("tokens"), measured.pop("unknown_words")
        del measured["pieces"]
        counts = {
            "predictions": predictions, "vocabulary": len(words), "sentences": len(corpus.ends),
            "words": len(corpus.tokens), "unknown_words": running, "distinct_unknown_words": corpus.unknown(words)[1],
        }  # fmt: skip
        print(json_text.dumps({**measured, **counts}, indent=1))


class Bench(Command):
    """Measure the biLM's speed against this machine's best matrix product.

    Random weights of the official sizes, fp32, all cores, batches of 32 sentences of 5 to 50 tokens; also memory and
    training steps of each task's model, and pretraining. It takes six to fifteen minutes. Run nothing else at the same
    time: on a busy machine, ratios stay meaningful, but shares of the best product do not.
    """

    page: ClassVar[str] = "development"
    examples: ClassVar[Examples] = {
        "": "prints the figures", "only=encode,growth": "two parts of it",
        "data_root=FOLDER write=true": "on real text, and saves the figures",
    }  # fmt: skip
    data_root: Folder | None = None
    """folder of the open data, also from DATA_ROOT; without it, made-up words are used"""
    only: Annotated[str, several(PARTS)] | None = None
    """parts, separated by commas; by default all"""
    write: bool = False
    """save the figures as bench.json in the results"""
    results_root: Folder | None = None
    """folder for bench.json; by default results/own/"""

    @classmethod
    def sections(cls) -> Sequence[HelpSection]:
        return [HelpSection("Parts", [*PARTS.items()])]

    def run(self) -> None:
        place = self.data_root or os.environ.get("DATA_ROOT")
        if place and not Path(place).is_dir():
            raise UserError("data_root is not a folder", place)
        if self.write and self.only:
            raise UserError("write=true saves the figures of all parts; leave out only=")
        figures = measured(Path(place) if place else None, self.only)
        if self.write:
            target = Path(self.results_root or places.OWN) / "bench.json"
            circumstances = machine.circumstances("cpu")  # of the measurement
            write_text(target, json_text.dumps({**figures, **circumstances}, indent=1) + "\n")
            print(f"written to {target}", file=sys.stderr)


def measured(data_root: Path | None, only: Sequence[str] | None) -> dict[str, Any]:
    """Measures and prints the figures of some parts (None: all), with a progress bar."""
    import torch
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    from elmo_bench.speed.bench import PLAN, bench, show

    torch.set_num_threads(machine.cores())
    only, progress = only or list(PARTS), Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=progress, transient=True, disable=not progress.is_terminal) as bar:
        task = bar.add_task("starting", total=len(only))
        figures = bench(PLAN, data_root, only, lambda part: bar.update(task, description=part, advance=1))
    show(figures, tables())
    return figures
