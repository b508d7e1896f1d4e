"""`python -P start.py -m MODULE ...` is `python -m MODULE ...`, but imports nothing from the current folder.

In a folder with a `random.py`, plain `python -m` imports that file instead of Python's own module. An empty part of
PYTHONPATH, as in `PYTHONPATH=$PYTHONPATH:FOLDER`, has the same effect. `elmo_bench` and `tasks` are imported from this
copy of the project, even if another copy is installed, as with a linked .venv.
"""

import os
import sys  # nothing else is imported before `settle`: Python itself has already loaded these two

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))


class Own:
    """Finds the packages of this copy of the project, before Python's other finders."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None):
        if name not in ("elmo_bench", "tasks"):
            return None
        from importlib.machinery import PathFinder

        return PathFinder.find_spec(name, [ROOT])


def settle() -> None:
    """Removes the current folder from the path of this process, and puts this copy before installed packages.

    If the current folder no longer exists, ends the process with one line.
    """
    try:
        here = os.getcwd()
    except FileNotFoundError:
        sys.stderr.write("error: the current folder has been removed; cd into another one\n")
        sys.exit(2)
    if sys.argv[0] == "-m" and not sys.flags.safe_path:
        del sys.path[0]
    if given := os.environ.get("PYTHONPATH"):
        named = [place for place in given.split(os.pathsep) if place]
        os.environ["PYTHONPATH"] = os.pathsep.join(named)  # for processes that this one starts
        wanted = here in map(os.path.abspath, named)
        sys.path[:] = [place for place in sys.path if wanted or place != here]
    others = [place for place in sys.path if place != ROOT]
    installed = (number for number, place in enumerate(others) if place.endswith("-packages"))
    others.insert(next(installed, len(others)), ROOT)
    sys.path[:] = others
    sys.meta_path.insert(0, Own)


if __name__ == "__main__":
    settle()
    import runpy

    place = sys.argv.index("-m") + 1  # options of Python before -m, such as -u, come too late
    module, sys.argv[:] = sys.argv[place], ["-m", *sys.argv[place + 1 :]]
    runpy.run_module(module, run_name="__main__", alter_sys=True)
