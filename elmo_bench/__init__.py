"""ELMo on its six benchmark tasks: the framework, independent of any one task. `elmo-bench` lists the commands."""

import os
import sys

COMMAND = os.path.basename(sys.argv[0]) in ("-m", "elmo-bench")  # a command of ours, or one of its processes
if COMMAND:  # before anything else is imported
    from elmo_bench.system.start import settle

    settle()
    os.environ["PYTHONSAFEPATH"] = "1"  # for what libraries start

from importlib.metadata import PackageNotFoundError, version  # noqa: E402

from elmo_bench.system import children  # noqa: E402
from elmo_bench.system.terminal import signals  # noqa: E402

if COMMAND:
    signals.at_once()
    children.end_with_parent()
    if sys.argv[0] == "-m" and not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):
        del sys.path[0]  # the current folder, whose `tasks` or `yaml` are not those of this package

try:
    __version__ = version("elmo_bench")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
