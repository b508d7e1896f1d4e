"""The project's folders."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

from elmo_bench.system.errors import StrPath, UserError

PACKAGE = Path(__file__).resolve().parent.parent
# Whether the package is used from a checkout, as with an editable install, or from an installed wheel.
CHECKOUT = (PACKAGE.parent / "pyproject.toml").is_file() and (PACKAGE.parent / "conf").is_dir()
# The remedy in messages about the data folder.
DATA_ROOT = "data_root=FOLDER" + (" (make: DATA_ROOT=FOLDER)" if CHECKOUT else "")
# The project's own files: beside the package in a checkout, inside it in a wheel, never in the current folder.
BROUGHT = PACKAGE.parent if CHECKOUT else PACKAGE
CONF = BROUGHT / "conf"
# The default folder of the user's own models, data and results: the checkout, or for a wheel the current folder.
ROOT = PACKAGE.parent if CHECKOUT else Path.cwd()
# The default folder of `elmo-bench data`, and the file that it writes there first.
DATA = ROOT / "data"
LICENCES = "LICENCES"


def other_checkout() -> Path | None:
    """The checkout of this project in the current folder, if it is not the running code."""
    here = Path.cwd()
    is_one = (here / "pyproject.toml").is_file() and (here / "elmo_bench" / "__main__.py").is_file()
    return None if not is_one or here.samefile(PACKAGE.parent) else here


def shipped(models_root: str | Path, name: str, typed: bool = False) -> Path:
    """A folder of models that come with the project.

    It is in the installed wheel unless the user names another `models_root`, which contains it. A folder of this name
    in the current folder, the default `models_root`, is not the project's. A relative `models_root` (typed by the user,
    or the mark `<models_root>` of a record) is kept.

    Args:
        models_root: folder of models.
        name: the folder below it.
        typed: whether the user has typed `models_root`, even if it is the default.
    """
    folder, brought = Path(models_root) / name, PACKAGE / "models" / name
    default = folder.parent == ROOT / "models" and not typed
    return brought if brought.is_dir() and folder.is_absolute() and (default or not folder.exists()) else folder


def packaged(package: str, folder: str = "") -> Path:
    """A folder in an installed package; if the package is not installed, a relative path, which does not exist."""
    found = find_spec(package)
    places = found.submodule_search_locations if found else None
    return Path(places[0] if places else package, folder)


def fetching(scale: str, task: str) -> str:
    """The command that fetches the data of a task."""
    return f"make data SCALE={scale} TASK={task}" if CHECKOUT else f"elmo-bench data scale={scale} task={task}"


# The reference runs, and the default folder of a user's own runs, which git ignores.
RECORDED = BROUGHT / "results"
OWN = ROOT / "results" / "own"


def is_evidence(results_root: str | Path) -> bool:
    """Whether a folder of results belongs to the reference runs."""
    return os.path.realpath(results_root) == str(RECORDED)


def machine_cache() -> Path:
    """The folder for files that belong to this machine, not to a run, such as compiled code."""
    return ROOT / ".cache" if CHECKOUT else expanded("~/.cache/elmo_bench")


def expanded(path: StrPath) -> Path:
    """A path with the home folder in place of its ~."""
    full = os.path.expanduser(path)
    if full.startswith("~"):
        raise UserError(f"{full}: there is no home folder; set HOME, or give an absolute path")
    return Path(full)


# A user's folder with configuration files and code: -cd FOLDER, or this variable, which child processes inherit.
FOLDER = "ELMO_BENCH_FOLDER"
FLAGS = ("-cd", "--config-dir")


def own() -> Path | None:
    """The folder with the user's own files and code, if one is given."""
    name = os.environ.get(FOLDER)
    if not name:
        return None
    folder = expanded(name).absolute()
    if not folder.is_dir():
        raise UserError(f"{name}: no such folder; -cd FOLDER (or {FOLDER}) names a folder with your own files and code")
    return folder


def take_own(arguments: list[str]) -> None:
    """Removes `-cd FOLDER` from the arguments of a command, and remembers the folder."""
    given = iter([*arguments])
    arguments.clear()
    for argument in given:
        flag, equals, value = argument.partition("=")
        if flag in FLAGS:
            os.environ[FOLDER] = os.path.abspath(value if equals else next(given, ""))
            own()
        else:
            arguments.append(argument)


def conf() -> list[Path]:
    """The folders of configuration files: the user's own, if there is one, then the project's.

    The user's own is `conf/` in their folder, as in a checkout, or the folder itself, as in Hydra.
    """
    folder = own()
    if folder is None:
        return [CONF]
    return [folder / "conf" if (folder / "conf").is_dir() else folder, CONF]


def page(group: str, name: str) -> Path:
    """The file of a group, in the first of these folders that contains it; otherwise a path in the project's."""
    there = [path for folder in conf() if (path := folder / group / f"{name}.yaml").is_file()]
    return there[0] if there else CONF / group / f"{name}.yaml"


def named(group: str) -> list[str]:
    """The names of the configuration files of a group."""
    return sorted({path.stem for folder in conf() for path in (folder / group).glob("*.yaml")})
