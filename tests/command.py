"""A command with the toy task and a stand-in for the biLM: `python -m tests.command CONF train KEY=VALUE ...`."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from pathlib import Path

from elmo_bench import __main__
from elmo_bench.layers import bilm
from elmo_bench.sweeps import together
from elmo_bench.system import places
from tests import fakes


def stand_in() -> None:
    """Puts the stand-in where the page of a biLM finds it."""
    setattr(bilm, "BilmLayers", fakes.FakeBiLM)  # noqa: B010


def stop_in_mid_epoch(epoch: int, batch: int, number: int = signal.SIGKILL) -> None:
    """A signal from within, before a batch of an epoch is trained on."""
    from elmo_bench.running.module import BenchModule

    step = BenchModule.training_step

    def stopped(self, *arguments):
        if (self.current_epoch, arguments[1]) == (epoch, batch):
            os.kill(os.getpid(), number)
        return step(self, *arguments)

    setattr(BenchModule, "training_step", stopped)  # noqa: B010


def wait_in_mid_training(folder: Path) -> None:
    """A run waits in the middle of its second epoch as long as there is a file with its seed in the folder."""
    from elmo_bench.running.module import BenchModule

    step = BenchModule.training_step

    def waiting(self, *arguments):
        if (self.current_epoch, arguments[1]) == (1, 1):
            while (folder / str(self.seed)).exists():
                time.sleep(0.2)
        return step(self, *arguments)

    setattr(BenchModule, "training_step", waiting)  # noqa: B010


def slow_down(seconds: float) -> None:
    """Every training step takes so much longer."""
    from elmo_bench.running.module import BenchModule

    step = BenchModule.training_step

    def slower(self, *arguments):
        time.sleep(seconds)
        return step(self, *arguments)

    setattr(BenchModule, "training_step", slower)  # noqa: B010


if __name__ == "__main__":
    places.CONF = Path(sys.argv.pop(1))
    name = sys.argv.pop(1)
    if "REAL" not in os.environ:
        stand_in()
    if "HOLD" in os.environ:
        wait_in_mid_training(Path(os.environ["HOLD"]))
    if "SLOW" in os.environ:
        slow_down(float(os.environ["SLOW"]))
    if "STOP" in os.environ:
        stop_in_mid_epoch(*map(int, os.environ["STOP"].split(",")))
    module = importlib.import_module(__main__.module(name))
    for other in ("train", "prepare"):
        setattr(together, other.upper(), [sys.executable, "-m", "tests.command", str(places.CONF), other])
    module.COMMAND.run(module.main)
