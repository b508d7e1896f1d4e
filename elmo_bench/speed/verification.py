"""What it costs to compare files with their checksums before they are used: a biLM's, checkpoints, cached layers."""

from __future__ import annotations

import json
import os
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from omegaconf import OmegaConf

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.card import CARD
from elmo_bench.bilm.options import Options
from elmo_bench.configuration import pages
from elmo_bench.records import store
from elmo_bench.system import places
from elmo_bench.system.storage.hashing import sha256
from elmo_bench.system.storage.integrity import check_archive, digests, save_checkpoint

MEASURED = 1 << 25  # bytes


def opening(options: Path, weights: Path, rounds: int) -> dict[str, Any]:
    """Seconds to open a biLM without a card beside it and with one, alternating; medians over the rounds.

    The two files must be in one folder, which has no card; nor has it one afterwards.
    """
    card = options.parent / CARD
    known = {"files": digests(options.parent, (options.name, weights.name))}
    seconds: dict[str, list[float]] = {"open": [], "verify_and_open": []}
    for _ in range(rounds):
        for way, taken in seconds.items():
            if way != "open":
                card.write_text(json.dumps(known))
            started = time.perf_counter()
            BiLM.from_files(options, weights)
            taken.append(time.perf_counter() - started)
            card.unlink(missing_ok=True)
    return {"mib": weights.stat().st_size / 2**20, "seconds": {way: median(taken) for way, taken in seconds.items()}}


def shares(folder: Path) -> dict[str, float]:
    """The share of a run of NER with ELMo that its checks take, by scale; of the scales that have a record of one.

    Computed from this machine's rates: the biLM is hashed once, its checkpoints are read twice, and every cached layer
    is compared with its checksum in the first epoch.
    """
    rates, found = _rates(folder), {}
    for scale in ("mini", "open"):
        if (record := _recorded(scale)) is None:
            continue
        read = zip(_sizes(record, scale), rates, strict=True)
        found[scale] = sum(size / rate for size, rate in read) / record["seconds"]
    return found


def _recorded(scale: str) -> store.Record | None:
    """The first record of NER with ELMo."""
    folder = places.ROOT / "results" / "runs" / scale / "ner"
    records = (store.read(path) for path in sorted(folder.glob("*.json")))
    return next((record for record in records if record["arm"] == "elmo" and not record["variant"]), None)


def _sizes(record: store.Record, scale: str) -> tuple[float, float, float]:
    """Bytes that a run hashes of its biLM, checks of its checkpoints, and compares of its cached layers."""
    recipe: Any = OmegaConf.to_container(pages.compose([f"pretrain={scale}", "root=x"], "pretrain").recipe)
    options = Options.parse(recipe["options"])
    with torch.device("meta"):
        weights = sum(parameter.numel() for parameter in BiLM(options).parameters())
    checkpoints = 2 * 3 * record["parameters"]  # with Adam's two moments
    numbers = options.projection_dim * (1 + 2 * options.n_layers)  # of a token; layer 0 is stored once
    tokens = 1.5 * record["history"]["tokens"][0]  # those of train; dev and test have at most half as many
    return 4 * weights, 4 * checkpoints, 2 * numbers * tokens


def _rates(folder: Path) -> tuple[float, float, float]:
    """Bytes a second of hashing a file, of checking an archive, and of comparing numbers in memory."""
    data, file, archive = os.urandom(MEASURED), folder / "bytes", folder / "numbers.ckpt"
    file.write_bytes(data)
    save_checkpoint({"numbers": torch.frombuffer(bytearray(data), dtype=torch.uint8)}, archive)
    return _rate(lambda: sha256(file)), _rate(lambda: check_archive(archive, "")), _rate(lambda: zlib.crc32(data))


def _rate(check: Callable[[], Any]) -> float:
    """Bytes a second of a check of MEASURED bytes; the best of three."""
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        check()
        seconds.append(time.perf_counter() - started)
    return MEASURED / min(seconds)


def told(size: str, measured: dict[str, Any]) -> str:
    """A measurement of `opening` in one line."""
    plain, verified = (measured["seconds"][way] for way in ("open", "verify_and_open"))
    return (
        f"what verification costs: opening a biLM ({size}, {measured['mib']:.0f} MiB) takes {verified:.2f} s with a "
        f"card and {plain:.2f} s without"
    )
