"""A command with the toy task and a stand-in for the biLM: `python -m tests.command CONF train KEY=VALUE ...`."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import types
from pathlib import Path

from elmo_bench.system import console, places
from tests import fakes


def stand_ins() -> None:
    """`elmo_bench.bilm` as far as a run needs it, without its weight."""
    for name, members in (
        ("elmo_bench.bilm", {"BiLM": fakes.FakeBiLM}),
        ("elmo_bench.layers.cache", {"ActivationCache": fakes.FakeCache}),
    ):
        module = types.ModuleType(name)
        vars(module).update(members)
        sys.modules[name] = module


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
    stand_ins()
    if "STOP" in os.environ:
        stop_in_mid_epoch(*map(int, os.environ["STOP"].split(",")))
    module = importlib.import_module(f"elmo_bench.{name}")
    module.main() if name == "train" else console.report(module.main)
