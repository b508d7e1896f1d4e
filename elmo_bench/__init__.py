"""ELMo on its six benchmark tasks: the framework, independent of any one task. `elmo-bench` lists the commands."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("elmo_bench")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"

__all__ = ["__version__"]
