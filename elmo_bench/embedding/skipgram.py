"""Static word vectors from the text that a biLM has read: what `vectors=text` gives a task in place of its page's.

Skip-gram with negative sampling (Mikolov et al. 2013) by gensim on one thread, so that the same text and settings give
the same vectors. They are trained once and kept in the cache.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import DictConfig, OmegaConf

from elmo_bench.experiment import configuration
from elmo_bench.experiment.identity import fingerprint, hash_files
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.files import replacing
from elmo_bench.system.locks import held

MODEL = ("size", "lower", "window", "negative", "sample", "alpha", "min_count", "epochs", "seed")


def settings(vectors: Mapping[str, Any]) -> dict[str, Any]:
    """All that the vectors depend on, from a resolved `vectors:` block: its numbers, the text, how far it was read.

    Raises:
        UserError: no page of conf/pretrain for this scale, no folder of text, a missing file.
    """
    if not (places.CONF / "pretrain" / f"{vectors['text']}.yaml").is_file():
        raise UserError(f"vectors=text needs the text of a biLM, and conf/pretrain has no page {vectors['text']}")
    if not vectors["root"]:
        raise UserError("vectors=text needs data_root=FOLDER (make: DATA_ROOT=FOLDER) with lm/ in it")
    recipe = configuration.compose([f"pretrain={vectors['text']}", "root=null"], "pretrain").recipe
    text = [[str(Path(vectors["root"], name)), tokens] for name, tokens in recipe.text]
    for path, _ in text:
        if not os.path.isfile(path):
            raise UserError("no such file; vectors=text reads the text of the biLM", path)
    read = {key: recipe[key] for key in ("tokens", "rows", "steps", "seed")}
    return {**{key: vectors[key] for key in MODEL}, "text": text, "read": read}


def ensure(cfg: DictConfig) -> Path:
    """The file of the vectors in GloVe's format; trained, with a progress bar, where it is not there yet.

    Several processes may call it at once: one trains and the others wait.
    """
    wanted = settings(OmegaConf.to_container(cfg.vectors, resolve=True))  # type: ignore[arg-type]
    hashed = hash_files(wanted)
    folder = Path(cfg.cache_root) / "vectors" / fingerprint(hashed)
    path = folder / "vectors.txt"
    if path.is_file():
        return path
    with held(folder, f"another process is training the word vectors in {folder}; waiting for it"):
        if not path.is_file():
            (folder / "settings.json").write_text(json.dumps(hashed, indent=1) + "\n", encoding="utf-8")
            train(wanted, path)
    return path


def train(wanted: Mapping[str, Any], path: Path) -> None:
    """Trains the vectors that `wanted` (see `settings`) asks for and writes them, whole or not at all."""
    from gensim.models import Word2Vec
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    console.print("word vectors: reading the text of the biLM", style="dim")
    with Progress(console=console, disable=not console.is_terminal, transient=True) as bar:
        sentences = Sentences(wanted, bar)
        console.print(f"word vectors: {wanted['epochs']} passes over {sentences.total:,} tokens", style="dim")
        model = Word2Vec(
            sentences, sg=1, workers=1, vector_size=wanted["size"],
            **{key: wanted[key] for key in MODEL if key not in ("size", "lower")},
        )  # fmt: skip
    write(path, model.wv.index_to_key, model.wv.vectors)


class Sentences:
    """The sentences that the biLM has read, in its order, as often as they are asked for."""

    def __init__(self, wanted: Mapping[str, Any], bar: Any):
        from elmo_bench.bilm.corpus import Corpus, Source

        corpus = Corpus.read([Source(Path(path), tokens) for path, tokens in wanted["text"]], wanted["read"]["seed"])
        self.types = [word.lower() for word in corpus.types] if wanted["lower"] else corpus.types
        self.tokens, self.ends = corpus.tokens, corpus.ends
        self.chosen = np.flatnonzero(seen(corpus.ends, **{k: wanted["read"][k] for k in ("tokens", "rows", "steps")}))
        starts = np.concatenate([[0], self.ends[:-1]])
        self.total = int((self.ends - starts)[self.chosen].sum())
        self.bar, self.task = bar, bar.add_task("word vectors", total=self.total * (1 + wanted["epochs"]))

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
    """(sentences,) bool: which sentences a biLM has read that saw `tokens` tokens.

    Its text, with a mark before each sentence, is cut into `rows` equal pieces that are read side by side, `steps`
    tokens an update (elmo_bench/bilm/corpus.py). A sentence counts where its mark lies in the part that was read.
    """
    starts = np.concatenate([[0], ends[:-1]]) + np.arange(len(ends))  # of the marks, in the stream
    length = (int(ends[-1]) + len(ends)) // rows  # of a piece
    read = min(max(1, tokens // (rows * steps)), max(1, length // steps)) * steps
    return (starts % length < read) & (starts < rows * length)


def write(path: Path, words: Sequence[Any], vectors: np.ndarray) -> None:
    """A word and its numbers a line."""
    with replacing(path) as file:
        for word, vector in zip(words, vectors, strict=True):
            file.write(f"{word} {' '.join(f'{value:.5g}' for value in vector.tolist())}\n")
