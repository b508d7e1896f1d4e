"""`python -m tests.drill`: conducts the trials of all areas, and shows what came of them; see README.md.

The areas are the lists AREAS of the modules of this package.
"""

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Sequence

from rich.console import Console

from elmo_bench.system.machine import cores
from tests import drill
from tests.drill import trial, warm
from tests.drill.trial import FAULT, Area


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
    answers = dict(warm.run(chosen, given.seed, given.fraction, given.jobs))
    return 0 if trial.show({area.name: answers[area.name] for area in chosen}, given.seed, console) else 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.drill", description=drill.__doc__)
    parser.add_argument("--seed", type=int, default=1, help="another seed draws other trials")
    parser.add_argument("--area", nargs="+", default=[""], help="only these, or all that begin so: kills flips:cache")
    parser.add_argument("--trial", type=int, help="conduct only this trial of --area, and print what came of it")
    parser.add_argument("--fraction", type=float, default=1.0, help="of the full drill")
    parser.add_argument("--jobs", type=int, default=min(2, cores()), help="processes at once")
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
    ((_, (outcome, told)),) = warm.conducted(chosen[0], seed, [number])
    console.print(f"{outcome}: {told}", markup=False, soft_wrap=True)
    return 1 if outcome == FAULT else 0


if __name__ == "__main__":
    sys.exit(main())
