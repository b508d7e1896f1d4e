"""A command with the toy task and a stand-in for the biLM: `python -m tests.command CONF train KEY=VALUE ...`."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path

from elmo_bench.experiment import together
from elmo_bench.layers import bilm
from elmo_bench.system import console, places
from tests import fakes


def stand_in() -> None:
    """Puts the stand-in where the page of a biLM finds it."""
    setattr(bilm, "BilmLayers", fakes.FakeBiLM)  # noqa: B010


def stop_in_mid_epoch(epoch: int, batch: int, number: int = signal.SIGKILL) -> None:
    """A signal from within, before a batch of an epoch is trained on."""
    from elmo_bench.experiment.module import BenchModule

    step = BenchModule.training_step

    def stopped(self, *arguments):
        if (self.current_epoch, arguments[1]) == (epoch, batch):
            os.kill(os.getpid(), number)
        return step(self, *arguments)

    setattr(BenchModule, "training_step", stopped)  # noqa: B010


if __name__ == "__main__":
    places.CONF = Path(sys.argv.pop(1))
    name = sys.argv.pop(1)
    stand_in()
    if "STOP" in os.environ:
        stop_in_mid_epoch(*map(int, os.environ["STOP"].split(",")))
    module = importlib.import_module(f"elmo_bench.{name}")
    setattr(together, "TRAIN", [sys.executable, "-m", "tests.command", str(places.CONF), "train"])  # noqa: B010
    module.main() if name == "train" else console.report(module.main)
