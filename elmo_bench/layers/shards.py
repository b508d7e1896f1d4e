"""The files of a cache folder: shards of sentences' blocks that appear whole or not at all.

Of a shard, the `.bin` file holds the blocks one after another, and the `.npz` file beside it says which and where, with
checksums; a shard counts from the moment its `.npz` is there. (A raw file read through the page cache was as fast as
any storage library tried, and the only one that was also fast when cold; hence by hand.)
"""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from elmo_bench.layers.blocks import DIGEST_BYTES, Blocks, digest
from elmo_bench.system.files import replacing


class Place(NamedTuple):
    """Where a sentence's block lies."""

    shard: int
    offset: int  # elements
    tokens: int
    checksum: int


class Shards:
    """Reads and adds to the shards of one folder; whoever adds holds a lock on the folder.

    Args:
        folder: of one source of layers; it need not be there yet.
        blocks: the layout of its blocks.

    Attributes:
        places: by a sentence's `digest`, where its block lies.
    """

    def __init__(self, folder: Path, blocks: Blocks):
        self.folder, self.blocks = folder, blocks
        self.places: dict[bytes, Place] = {}
        self._data: list[np.ndarray] = []
        self._known: set[str] = set()

    def refresh(self) -> list[Path]:
        """Maps the shards that have appeared into memory. Removes damaged ones, and returns them."""
        removed = []
        for index in sorted(self.folder.glob("*.npz")):
            if index.name in self._known:
                continue
            try:
                self._open(index)
                self._known.add(index.name)
            except (OSError, ValueError, KeyError, zipfile.BadZipFile, zlib.error):
                index.unlink(missing_ok=True)
                index.with_suffix(".bin").unlink(missing_ok=True)
                removed.append(index)
        return removed

    def _open(self, index: Path) -> None:
        with open(index, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            digests, offsets, tokens, checksums = (arrays[n] for n in ("digests", "offsets", "tokens", "checksums"))
        data = np.memmap(index.with_suffix(".bin"), dtype=self.blocks.dtype, mode="r")
        if not len(digests) == len(offsets) == len(tokens) == len(checksums):
            raise ValueError("columns of different lengths")
        if data.size != sum(map(self.blocks.elements, tokens.tolist())):
            raise ValueError("the data are not of the size that the index says")
        self._data.append(data)
        numbers = zip(offsets.tolist(), tokens.tolist(), checksums.tolist(), strict=True)
        for key, (offset, length, checksum) in zip(digests, numbers, strict=True):
            self.places[key.tobytes()] = Place(len(self._data) - 1, offset, length, checksum)

    def read(self, sentence: Sequence[str]) -> np.ndarray | None:
        """A sentence's block, None where there is none. Raises `ValueError` where it is damaged, and forgets it."""
        key = digest(sentence)
        place = self.places.get(key)
        if place is None or place.tokens != len(sentence):
            return None
        block = self._data[place.shard][place.offset : place.offset + self.blocks.elements(place.tokens)]
        if zlib.crc32(block.data) != place.checksum:
            del self.places[key]
            raise ValueError("other numbers than were written")
        return block

    def add(self, blocks: Iterable[tuple[Sequence[str], bytes]]) -> None:
        """Writes one shard of sentences and their blocks."""
        name = f"{len(list(self.folder.glob('*.npz'))):05d}-{os.getpid()}"
        data, index = self.folder / f"{name}.bin", self.folder / f"{name}.npz"
        digests, offsets, tokens, checksums, offset = [], [], [], [], 0
        with replacing(data, "wb", locked=True) as file:
            for sentence, block in blocks:
                file.write(block)
                digests.append(digest(sentence))
                offsets.append(offset)
                tokens.append(len(sentence))
                checksums.append(zlib.crc32(block))
                offset += len(block) // self.blocks.dtype.itemsize
        with replacing(index, "wb", locked=True) as file:  # once it is there, the shard counts
            np.savez(
                file,
                digests=np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, DIGEST_BYTES),
                offsets=np.array(offsets, dtype=np.int64),
                tokens=np.array(tokens, dtype=np.int64),
                checksums=np.array(checksums, dtype=np.uint32),
            )

    def remove_leftovers(self) -> None:
        """Removes what a killed writer has left half-written."""
        for leftover in self.folder.glob("*.partial*"):
            leftover.unlink()
