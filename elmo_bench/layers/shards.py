"""The files of a cache folder: shards of sentences' blocks, written atomically.

A shard's `.bin` file contains the blocks one after another; the `.npz` file beside it is their index, with checksums. A
shard is complete once its `.npz` exists. The index is checked when it is opened, a block when a process first reads it;
a shard in which anything is damaged, or that others may have written, is removed, and what it held is computed again.

(Written by hand because a raw file read through the page cache was as fast as any storage library tried, and the only
one that was also fast when cold.)
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from elmo_bench.layers.stored import DIGEST_BYTES, DTYPE, Blocks, digest
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.disk import steady
from elmo_bench.system.storage.files import private, replacing
from elmo_bench.system.storage.integrity import UNREADABLE, check_archive

SHARD_BYTES = 256 << 20  # about; a killed run loses at most one shard's work
REMEMBERED = 1 << 18  # sentences whose blocks are found without computing their digests again


class Place(NamedTuple):
    """The position of a sentence's block."""

    shard: int
    offset: int  # elements
    tokens: int
    checksum: int


class Shards:
    """Reads and adds to the shards of one folder; to add, a process must hold the folder's lock.

    Args:
        folder: of one source of layers; it need not exist yet.
        blocks: the layout of its blocks.

    Attributes:
        places: the position of each sentence's block, by its `digest`.
        damaged: indices of the shards in which damage was found; they are removed for later processes, and what is
            whole in them can still be read here.
    """

    def __init__(self, folder: Path, blocks: Blocks):
        self.folder, self.blocks = folder, blocks
        self.places: dict[bytes, Place] = {}
        self.damaged: dict[Path, None] = {}  # in the order in which it was found
        self._data: list[np.ndarray] = []
        self._indices: list[Path] = []  # of the shards in `_data`
        self._known: set[str] = set()  # names of indices, mapped or damaged
        self._checked: dict[tuple[str, ...], np.ndarray] = {}

    def refresh(self) -> None:
        """Maps new shards into memory, but for damaged ones and those of others."""
        for index in sorted(self.folder.glob("*.npz")):
            if index.name in self._known:
                continue
            self._known.add(index.name)
            try:
                self._open(index)
            except (*UNREADABLE, UserError, KeyError):
                self._remove(index)

    def _open(self, index: Path) -> None:
        if not private(index, index.with_suffix(".bin")):
            raise ValueError("somebody else may have written it")
        check_archive(index, "removed")
        with open(index, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            digests, offsets, tokens, checksums = (arrays[n] for n in ("digests", "offsets", "tokens", "checksums"))
        limits.regular(index.with_suffix(".bin"))
        data = np.memmap(index.with_suffix(".bin"), dtype=DTYPE, mode="r")
        if not len(digests) == len(offsets) == len(tokens) == len(checksums):
            raise ValueError("columns of different lengths")
        if data.size != sum(map(self.blocks.elements, tokens.tolist())):
            raise ValueError("the data do not have the size given in the index")
        self._data.append(data)
        self._indices.append(index)
        numbers = zip(offsets.tolist(), tokens.tolist(), checksums.tolist(), strict=True)
        for key, (offset, length, checksum) in zip(digests, numbers, strict=True):
            self.places[key.tobytes()] = Place(len(self._data) - 1, offset, length, checksum)

    def read(self, sentence: Sequence[str]) -> np.ndarray | None:
        """A sentence's block, or None if there is none or it is not what was written.

        The checksum is computed when a process first reads the block.
        """
        words = tuple(sentence)
        if (checked := self._checked.get(words)) is not None:
            return checked
        place = self.places.get(key := digest(words))
        if place is None or place.tokens != len(words):
            return None
        block = self._data[place.shard][place.offset : place.offset + self.blocks.elements(place.tokens)]
        if zlib.crc32(block.data) != place.checksum:
            del self.places[key]
            self._remove(self._indices[place.shard])
            return None
        if len(self._checked) < REMEMBERED:
            self._checked[words] = block
        return block

    def add(self, blocks: Iterator[tuple[Sequence[str], bytes]]) -> None:
        """Writes one shard of sentences and their blocks; takes no more than fill it."""
        last = max((int(path.name[:5]) for path in self.folder.glob("[0-9]" * 5 + "-*.npz")), default=-1)
        name = f"{last + 1:05d}-{uuid.uuid4().hex}"  # unique, whichever machines share the folder
        data, index = self.folder / f"{name}.bin", self.folder / f"{name}.npz"
        digests, offsets, tokens, checksums, offset = [], [], [], [], 0
        with replacing(data, "wb") as file:
            for sentence, block in blocks:
                file.write(block)
                digests.append(digest(sentence))
                offsets.append(offset)
                tokens.append(len(sentence))
                checksums.append(zlib.crc32(block))
                offset += len(block) // DTYPE.itemsize
                if file.tell() >= SHARD_BYTES:
                    break
        with replacing(index, "wb") as file, steady(file) as stream:  # the shard is complete once it exists
            np.savez(
                stream,  # type: ignore[arg-type]
                digests=np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, DIGEST_BYTES),
                offsets=np.array(offsets, dtype=np.int64),
                tokens=np.array(tokens, dtype=np.int64),
                checksums=np.array(checksums, dtype=np.uint32),
            )

    def remove_leftovers(self) -> None:
        """Removes incomplete files of a killed writer: temporary ones, and data without an index."""
        for leftover in self.folder.glob("*.partial*"):
            leftover.unlink()
        for data in self.folder.glob("*.bin"):
            if not data.with_suffix(".npz").exists():
                data.unlink()

    def _remove(self, index: Path) -> None:
        """Removes a damaged shard; in a folder that cannot be written, every process finds the damage again."""
        self.damaged[index] = None
        with suppress(OSError):
            index.unlink(missing_ok=True)
            index.with_suffix(".bin").unlink(missing_ok=True)
