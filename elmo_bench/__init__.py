"""ELMo on its six benchmark tasks: the framework, independent of any one task. `elmo-bench` lists the commands.

The Python interface (docs/python.md) is imported when it is used: `BiLM.open`, `load`, `train`, `results`, and
`UserError`, which they raise for errors that a user can fix.
"""

import os
import sys

COMMAND = os.path.basename(sys.argv[0]) in ("-m", "elmo-bench")  # a command of ours, or one of its processes
if COMMAND:  # before anything else is imported
    from elmo_bench.system.start import settle

    settle()
    os.environ["PYTHONSAFEPATH"] = "1"  # for processes that libraries start

from importlib.metadata import PackageNotFoundError, version  # noqa: E402
from pkgutil import resolve_name  # noqa: E402
from typing import TYPE_CHECKING, Any  # noqa: E402

from elmo_bench.system import code, processes  # noqa: E402

if COMMAND:
    processes.end_at_signals()
    processes.end_with_parent()

try:
    __version__ = version("elmo_bench")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

if TYPE_CHECKING:
    from elmo_bench.bilm import BiLM
    from elmo_bench.records.frame import results
    from elmo_bench.records.record import Record
    from elmo_bench.system.errors import UserError
    from elmo_bench.trained.prediction import load
    from elmo_bench.trained.training import train

code.INTERFACE |= {  # imported when they are used
    "BiLM": "elmo_bench.bilm:BiLM",
    "Record": "elmo_bench.records.record:Record",
    "UserError": "elmo_bench.system.errors:UserError",
    "load": "elmo_bench.trained.prediction:load",
    "results": "elmo_bench.records.frame:results",
    "train": "elmo_bench.trained.training:train",
}
__all__ = ["BiLM", "Record", "UserError", "__version__", "load", "results", "train"]


def __getattr__(name: str) -> Any:
    if name not in code.INTERFACE:
        raise AttributeError(f"module 'elmo_bench' has no attribute {name!r}")
    return resolve_name(code.INTERFACE[name])


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
