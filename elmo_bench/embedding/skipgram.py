"""Static word vectors trained on a biLM's training text; with `vectors=text` they replace the task's own.

Skip-gram with negative sampling (Mikolov et al. 2013) by gensim on one thread, so that the same text and settings give
the same vectors. They are trained once and stored in the cache.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from elmo_bench.configuration import composing
from elmo_bench.configuration.schema import RunConfig, VectorsConfig
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text, limits
from elmo_bench.system.storage.files import replacing, write_text
from elmo_bench.system.storage.hashing import MEMORY, content_sha256, fingerprint
from elmo_bench.system.storage.integrity import is_made_here, note
from elmo_bench.system.storage.locks import held

MODEL = ("size", "lower", "window", "negative", "sample", "alpha", "min_count", "epochs", "seed")
VERSION = 1  # raised when the same recipe gives different vectors, except for rounding


@dataclass
class SkipgramVectors:
    """Trains the vectors of `vectors=text`; writes them in GloVe's format, in a cache folder named by their recipe."""

    vectors: VectorsConfig
    run: RunConfig

    def recipe(self) -> dict[str, Any]:
        """The hyperparameters, the text, and the amount of it that was read."""
        page = places.CONF / "pretrain" / f"{self.vectors.text}.yaml"
        if not page.is_file():
            raise UserError(f"vectors=text needs the text of a biLM, and conf/pretrain has no file {self.vectors.text}")
        if not self.vectors.root:
            raise UserError(f"vectors=text needs {places.DATA_ROOT}, a folder that contains lm/")
        text = composing.compose([f"pretrain={self.vectors.text}", "root=null"], "pretrain").recipe
        files = [[str(Path(self.vectors.root, name)), tokens] for name, tokens in text.text]
        read = {key: text[key] for key in ("tokens", "rows", "steps", "seed")}
        return {"version": VERSION, **{key: getattr(self.vectors, key) for key in MODEL}, "text": files, "read": read}

    def make(self) -> Path:
        """The file of the vectors, which are trained, with a progress bar, if it does not exist yet or is damaged."""
        recipe, cache = self.recipe(), Path(self.run.cache_root)
        for path, _ in recipe["text"]:
            if not os.path.isfile(path):
                raise UserError(f"{limits.absent(path)}; vectors=text reads the text of the biLM", path)
        digested = {
            **recipe,
            "text": [[content_sha256(path, cache / MEMORY), tokens] for path, tokens in recipe["text"]],
        }
        folder = cache / "vectors" / fingerprint(digested)
        path = folder / "vectors.txt"
        if is_made_here(path):
            return path
        with held(folder, "another process is training these word vectors; waiting for it", wait=True):
            if not is_made_here(path):
                write_text(folder / "settings.json", json_text.dumps(digested, indent=1) + "\n")
                train(recipe, path)
                note(path)
        return path


def train(recipe: Mapping[str, Any], path: Path) -> None:
    """Trains the vectors of a recipe of `SkipgramVectors`; writes a word and its numbers per line, atomically."""
    from gensim.models import Word2Vec
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    console.print("word vectors: reading the text of the biLM", style="dim")
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        sentences = ReadSentences(recipe, bar)
        console.print(f"word vectors: {recipe['epochs']} passes over {sentences.total:,} tokens", style="dim")
        model = Word2Vec(
            sentences, sg=1, workers=1, vector_size=recipe["size"],
            **{key: recipe[key] for key in MODEL if key not in ("size", "lower")},
        )  # fmt: skip
    with replacing(path) as file:
        for word, vector in zip(model.wv.index_to_key, model.wv.vectors, strict=True):
            file.write(f"{word} {' '.join(f'{value:.5g}' for value in vector.tolist())}\n")


class ReadSentences:
    """The sentences that the biLM has read, in the same order; they can be iterated over several times."""

    def __init__(self, recipe: Mapping[str, Any], bar: Any):
        from elmo_bench.bilm.corpus import Corpus, TextSource

        corpus = Corpus.read(
            [TextSource(Path(path), tokens) for path, tokens in recipe["text"]], recipe["read"]["seed"]
        )
        self.types = [word.lower() for word in corpus.types] if recipe["lower"] else corpus.types
        self.tokens, self.ends = corpus.tokens, corpus.ends
        self.chosen = np.flatnonzero(seen(corpus.ends, **{k: recipe["read"][k] for k in ("tokens", "rows", "steps")}))
        starts = np.concatenate([[0], self.ends[:-1]])
        self.total = int((self.ends - starts)[self.chosen].sum())
        self.bar, self.task = bar, bar.add_task("word vectors", total=self.total * (1 + recipe["epochs"]))

    def __iter__(self) -> Iterator[list[str]]:
        done = 0
        for i in self.chosen:
            words = [self.types[t] for t in self.tokens[self.ends[i - 1] if i else 0 : self.ends[i]]]
            yield words
            done += len(words)
            if done > 20_000:
                self.bar.advance(self.task, done)
                done = 0
        self.bar.advance(self.task, done)


def seen(ends: np.ndarray, tokens: int, rows: int, steps: int) -> np.ndarray:
    """(sentences,) bool: which sentences have been read by a biLM trained on `tokens` tokens.

    The text, with a marker before each sentence, is cut into `rows` equal pieces that are read in parallel, `steps`
    tokens per update (elmo_bench/bilm/corpus.py). A sentence counts as read if its marker was read.
    """
    starts = np.concatenate([[0], ends[:-1]]) + np.arange(len(ends))  # the positions of the markers in the stream
    length = (int(ends[-1]) + len(ends)) // rows  # the length of a piece
    read = min(max(1, tokens // (rows * steps)), max(1, length // steps)) * steps
    return (starts % length < read) & (starts < rows * length)
