"""`python -m elmo_bench.mini out=FOLDER [seed=1] [ner=1200,400,600] [names=4000] ...` writes a mini data set."""

from __future__ import annotations

import sys
from dataclasses import fields

from elmo_bench.mini import Sizes, ensure_data
from elmo_bench.system import console
from elmo_bench.system.errors import UserError


def main() -> None:
    """Generates the data set unless the folder has it already, and says where it is."""
    names = [field.name for field in fields(Sizes)]
    values = console.arguments(sys.argv[1:], ["out"], ["seed", *names])
    seed = _numbers("seed", values.get("seed", "1"))
    sizes = {name: _numbers(name, values[name]) for name in names if name in values}
    if not isinstance(seed, int):
        raise UserError(f"seed={values['seed']}: must be one whole number")
    print(ensure_data(values["out"], seed, sizes))


def _numbers(key: str, value: str) -> int | list[int]:
    try:
        numbers = [int(part) for part in value.split(",")]
    except ValueError:
        raise UserError(f"{key}={value}: must be whole numbers") from None
    return numbers if len(numbers) > 1 else numbers[0]


if __name__ == "__main__":
    console.report(main)
