"""The layers of a frozen biLM, computed once for every distinct sentence and read from disk ever after.

One folder a biLM, named by everything that decides its numbers: weights, options, state, dtype. In it, shards: a `.bin`
file holds the activations of some sentences one after another, its `.npz` says which and where, with checksums. A shard
appears whole or not at all, readers map it into memory, and one writer at a time adds to the folder, so that the runs
of a sweep and several processes share it. (A raw file read through the page cache was as fast as any storage library
tried, and the only one that was also fast when cold; hence by hand.)

A sentence's block: layer 0's half (T, P), once, since it stands twice in the layer; then layers 1..L (L, T, 2P).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import Tensor

from elmo_bench.bilm.model import BiLM
from elmo_bench.system.files import replacing
from elmo_bench.system.locks import held

FORMAT = 2
DIGEST_BYTES = 16
SHARD_BYTES = 256 << 20  # about; a killed run loses at most one shard's work
SPARE_BYTES = 1 << 30  # disk left free


class Place(NamedTuple):
    """Where a sentence's block lies."""

    shard: int
    offset: int  # elements
    tokens: int
    checksum: int


class ActivationCache:
    """Takes the place of a frozen `BiLM` in a model.

    Args:
        bilm: frozen, state "zero" or "warm", from files.
        folder: shared by all biLMs; each gets a folder of its own inside.
        dtype: of the stored activations, "float16" (half the size; relative error below 1e-3) or "float32".

    Raises:
        ValueError: the biLM carries its state, or came from no file: its vectors are no function of the sentence.
    """

    def __init__(self, bilm: BiLM, folder: str | os.PathLike[str], dtype: str = "float16"):
        if bilm.state == "carry" or bilm.sha256 is None:
            raise ValueError("only a biLM from files with state zero or warm can be cached")
        self.bilm = bilm
        self.dtype = np.dtype(dtype)
        self.identity = {
            "format": FORMAT,
            "weights": bilm.sha256,
            "options": bilm.options.as_dict(),
            "state": bilm.state,
            "dtype": self.dtype.name,
        }
        key = hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:16]
        self.folder = Path(folder) / key
        self.console = Console(stderr=True)
        self.places: dict[bytes, Place] = {}
        self.shards: list[np.ndarray] = []
        self._known: set[str] = set()
        self._open_shards()

    @property
    def width(self) -> int:
        return self.bilm.width

    @property
    def n_layers(self) -> int:
        return self.bilm.n_layers

    @property
    def sha256(self) -> str | None:
        return self.bilm.sha256

    def layers(self, sentences: Sequence[Sequence[str]]) -> Tensor:
        """As `BiLM.layers`: (B, L+1, T, 2P) float32, zero-padded; what is not cached, or damaged, is computed."""
        longest = max((len(sentence) for sentence in sentences), default=0)
        padded = torch.zeros(len(sentences), self.n_layers, longest, self.width)
        missing: list[int] = []
        for row, sentence in enumerate(sentences):
            if not sentence:
                continue
            block = self._read(sentence)
            if block is None:
                missing.append(row)
                continue
            token, upper = self._split(torch.from_numpy(block.copy()), len(sentence))
            padded[row, 0, : len(sentence)] = token.repeat(1, 2)
            padded[row, 1:, : len(sentence)] = upper
        if missing:
            for row, layers in zip(missing, self.bilm.encode([sentences[row] for row in missing]), strict=True):
                padded[row, :, : layers.shape[1]] = layers.cpu()
        return padded

    def prepare(self, sentences: Sequence[Sequence[str]]) -> None:
        """Computes and writes the layers of those sentences that are not there yet, showing progress.

        Says how much it will write; where the disk has no room it says so and leaves the computing to every `layers`.
        Interrupted, it goes on from the last whole shard.
        """
        if not self._missing(sentences):
            return
        with held(self.folder, f"another process is caching biLM layers in {self.folder}; waiting for it"):
            self._open_shards()  # what another process has written meanwhile
            missing = self._missing(sentences)
            size = sum(self._elements(len(sentence)) for sentence in missing) * self.dtype.itemsize
            if not missing:
                return
            tokens = sum(map(len, missing))
            what = f"{size / 1e6:.0f} MB of biLM layers for {len(missing)} sentences ({tokens} tokens)"
            if size + SPARE_BYTES > shutil.disk_usage(self.folder).free:
                self.console.print(
                    f"no room for {what} in {self.folder}: computing them anew every epoch", soft_wrap=True
                )
                return
            self.console.print(f"caching {what} in {self.folder}", soft_wrap=True)
            self._write(missing)
            self._open_shards()

    def _missing(self, sentences: Sequence[Sequence[str]]) -> list[Sequence[str]]:
        """Those to be computed, each once."""
        return list({key: s for s in sentences if s and (key := _digest(s)) not in self.places}.values())

    def _write(self, sentences: list[Sequence[str]]) -> None:
        for leftover in self.folder.glob("*.partial*"):  # of a killed writer; we hold the lock
            leftover.unlink()
        columns = TextColumn("biLM layers"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal) as progress:
            bar = progress.add_task("", total=len(sentences))
            for group in self._shard_groups(sentences):
                self._write_shard(group, lambda n: progress.advance(bar, n))

    def _shard_groups(self, sentences: list[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
        """Sentences for one shard each."""
        group, size = [], 0
        for sentence in sentences:
            group.append(sentence)
            size += self._elements(len(sentence)) * self.dtype.itemsize
            if size >= SHARD_BYTES:
                yield group
                group, size = [], 0
        if group:
            yield group

    def _write_shard(self, sentences: list[Sequence[str]], advance: Callable[[int], None]) -> None:
        name = f"{len(list(self.folder.glob('*.npz'))):05d}-{os.getpid()}"
        data, index = self.folder / f"{name}.bin", self.folder / f"{name}.npz"
        digests, offsets, tokens, checksums, offset = [], [], [], [], 0
        with replacing(data, "wb", locked=True) as file:
            for indices, layers in self.bilm.batches(sentences):
                pieces = layers.cpu().split([len(sentences[i]) for i in indices], dim=1)  # each (L+1, T, 2P)
                for i, piece in zip(indices, pieces, strict=True):
                    block = self._block(piece)
                    file.write(block)
                    digests.append(_digest(sentences[i]))
                    offsets.append(offset)
                    tokens.append(len(sentences[i]))
                    checksums.append(zlib.crc32(block))
                    offset += len(block) // self.dtype.itemsize
                advance(len(indices))
        with replacing(index, "wb", locked=True) as file:  # once it is there, the shard counts
            np.savez(
                file,
                digests=np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, DIGEST_BYTES),
                offsets=np.array(offsets, dtype=np.int64),
                tokens=np.array(tokens, dtype=np.int64),
                checksums=np.array(checksums, dtype=np.uint32),
            )

    def _block(self, layers: Tensor) -> bytes:
        """(L+1, T, 2P) -> the bytes of a sentence's block."""
        half = layers[0, :, : self.width // 2].reshape(-1)
        return torch.cat([half, layers[1:].reshape(-1)]).numpy().astype(self.dtype).tobytes()

    def _elements(self, tokens: int) -> int:
        return tokens * (self.width // 2 + (self.n_layers - 1) * self.width)

    def _split(self, block: Tensor, tokens: int) -> tuple[Tensor, Tensor]:
        """A block -> (T, P) and (L, T, 2P)."""
        token, upper = block.split([tokens * self.width // 2, tokens * (self.n_layers - 1) * self.width])
        return token.view(tokens, -1), upper.view(self.n_layers - 1, tokens, self.width)

    def _read(self, sentence: Sequence[str]) -> np.ndarray | None:
        """A sentence's block, or None where it is absent or damaged."""
        place = self.places.get(_digest(sentence))
        if place is None or place.tokens != len(sentence):
            return None
        block = self.shards[place.shard][place.offset : place.offset + self._elements(place.tokens)]
        if zlib.crc32(block.data) != place.checksum:
            self.console.print(f"damaged activations in {self.folder}: computed anew", soft_wrap=True)
            del self.places[_digest(sentence)]
            return None
        return block

    def _open_shards(self) -> None:
        """Maps the shards that have appeared; one that is damaged is removed, so that `prepare` makes it again."""
        for index in sorted(self.folder.glob("*.npz")):
            if index.name in self._known:
                continue
            try:
                self._open_shard(index)
                self._known.add(index.name)
            except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
                self.console.print(f"damaged activations in {index}: removed, to be computed anew", soft_wrap=True)
                index.unlink(missing_ok=True)
                index.with_suffix(".bin").unlink(missing_ok=True)

    def _open_shard(self, index: Path) -> None:
        with open(index, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            digests, offsets, tokens, checksums = (arrays[n] for n in ("digests", "offsets", "tokens", "checksums"))
        data = np.memmap(index.with_suffix(".bin"), dtype=self.dtype, mode="r")
        if not len(digests) == len(offsets) == len(tokens) == len(checksums):
            raise ValueError("columns of different lengths")
        if data.size != sum(map(self._elements, tokens.tolist())):
            raise ValueError("the data are not of the size that the index says")
        self.shards.append(data)
        numbers = zip(offsets.tolist(), tokens.tolist(), checksums.tolist(), strict=True)
        for digest, (offset, length, checksum) in zip(digests, numbers, strict=True):
            self.places[digest.tobytes()] = Place(len(self.shards) - 1, offset, length, checksum)


def _digest(sentence: Sequence[str]) -> bytes:
    """Of the tokens, each with its length before it, since a token may hold any character."""
    tokens = (token.encode("utf-8", "surrogatepass") for token in sentence)
    parts = (len(token).to_bytes(4, "big") + token for token in tokens)
    return hashlib.blake2b(b"".join(parts), digest_size=DIGEST_BYTES).digest()
