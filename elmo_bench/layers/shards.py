"""The layers of a sentence and of a batch as the cache stores them, and its files: shards, written atomically.

A shard's `.bin` file contains the blocks one after another; the `.npz` file beside it is their index, with checksums. A
shard is complete once its `.npz` exists. The index is checked when it is opened, a block when a process first reads it;
a shard with any damage, or that others may have written, is removed, and its content is computed again.

(Written by hand because a raw file read through the page cache was as fast as any storage library tried, and the only
one that was also fast when cold. The stored form of a batch is small to move to a device, where it is expanded.)
"""

from __future__ import annotations

import hashlib
import uuid
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import limits
from elmo_bench.system.storage.disk import steady
from elmo_bench.system.storage.files import private, replacing
from elmo_bench.system.storage.integrity import UNREADABLE, check_archive

DIGEST_BYTES = 16
DTYPE = np.dtype(np.float16)  # of the stored numbers: half the size, a relative error below 1e-3


def digest(sentence: Sequence[str]) -> bytes:
    """Digest of the tokens, each preceded by its length, because a token may contain any character."""
    tokens = (token.encode("utf-8", "surrogatepass") for token in sentence)
    parts = (len(token).to_bytes(4, "big") + token for token in tokens)
    return hashlib.blake2b(b"".join(parts), digest_size=DIGEST_BYTES).digest()


@dataclass(frozen=True)
class Blocks:
    """Converts the layers (n_layers, T, W) of a sentence to one block of numbers, layer after layer, and back.

    Attributes:
        doubled: layer 0 repeats a vector of W/2 numbers; the block stores it once.
    """

    n_layers: int
    width: int
    doubled: bool

    def elements(self, tokens: int) -> int:
        """The number of numbers in the block of a sentence of `tokens` words."""
        return tokens * (self._first + (self.n_layers - 1) * self.width)

    def nbytes(self, tokens: int) -> int:
        """The size of that block in bytes."""
        return self.elements(tokens) * DTYPE.itemsize

    def pack(self, layers: Tensor) -> bytes:
        """(n_layers, T, W) -> the bytes of the block."""
        first = layers[0, :, : self._first].reshape(-1)
        return torch.cat([first, layers[1:].reshape(-1)]).numpy().astype(DTYPE).tobytes()

    @property
    def _first(self) -> int:
        """Numbers of layer 0 that are stored per word."""
        return self.width // 2 if self.doubled else self.width


class Stored(NamedTuple):
    """Blocks of sentences one after another, and the positions in them of the words of a padded batch."""

    vectors: Tensor  # (N + 1, P) float16, the last one zero; P = W / parts
    words: (
        Tensor  # (B, T, 3) int32: first vector of the word's sentence, length of the sentence (0: padding), place in it
    )
    n_layers: int
    parts: int  # vectors of P numbers in a vector of layers 1 to L

    def each(self, change: Callable[[Tensor], Tensor]) -> Stored:
        """A copy with both tensors changed."""
        return self._replace(vectors=change(self.vectors), words=change(self.words))

    def expand(self) -> Tensor:
        """(B, n_layers, T, W) float32, zero-padded."""
        first, length, place = self.words.long()[:, None].unbind(-1)  # (B, 1, T) each
        upper = torch.arange(self.n_layers - 1, device=first.device)[:, None]  # (L, 1)
        part = torch.arange(self.parts, device=first.device)
        lowest = (first + place)[..., None].expand(*first.shape, self.parts)  # stored once, whatever the parts
        above = (first + length + (upper * length + place) * self.parts)[..., None] + part  # (B, L, T, parts)
        index = torch.cat([lowest, above], dim=1).masked_fill(length[..., None] == 0, len(self.vectors) - 1)
        return F.embedding(index, self.vectors).flatten(3).float()


def stored(blocks: Blocks, pieces: Sequence[np.ndarray], rows: Sequence[Sequence[tuple[int, int]]]) -> Stored:
    """Puts the blocks of a batch together.

    Args:
        blocks: their layout.
        pieces: the blocks of the batch's distinct sentences.
        rows: for each row of the batch, number and length of each of its sentences; T is the longest sum of lengths.
    """
    parts = 2 if blocks.doubled else 1
    size = blocks.width // parts  # P
    ends = np.cumsum([0, *map(len, pieces)])
    numbers = np.empty(ends[-1] + size, dtype=DTYPE)
    np.concatenate([*pieces, np.zeros(size, dtype=DTYPE)], out=numbers)
    vectors = torch.from_numpy(numbers).view(-1, size)
    return Stored(vectors, torch.from_numpy(_words(ends // size, rows)), blocks.n_layers, parts)


def _words(starts: np.ndarray, rows: Sequence[Sequence[tuple[int, int]]]) -> np.ndarray:
    """`Stored.words`, from the first vector of each piece."""
    totals = np.array([sum(length for _, length in row) for row in rows], dtype=np.int64)
    words = np.zeros((len(rows), totals.max(initial=0), 3), dtype=np.int32)
    flat = np.array([piece for row in rows for piece in row], dtype=np.int64).reshape(-1, 2)
    number, lengths = flat.T
    begin = np.repeat(np.cumsum(lengths) - lengths, lengths)
    each = np.stack([np.repeat(starts[number], lengths), np.repeat(lengths, lengths), np.arange(len(begin)) - begin], 1)
    words[np.arange(words.shape[1]) < totals[:, None]] = each
    return words


SHARD_BYTES = 256 << 20  # approximate; a killed run loses at most one shard's work
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
        folder: the folder of one source of layers; it need not exist yet.
        blocks: the layout of its blocks.

    Attributes:
        places: the position of each sentence's block, by its `digest`.
        damaged: indices of shards with damage; they are removed for later processes, but their intact blocks can still
            be read here.
    """

    def __init__(self, folder: Path, blocks: Blocks):
        self.folder, self.blocks = folder, blocks
        self.places: dict[bytes, Place] = {}
        self.damaged: dict[Path, None] = {}  # in the order of discovery
        self._data: list[np.ndarray] = []
        self._indices: list[Path] = []  # of the shards in `_data`
        self._known: set[str] = set()  # names of indices, mapped or damaged
        self._checked: dict[tuple[str, ...], np.ndarray] = {}

    def refresh(self) -> None:
        """Maps new shards into memory, except damaged ones and those of other users."""
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
        """A sentence's block, or None if it is missing or damaged.

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
        """Writes one shard of sentences and their blocks; takes only as many as fill it."""
        last = max((int(path.name[:5]) for path in self.folder.glob("[0-9]" * 5 + "-*.npz")), default=-1)
        name = f"{last + 1:05d}-{uuid.uuid4().hex}"  # unique among all machines that share the folder
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
        """Removes a damaged shard; if the folder cannot be written, every process finds the damage again."""
        self.damaged[index] = None
        with suppress(OSError):
            index.unlink(missing_ok=True)
            index.with_suffix(".bin").unlink(missing_ok=True)
