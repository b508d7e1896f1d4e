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
from tests.drill.tally import Tally
from tests.drill.trial import FAULT, Area

SOURCES = ("elmo_bench", "tasks", "conf", "tests")


def areas() -> list[Area]:
    """The areas of all modules of this package."""
    names = [module.name for module in pkgutil.iter_modules(drill.__path__) if module.name != "__main__"]
    modules = [importlib.import_module(f"{drill.__name__}.{name}") for name in names]
    return [area for module in modules for area in getattr(module, "AREAS", [])]


def main(argv: Sequence[str] | None = None, found: Sequence[Area] | None = None) -> int:
    """The exit status: 1 if a trial was a fault. `found` replaces the areas of this package."""
    given = _arguments(argv)
    chosen = _chosen(areas() if found is None else found, given.area)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 120)
    if given.trial is not None:
        return _repeat(chosen, given.seed, given.trial, console)
    path = given.state or places.ROOT / ".cache" / "drill" / f"{given.seed}-{_version()}.jsonl"
    if given.anew:
        path.unlink(missing_ok=True)
    tally = Tally(path)

    def missing() -> list[tuple[Area, list[int]]]:
        return [(area, left) for area in chosen if (left := tally.missing(area, given.seed, given.fraction))]

    interrupted = False
    try:
        crew.run(crew.Work(missing(), given.seed, tally.keep, time.monotonic() + 60 * given.minutes), given.jobs)
    except KeyboardInterrupt:
        interrupted = True
    tally.read()
    whole = tally.show(chosen, given.seed, console)
    if missing():
        print("not finished: the same command goes on", file=sys.stderr)
        return 130 if interrupted else 1
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


def _chosen(found: Sequence[Area], wanted: Sequence[str]) -> list[Area]:
    """The areas of these names, or those whose names begin so."""
    names, chosen = [area.name for area in found], set()
    for one in wanted:
        matching = [one] if one in names else [name for name in names if name.startswith(one)]
        if not matching:
            sys.exit(f"--area {one}: there is no such area; choose from {', '.join(names)}")
        chosen.update(matching)
    return [area for area in found if area.name in chosen]


def _repeat(chosen: Sequence[Area], seed: int, number: int, console: Console) -> int:
    """Conducts one trial and prints what came of it."""
    if len(chosen) != 1:
        sys.exit(f"--trial is of one area; choose from {', '.join(area.name for area in chosen)}")
    chosen[0].prepare()
    ((_, (outcome, told)),) = crew.conducted(chosen[0], seed, [number])
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
