"""SIGKILL at any moment of a long command; the same command, typed again, must come to the undisturbed result."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from elmo_bench.commands.compare import report
from elmo_bench.layers import cache
from elmo_bench.mini import ensure_data
from tests.drill import results, scene, warm
from tests.drill.trial import EQUAL, FAULT, Answer, Area

TRIES = 5  # to hit a command before it ends


class Kind:
    """A command.

    Args:
        make: the scene.
        act: the command; its value is compared.
    """

    def __init__(self, make: Callable[[Path], Any], act: Callable[[Path], Any]):
        self.make, self.act = make, act

    @cached_property
    def scene(self) -> scene.Scene:
        return scene.of(self.make)

    @cached_property
    def undisturbed(self) -> tuple[Any, float]:
        """The result, and the seconds that it takes."""
        self.scene.restore()
        started = time.monotonic()
        outcome, value = self.run()
        if outcome != warm.VALUE:
            raise RuntimeError(value)
        return value, time.monotonic() - started

    def run(self) -> tuple[str, Any]:
        place = self.scene.place
        return warm.call(lambda: self.act(place))

    def trial(self, draw: random.Random) -> Answer:
        """One to three kills, and the command once more."""
        expected, seconds = self.undisturbed
        self.scene.restore()
        moments = [self.kill(draw, seconds) for _ in range(draw.choice((1, 1, 2, 3)))]
        done = f"killed after {', '.join(f'{moment:.2f}' for moment in moments)} of {seconds:.2f} s"
        outcome, told = self.run()
        if outcome != warm.VALUE:  # one line, too: nothing was wrong but the kill
            return FAULT, f"{told}\n{done}: {told.strip().splitlines()[-1]}"
        return (EQUAL, done) if told == expected else (FAULT, f"{done}: another result")

    def kill(self, draw: random.Random, seconds: float) -> float:
        """Starts the command and kills it; returns after how many seconds."""
        moment = 0.0
        for _ in range(TRIES):
            moment = draw.uniform(0, seconds)
            child = warm.start(lambda: self.act(self.scene.place))
            time.sleep(moment)
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            if os.WIFSIGNALED(status):
                break
            seconds *= 0.7
        return moment


def _cache(place: Path) -> Any:
    """Fills the cache in several shards."""
    cache.SHARD_BYTES = 400
    return results.cached(place)


def _sweep(place: Path) -> Any:
    scene.sweep(place)
    return results.records(place)


def _swept(folder: Path) -> None:
    scene.bench(folder)
    scene.sweep(folder)


def _report(place: Path) -> Any:
    scene.opened(place)
    with scene.arguments(f"results_root={place}/results"):
        report.main()
    return results.pages(place)


def _data(place: Path) -> Any:
    ensure_data(place / "world", sizes=scene.WORLD)
    return results.contents(place / "world")


KINDS = {
    "train": Kind(scene.bench, results.of_run),
    "cache": Kind(scene.bilm, _cache),
    "pretrain": Kind(scene.text, partial(results.exported, every=0)),
    "sweep": Kind(scene.bench, _sweep),
    "report": Kind(_swept, _report),
    "data": Kind(scene.text, _data),
    "vectors": Kind(scene.bench, results.of_vectors),
    "predict": Kind(scene.trained, results.predicted),
    "embed": Kind(scene.bilm, results.embedded),
}
AREAS = [Area(f"kills:{name}", 10, partial(Kind.trial, kind)) for name, kind in KINDS.items()]
