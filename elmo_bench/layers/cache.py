"""The layers of a frozen source, computed once for every distinct sentence and then read from disk.

Each source has a folder, named by a hash of everything that determines its numbers: files, settings, dtype. It contains
shards (`shards.py`): readers map them into memory, and one writer at a time adds to the folder, so that the runs of a
sweep and several processes can share it. Layers that are missing, for lack of space or because they were damaged, are
computed when they are needed and rounded like stored ones; so are layers that other users may have written.
"""

from __future__ import annotations

import hashlib
import inspect
import pkgutil
import shutil
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from elmo_bench.configuration.schema import COMMON, LayersConfig
from elmo_bench.layers.shards import DTYPE, Blocks, Shards, Stored, digest, stored
from elmo_bench.layers.source import LayersSource, Sentences
from elmo_bench.nn.numerics import tf32
from elmo_bench.system.console import choices
from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import others
from elmo_bench.system.storage.locks import held

FORMAT = 2
SPARE_BYTES = 1 << 30  # disk space left free
SMALL = 1_000_000  # bytes; smaller writes are not announced
LARGE = 1_000_000_000  # bytes; for larger writes, a message says how to store less


class ActivationCache:
    """Replaces a frozen source of layers in a model.

    Args:
        source: a frozen source from files, each sentence's layers a function of its settings and of the sentence alone
            (`cacheable`).
        folder: shared by all sources; each gets a subfolder.
        layer: store only this layer, for a model that reads no other (`elmo.layers=last`); None: all.

    Raises:
        ValueError: the source is not cacheable, or was not read from files.
    """

    module = None  # nothing to move or to train

    def __init__(self, source: LayersSource, folder: StrPath, layer: int | None = None):
        if not source.cacheable or source.sha256 is None:
            raise ValueError("only layers that are a function of files and of one sentence can be cached")
        self.source, self.layer = source, layer
        self.n_layers, self.width, self.sha256 = source.n_layers, source.width, source.sha256
        doubled = source.doubled_first_layer and not layer
        self.blocks = Blocks(source.n_layers if layer is None else 1, source.width, doubled)
        self.identity = {"format": FORMAT, "weights": source.sha256, **source.settings, "dtype": DTYPE.name}
        if layer is not None:
            self.identity["layer"] = layer
        key = hashlib.sha256(json_text.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:16]
        self.folder = Path(folder) / key
        self.console = Console(stderr=True)
        self.shards = Shards(self.folder, self.blocks)
        self._reported = 0  # the number of damaged shards reported so far
        self._refresh()

    def layers(self, sentences: Sentences) -> Tensor:
        """(B, n_layers, T, W) float32 on the CPU, zero-padded; (B, 1, T, W) if only one layer is stored."""
        return self.read([[sentence] for sentence in sentences]).expand()

    def read(self, rows: Sequence[Sentences]) -> Stored:
        """The layers of a batch in stored form. Missing or damaged ones are computed, and rounded likewise.

        Args:
            rows: the sentences of each row, whose words follow one another.
        """
        numbers: dict[tuple[str, ...], int] = {}
        places = [[(numbers.setdefault(tuple(s), len(numbers)), len(s)) for s in row if s] for row in rows]
        sentences = list(numbers)
        blocks = {i: block for i, sentence in enumerate(sentences) if (block := self.shards.read(sentence)) is not None}
        self._report()
        missing = [i for i in range(len(sentences)) if i not in blocks]
        for i, layers in self._compute([sentences[i] for i in missing]):
            blocks[missing[i]] = np.frombuffer(self.blocks.pack(layers), dtype=DTYPE)
        return stored(self.blocks, [blocks[i] for i in range(len(sentences))], places)

    def prepare(self, sentences: Sentences) -> None:
        """Computes and writes the layers of sentences that are not cached yet, showing progress.

        Prints the size of large writes. If the disk is too full or the folder cannot be written, a message says so, and
        `layers` computes them each time, with the same result. After an interruption, it resumes after the last
        complete shard.
        """
        if self.has(sentences):
            return
        try:
            with held(self.folder, "another process is storing these layers; waiting for it", wait=True):
                why = others(self.folder)
                obstacle = f"no layers are kept in {self.folder}: {why}" if why else self._fill(sentences)
        except (OSError, UserError) as error:
            obstacle = f"layers cannot be written ({error})"
        self._refresh()
        if obstacle:
            self._unstored(obstacle)

    def _unstored(self, why: str) -> None:
        """Called if layers cannot be stored."""
        self._say(f"{why}: computing them again in every epoch")

    def _fill(self, sentences: Sentences) -> str | None:
        """`prepare`, under the folder's lock; returns the reason if it is impossible."""
        self._refresh()  # reads shards that another process has written meanwhile
        missing = self._missing(sentences)
        size = sum(self.blocks.nbytes(len(sentence)) for sentence in missing)
        if not missing:
            return None
        what = f"{size / 1e6:.0f} MB of layers for {len(missing)} sentences ({sum(map(len, missing))} tokens)"
        if size + SPARE_BYTES > shutil.disk_usage(self.folder).free:
            return f"no room for {what} in {self.folder}"
        if size >= SMALL:
            less = ""
            if self.layer is None and size >= LARGE:
                alone = size * self.source.width * DTYPE.itemsize / self.blocks.nbytes(1) / 1e6
                less = f"; with elmo.layers=last, or one layer's number, only that layer is stored: {alone:.0f} MB"
            self._say(f"caching {what} in {self.folder}{less}")
        self.shards.remove_leftovers()  # of a killed writer; we hold the lock
        columns = TextColumn("layers"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal) as progress:
            computed = progress.track(self._compute(missing), len(missing))
            packed = ((missing[i], self.blocks.pack(layers)) for i, layers in computed)
            for first in packed:
                self.shards.add(chain([first], packed))
        return None

    def has(self, sentences: Sentences) -> bool:
        """Whether the layers of all these sentences are stored."""
        return not self._missing(sentences)

    def _missing(self, sentences: Sentences) -> list[Sequence[str]]:
        """The distinct sentences that are not cached yet."""
        return list({key: s for s in sentences if s and (key := digest(s)) not in self.shards.places}.values())

    def _compute(self, sentences: Sentences) -> Iterator[tuple[int, Tensor]]:
        """Indices and the layers to store, (n_layers or 1, tokens, W) on the CPU, in the order of computation.

        In float32 whatever the run's `trainer.tf32`, because other runs read them.
        """
        with tf32(False):
            for indices, layers in self.source.batches(sentences):
                kept = layers if self.layer is None else layers[self.layer : self.layer + 1]
                yield from zip(indices, kept.cpu().split([len(sentences[i]) for i in indices], dim=1), strict=True)

    def _refresh(self) -> None:
        if others(self.folder) is None:
            self.shards.refresh()
            self._report()

    def _report(self) -> None:
        """Prints one line about newly damaged shards, named by their indices."""
        new = [index.stem for index in self.shards.damaged][self._reported :]
        self._reported += len(new)
        if new:
            what = "damaged layers, or layers that others could have written,"
            self._say(f"{what} in {self.folder} ({', '.join(new)}): they are computed again")

    def _say(self, message: str) -> None:
        self.console.print(message, soft_wrap=True)


# From the `bilm:` block of a configuration to a source of layers, or its cache.

# Keys for making a source's files: passed only to a source that takes them.
MAKING = "like", "seed", "parent", "tuning"


def open_source(
    block: Any,
    device: str = "cpu",
    cache_root: StrPath | None = None,
    cached: bool = False,
    check_sha256: str | None = None,
) -> LayersSource | ActivationCache:
    """Builds the source that a `bilm:` block names.

    Args:
        block: a mapping or a typed block: `_target_` is the dotted name of the source's class; keys not in `COMMON` are
            its arguments.
        device: where the source computes; a cache is not moved with the model.
        cache_root: contains the cache in its folder `activations`.
        cached: read the layers from a cache if the source is cacheable.
        check_sha256: the required digest of the source.
    """
    settings = block.plain() if isinstance(block, LayersConfig) else dict(block)
    cls, target = source_class(settings.get("_target_")), settings["_target_"]
    taken = inspect.signature(cls).parameters
    unused = {*COMMON, *(key for key in MAKING if key not in taken)}
    arguments = {key: value for key, value in settings.items() if key not in unused}
    if foreign := [key for key in arguments if key not in taken]:
        raise UserError(f"bilm.{foreign[0]}: {target} takes no such argument; {choices(foreign[0], list(taken))}")
    needed = [key for key, each in taken.items() if each.default is each.empty and each.kind != each.VAR_KEYWORD]
    if lacking := [key for key in needed if arguments.get(key) is None]:
        files = " ".join(f"bilm.{key}=..." for key in lacking)
        raise UserError(f"bilm={settings.get('name')} names no files: give {files}, or set elmo.where=none")
    source = cls(**arguments)
    if check_sha256 is not None and source.sha256 != check_sha256:
        named = " ".join(f"bilm.{key}={value}" for key, value in arguments.items())
        raise UserError(f"{named}: not the weights that the model was trained with (sha256 {check_sha256})")
    if source.module is not None:
        source.module.to(device)
    if not cached or not source.cacheable or source.sha256 is None:
        return source
    if cache_root is None:
        raise ValueError("a cache needs cache_root")
    return ActivationCache(source, Path(cache_root) / "activations")


def source_class(target: Any) -> Any:
    """The class of a dotted name."""
    try:
        cls = pkgutil.resolve_name(target)
    except (ValueError, ImportError, AttributeError, TypeError) as error:
        raise UserError(f"bilm._target_={target}: there is no such class ({error})") from error
    if not inspect.isclass(cls):
        raise UserError(f"bilm._target_={target}: not a class")
    return cls
