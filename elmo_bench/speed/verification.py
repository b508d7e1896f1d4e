"""What it costs to compare a biLM's files with its card before they are used."""

from __future__ import annotations

import json
import time
from pathlib import Path
from statistics import median
from typing import Any

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.card import CARD
from elmo_bench.system.integrity import digests


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


def told(size: str, measured: dict[str, Any]) -> str:
    """A measurement of `opening` in one line."""
    plain, verified = (measured["seconds"][way] for way in ("open", "verify_and_open"))
    return (
        f"what verification costs: opening a biLM ({size}, {measured['mib']:.0f} MiB) takes {verified:.2f} s with a "
        f"card and {plain:.2f} s without"
    )
