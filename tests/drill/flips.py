"""Damage to every kind of file that the project writes and later trusts.

After it, what reads the file must give the same result as before, or one line for the user.
"""

import locale
import os
import random
import shutil
import sys
import time
from collections.abc import Callable
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from elmo_bench.bilm import BiLM
from elmo_bench.layers.bilm import BilmLayers
from elmo_bench.system.storage.hashing import MEMORY, REMEMBERED, content_sha256
from tests.damage import damage
from tests.drill import results, scene, warm
from tests.drill.trial import EQUAL, FAULT, RESULT, Answer, Area

TURKISH = "tr_TR.UTF-8"
YEAR = 365.25 * 86400  # seconds


class Kind:
    """A kind of file.

    Args:
        make: the scene.
        pattern: of the files in it.
        use: reads them; its value is compared.
        sealed: a card names their sha256, so that every damage is refused.
    """

    def __init__(self, make: Callable[[Path], Any], pattern: str, use: Callable[[Path], Any], sealed: bool = False):
        self.make, self.pattern, self.use, self.sealed = make, pattern, use, sealed

    @cached_property
    def scene(self) -> scene.Scene:
        return scene.of(self.make)

    @cached_property
    def expected(self) -> Any:
        """What comes of undamaged files."""
        self.scene.restore()
        outcome, value = self.read()
        if outcome != warm.VALUE:
            raise RuntimeError(value)
        return value

    def read(self) -> tuple[str, Any]:
        return warm.call(lambda: self.use(self.scene.place))

    def trial(
        self, draw: random.Random, change: Callable[[Path, random.Random], str] = damage, any_result: bool = False
    ) -> Answer:
        """Damages one file, or changes it in another way, after which `any_result` may do."""
        expected = self.expected
        self.scene.restore()
        files = [path for path in sorted(self.scene.place.glob(self.pattern)) if path.stat().st_size]
        done = change(draw.choice(files), draw)
        outcome, told = self.read()
        if outcome == warm.VALUE:
            unharmed = told == expected and not (self.sealed and change is damage)
            other = (RESULT, str(told)) if any_result else (FAULT, "another result, or a damaged file, without a word")
            outcome, told = (EQUAL, "") if unharmed else other
        return outcome, f"{told}\n{done}: {_last(told)}"


def _last(told: str) -> str:
    return (told.strip().splitlines() or ["equal"])[-1]


def _safetensors(folder: Path) -> None:
    """A biLM with its weights in our format beside those in the official one."""
    made = scene.bilm(folder)
    BiLM.from_files(made / "options.json", made / "weights.hdf5").export(
        made / "options.json", made / "weights.safetensors"
    )


def _layers_of_safetensors(place: Path) -> Any:
    bilm = BilmLayers(place / "bilm" / "options.json", place / "bilm" / "weights.safetensors")
    return bilm.sha256, bilm.layers(results.SENTENCES).numpy().tobytes()


def _half_pretrained(folder: Path) -> None:
    scene.text(folder)
    shutil.rmtree(scene.pretrained(folder, "stop=20"))


def _cached(folder: Path) -> None:
    scene.bilm(folder)
    results.cached(folder)


def _vectors(folder: Path) -> None:
    scene.bench(folder)
    scene.vectors(folder)
    shutil.rmtree(folder / "results")


def _large(folder: Path) -> None:
    """A file whose digest is remembered."""
    (folder / "large.txt").write_text("ba de gi\n" * (REMEMBERED // 8))
    _digest(folder)


def _digest(folder: Path) -> str:
    return content_sha256(folder / "large.txt", folder / MEMORY)


KINDS = {
    "shipped biLMs": Kind(scene.shipped, "[mo]*/*", results.of_shipped_bilms, sealed=True),
    "shipped heads": Kind(scene.shipped, "heads/*/*", results.of_shipped_heads, sealed=True),
    "options.json": Kind(scene.bilm, "bilm/options.json", results.layers),
    "weights.hdf5": Kind(scene.bilm, "bilm/weights.hdf5", results.layers),
    "weights.safetensors": Kind(_safetensors, "bilm/weights.safetensors", _layers_of_safetensors),
    "softmax.safetensors": Kind(scene.bilm, "bilm/softmax.safetensors", results.language_model),
    "vocabulary.txt": Kind(scene.bilm, "bilm/vocabulary.txt", results.language_model),
    "card.json": Kind(scene.bilm, "bilm/card.json", results.card),
    "cache": Kind(_cached, "layers/*/[!l]*", results.cached),
    "best.ckpt": Kind(scene.trained, "results/work/*/*/*/best.ckpt", results.predicted),
    "resumed": Kind(scene.interrupted, "results/work/*/*/*/[!l]*.ckpt", results.of_run),
    "last.ckpt": Kind(scene.interrupted, "results/work/*/*/*/last.ckpt", results.of_run),
    "dev.items.npz": Kind(scene.interrupted, "results/work/*/*/*/dev.items.npz", results.of_run),
    "checkpoint.pt": Kind(_half_pretrained, "cache/pretrain/*/checkpoint.pt", results.exported),
    "vectors": Kind(_vectors, "cache/vectors/*/[!l]*", results.of_vectors),
    "mini": Kind(results.world, "world/**/*.*", results.world),
    "items.npz": Kind(scene.trained, "results/runs/*/*/*.items.npz", results.of_items),
    "record": Kind(scene.swept, "results/runs/*/*/*.json", results.reported),
    "digests.json": Kind(_large, MEMORY, _digest),
}


def aged(path: Path, draw: random.Random) -> str:
    """All files of its folder are years old, or of years to come, as after a wrong clock or a copy."""
    years, apart = draw.choice((-20, -1, 1, 20)), draw.choice((0, 1, YEAR))
    for each in sorted(path.parent.rglob("*")):
        moment = time.time() + years * YEAR + draw.uniform(-1, 1) * apart
        os.utime(each, (moment, moment))
    return f"{years} years on, {apart} s apart"


def abroad(path: Path, draw: random.Random) -> str:
    """Where the capital letter of i has a dot, and decimals follow a comma; for this process and its forks."""
    return locale.setlocale(locale.LC_ALL, TURKISH)


def _installed() -> bool:
    """Whether this machine knows the Turkish locale; if not, a line says that no trial takes place there."""
    try:
        locale.setlocale(locale.LC_MONETARY, TURKISH)
        locale.setlocale(locale.LC_MONETARY, "C")
    except locale.Error:
        print(f"{TURKISH} is not installed (localedef makes it): nothing is tried there", file=sys.stderr)
        return False
    return True


WAYS = {"flips": (damage, 30), "clock": (aged, 3), "locale": (abroad, int(_installed()))}
AREAS = [
    Area(f"{way}:{name}", number, partial(Kind.trial, kind, change=change), 120.0, warm.ready)
    for way, (change, number) in WAYS.items()
    for name, kind in KINDS.items()
    if number
]
