"""`python -m tests.drill`: conducts the trials of all areas, or goes on where an earlier call stopped; see README.md.

The areas are the lists AREAS of the modules of this package.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import pkgutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from elmo_bench.system import places
from elmo_bench.system.machine import cores
from tests import drill
from tests.drill import crew
from tests.drill.crew import Chunk
from tests.drill.tally import Tally
from tests.drill.trial import FAULT, Area

SOURCES = ("elmo_bench", "tasks", "conf", "tests")


def areas() -> dict[str, list[Area]]:
    """The areas of each module of this package."""
    names = [f"{drill.__name__}.{module.name}" for module in pkgutil.iter_modules(drill.__path__)]
    modules = [(name, importlib.import_module(name)) for name in names if not name.endswith("__main__")]
    return {name: list(module.AREAS) for name, module in modules if hasattr(module, "AREAS")}


def main(argv: Sequence[str] | None = None, found: dict[str, list[Area]] | None = None) -> int:
    """The exit status: 1 if a trial was a fault. `found` replaces the areas of this package."""
    given = _arguments(argv)
    chosen = _chosen(areas() if found is None else found, given.area)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    if given.trial is not None:
        return _repeat(chosen, given.seed, given.trial, console)
    tally = Tally(given.state or places.ROOT / ".cache" / "drill" / f"{given.seed}-{_version()}.jsonl")
    if given.anew and tally.path:
        tally.path.unlink(missing_ok=True)
        tally = Tally(tally.path)
    chunks = [
        Chunk(module, area.name, area.limit, numbers)
        for module, own in chosen.items()
        for area in own
        for numbers in tally.missing(area, given.seed, given.fraction)
    ]
    listed = [area for own in chosen.values() for area in own]
    until = time.monotonic() + 60 * given.minutes
    try:
        crew.run(chunks, given.seed, given.jobs, tally.keep, until)
        left = sum(len(numbers) for area in listed for numbers in tally.missing(area, given.seed, given.fraction))
    except KeyboardInterrupt:
        left = -1
    whole = tally.show(listed, given.seed, console)
    if left:
        print("not finished: the same command goes on", file=sys.stderr)
        return 130 if left < 0 else 1
    return 0 if whole else 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.drill", description=drill.__doc__)
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other trials")
    parser.add_argument("--area", nargs="+", default=[""], help="only these, or all that begin so: kills flips:cache")
    parser.add_argument("--trial", type=int, help="conduct only this trial of --area, and print what came of it")
    parser.add_argument("--fraction", type=float, default=1.0, help="of the full drill")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after these; the next call goes on")
    parser.add_argument("--jobs", type=int, default=min(2, cores()), help="processes at once")
    parser.add_argument("--anew", action="store_true", help="forget what earlier calls with this seed have done")
    parser.add_argument("--state", type=Path, help="the file of what is done; by default in .cache/drill/")
    return parser.parse_args(argv)


def _chosen(found: dict[str, list[Area]], wanted: Sequence[str]) -> dict[str, list[Area]]:
    """The areas of these names, or those whose names begin so."""
    names, chosen = [area.name for own in found.values() for area in own], set()
    for one in wanted:
        matching = [one] if one in names else [name for name in names if name.startswith(one)]
        if not matching:
            sys.exit(f"--area {one}: there is no such area; choose from {', '.join(names)}")
        chosen.update(matching)
    return {module: [area for area in own if area.name in chosen] for module, own in found.items()}


def _repeat(chosen: dict[str, list[Area]], seed: int, number: int, console: Console) -> int:
    """Conducts one trial and prints what came of it."""
    pairs = [(module, area) for module, own in chosen.items() for area in own]
    if len(pairs) != 1:
        sys.exit(f"--trial is of one area; choose from {', '.join(area.name for _, area in pairs)}")
    ((module, area),) = pairs
    outcomes = []
    chunk = Chunk(module, area.name, area.limit, range(number, number + 1))
    crew.run([chunk], seed, 1, lambda _, answers: outcomes.extend(answers))
    ((outcome, told),) = outcomes
    console.print(f"{outcome}: {told}", markup=False, soft_wrap=True)
    return 1 if outcome == FAULT else 0


def _version() -> str:
    """A hash of the code: what an earlier version has passed counts no more."""
    digest = hashlib.sha256()
    for folder in SOURCES:
        for path in sorted((places.ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".yaml"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


if __name__ == "__main__":
    sys.exit(main())
