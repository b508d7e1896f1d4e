"""Measures one part of the work on a device and prints its figures: `... PART DEVICE ROWS OVERRIDE ...`.

A process of its own, so that its peak memory is its own and a part that hangs can be ended.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.pretraining.parallel import choose_device
from elmo_bench.speed import cases, device, on_device, pretraining, released
from elmo_bench.system.storage import json_text
from elmo_bench.system.terminal import console

Figures = dict[str, Any]
PAGES = {"cuda": ("small", "original"), "cpu": ("mini",)}  # of conf/pretrain
UPDATES = {"cuda": 150, "cpu": 60}  # of each; the rate is that of the last fifty


def names(kind: str, scale: str = "mini") -> list[str]:
    """The parts, for a kind of device and the tasks that have rows of a scale."""
    return ["encode", *(f"steps.{task}" for task in cases.tasks(scale)), *(f"pretraining.{p}" for p in PAGES[kind])]


def run(part: str, kind: str, rows: Path | None, data: Sequence[str], limit: float | None = None) -> Figures:
    """The figures of a part, measured in another process.

    Args:
        part: its name.
        kind: cpu or cuda.
        rows: folder of rows that were chosen before, <task>.json; None: they are chosen from `data`.
        data: overrides that choose the data.
        limit: seconds.

    Raises:
        subprocess.SubprocessError: the process failed, or did not end within the limit.
    """
    command = [sys.executable, "-m", "elmo_bench.speed.device_part", part, kind, str(rows or ""), *data]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=limit)
    return json.loads(done.stdout.splitlines()[-1])


def measured(part: str, place: torch.device, rows: str, data: Sequence[str]) -> Figures:
    """The figures of a part, with the best rates of the device in the same process."""
    kind, _, which = part.partition(".")
    figures: Figures = {"device": device.name(place), "roof": (best := on_device.roof(place))}
    if kind == "encode":
        return {**figures, "encode": _encode(place, best)}
    if kind == "pretraining":
        return {**figures, "pretraining": pretraining.measured(which, UPDATES[place.type], None, place, _gpu(place))}
    chosen = json_text.read(Path(rows) / f"{which}.json") if rows else on_device.choose(which, place, data)
    return {**figures, "rows": chosen["rows"], "steps": on_device.steps(chosen, place, best)}


def _gpu(place: torch.device) -> bool:
    return place.type == "cuda"


def _encode(place: torch.device, best: Figures) -> list[Figures]:
    """With random weights of the release's largest size, on a CPU of its smallest."""
    options = released.original() if _gpu(place) else released.small()
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "options.json", Path(folder) / "weights.hdf5"
        torch.manual_seed(0)
        BiLM(options).export(*files)
        return on_device.encode(files, place, best)


def main(part: str, kind: str, rows: str, *data: str) -> None:
    """Prints the figures as JSON, in one line."""
    print(json.dumps(measured(part, choose_device(kind), rows, data)))


if __name__ == "__main__":
    console.report(lambda: main(*sys.argv[1:]))
