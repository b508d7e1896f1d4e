"""The rules of the layout: who may import whom, and that make and the pins say what is there."""

import ast
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import packages_distributions
from itertools import zip_longest
from pathlib import Path

import pytest
from hydra.utils import get_object
from omegaconf import OmegaConf
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.generate import pictures
from elmo_bench.configuration.composing import compose
from elmo_bench.configuration.pages import scales
from elmo_bench.system.places import CONF
from tests.conftest import PATIENCE, ROOT, clean_environment
from tests.fakes import cases, for_each

pytestmark = pytest.mark.slow

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="there is no make on this machine")


def imported(source: str, module: str) -> Iterator[str]:
    """Dotted names that the source of `module` imports, relative imports and import_module("...") resolved."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=base, names=names, level=level):
                above = module.split(".")[:-level] if level else []
                base = ".".join([*above, *([base] if base else [])])
                yield from (f"{base}.{alias.name}" for alias in names)
            case ast.Constant(value=str(text)) if re.fullmatch(r"tasks(\.\w+)+", text):
                yield text  # a module named in a string, to be imported later


@cache
def imports(*packages: str) -> dict[str, list[str]]:
    """What every module of the packages imports, by its dotted name; a package's own name ends in .__init__."""
    paths = {package: sorted((ROOT / package).rglob("*.py")) for package in packages}
    assert all(paths.values())
    names = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for found in paths.values() for path in found}
    return {module: list(imported(path.read_text(), module)) for path, module in names.items()}


def forbidden(module: str, name: str) -> bool:
    """The framework must not know the tasks, a task must not know its siblings."""
    ours, theirs = module.split("."), name.split(".")
    if theirs[0] != "tasks":
        return False
    return ours[0] == "elmo_bench" or (len(theirs) > 1 and ours[1] != theirs[1])


def test_json_is_written_in_one_place_which_refuses_what_is_not_finite():
    files = [path for top in ("elmo_bench", "tasks") for path in (ROOT / top).rglob("*.py")]
    assert [path.name for path in files if "json.dump" in path.read_text()] == ["json_text.py"]


def test_a_class_name_stands_for_one_thing():
    """But for the commands, which have the names that one types."""
    files = [path for top in ("elmo_bench", "tasks") for path in (ROOT / top).rglob("*.py")]
    files = [path for path in files if path.parent.name != "commands"]
    nodes = (node for path in files for node in ast.walk(ast.parse(path.read_text())))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, number in names.items() if number > 1] == []


def test_the_framework_knows_no_task_and_no_task_knows_another():
    modules = imports("elmo_bench", "tasks").items()
    assert [(module, name) for module, names in modules for name in names if forbidden(module, name)] == []


# The packages of elmo_bench/ from the lowest to the highest; each may import those before it; `task` is the contract,
# task.py, `elmo_bench` the package itself with its Python interface, and `__main__` the console command.
ORDER: Sequence[str] = """
    system text metrics task nn configuration sources bilm layers embedding records running trained sweeps
    reporting tuning mini tagging analysis speed elmo_bench commands __main__
""".split()
FILES = 16  # the most files of a folder


def room(module: str) -> str:
    """The package of a module."""
    return module if module == "elmo_bench" else module.split(".")[1]


def arrows() -> set[tuple[str, str]]:
    """(importing, imported) modules of elmo_bench, wherever in the source the import stands; packages by their name."""
    modules = {module.removesuffix(".__init__"): names for module, names in imports("elmo_bench").items()}
    found = set()
    for module, names in modules.items():
        for name in names:
            while name and name not in modules:
                name = name.rpartition(".")[0]
            if name not in ("", module):
                found.add((module, name))
    return found


def test_the_root_of_the_package_holds_four_files_and_rooms():
    files = {path.name for path in (ROOT / "elmo_bench").iterdir() if path.is_file()}
    assert files == {"__init__.py", "__main__.py", "task.py", "py.typed"}
    folders = {path.parent.name for path in (ROOT / "elmo_bench").glob("*/__init__.py")}
    assert folders | {"task", "elmo_bench", "__main__"} == {*ORDER}


@for_each("top", "elmo_bench tasks tests conf docs/generate")  # docs/: by its index
def test_no_folder_has_more_files_than_one_sees_at_a_glance(top):
    listed = subprocess.run(["git", "ls-files", top], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
    assert listed
    folders = Counter(str(Path(name).parent) for name in listed if (ROOT / name).exists())
    assert {folder: number for folder, number in folders.items() if number > FILES} == {}


def test_imports_run_down_from_room_to_room():
    assert len(arrows()) > 200
    assert [(one, other) for one, other in arrows() if ORDER.index(room(other)) > ORDER.index(room(one))] == []


def test_the_drawn_packages_import_what_the_code_imports():
    found = {(room(one), room(other)) for one, other in arrows() if "elmo_bench" not in (one, other)}
    drawn = {(one, other) for one, others in pictures.imported().items() for other in others}
    assert drawn == {(one, other) for one, other in found if one not in ("__main__", other)}


def test_no_import_runs_in_a_circle():
    graph = {}
    for one, other in arrows():
        graph.setdefault(one, set()).add(other)
    assert list(TopologicalSorter(graph).static_order())


def test_tasks_import_the_contract_and_what_lies_below_the_models():
    allowed = ("task", "tagging", "nn", "text", "metrics", "system", "configuration")
    rooms = {(module, *name.split(".")[:2]) for module, names in imports("tasks").items() for name in names}
    assert [each for each in rooms if each[1] == "elmo_bench" and each[2] not in allowed] == []


def make(*arguments: str) -> subprocess.CompletedProcess[str]:
    """`make` with this interpreter in the place of .venv, which is neither made nor renewed."""
    command = ["make", "-o", ".venv/ready", f"RUN={sys.executable}", *arguments]
    return subprocess.run(command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, timeout=PATIENCE)


def targets() -> set[str]:
    rules = re.findall(r"^([a-z][a-z-]*):(?!=)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    return set(rules)


@needs_make
@cases("""
    place | typed
    here  | []
    local | []
    slurm | ["on=slurm"]
""")
def test_a_sweep_runs_here_unless_another_place_is_named(place, typed):
    assert re.findall(r"on=\w+", make("-n", "sweep", "NAME=context", f"ON={place}").stdout) == typed


@needs_make
def test_make_alone_lists_every_target():
    listing = make()
    assert listing.returncode == 0
    assert set(re.findall(r"^make ([a-z-]+) +\S", listing.stdout, re.MULTILINE)) == targets()


@needs_make
@pytest.mark.parametrize("arguments", [["figure"], ["table", "N=1", "TASK=nosuch"]])
def test_make_says_in_one_line_what_is_not_there(arguments):
    result = make(*arguments)
    assert result.returncode == 2
    said = [line for line in result.stderr.splitlines() if not line.startswith("make:")]
    assert len(said) == 1, result.stderr
    assert "there" in said[0]
    assert result.stdout == ""


def test_every_requirement_is_pinned_to_a_version_in_its_range():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = {str(canonicalize_name(line.partition("==")[0])): line.partition("==")[2] for line in lines if "==" in line}
    wanted = requirements([PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()])
    assert len(wanted) > 15
    assert [name for name in wanted if name not in pins] == []
    assert [name for name, requirement in wanted.items() if not requirement.specifier.contains(pins[name])] == []
    assert not [pin for pin in pins.values() if "+" in pin], "a local version tag fits one machine only"


def requirements(groups: list[list[str]]) -> dict[str, Requirement]:
    """By canonical name, this project's own name (extras of extras) left out."""
    wanted = [requirement for group in groups for requirement in map(Requirement, group)]
    return {str(canonicalize_name(r.name)): r for r in wanted if r.name != PROJECT["name"]}


def test_every_library_that_the_code_imports_is_a_declared_requirement():
    extras = PROJECT["optional-dependencies"]
    declared = requirements([PROJECT["dependencies"], *(extras[name] for name in extras if name != "dev")])
    distributions = packages_distributions()
    roots = {name.split(".")[0] for names in imports("elmo_bench", "tasks").values() for name in names}
    libraries = roots - sys.stdlib_module_names - {"elmo_bench", "tasks"}
    assert "torch" in libraries
    undeclared = [
        library
        for library in libraries
        if not {canonicalize_name(name) for name in distributions.get(library, [library])} & declared.keys()
    ]
    assert undeclared == []


def pages(group: str) -> list[str]:
    found = sorted(path.stem for path in (CONF / group).glob("*.yaml"))
    assert found, f"conf/{group} holds no file"
    return found


def dotted_targets(node: object) -> Iterator[str]:
    """Every `_target_` below a node."""
    if isinstance(node, dict):
        yield from (value for key, value in node.items() if key == "_target_")
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from dotted_targets(child)


@pytest.mark.parametrize("task", pages("task"))
@pytest.mark.parametrize("scale", pages("scale"))
def test_every_task_composes_at_every_scale_that_it_offers_and_its_classes_exist(task, scale):
    if scale not in scales(task):
        pytest.skip(f"{task} does not offer scale={scale}")
    config = OmegaConf.to_container(compose([f"task={task}", f"scale={scale}", "data_root=data"]), resolve=True)
    classes = list(dotted_targets(config))
    assert any(name.startswith(f"tasks.{task}.") for name in classes)
    assert all(callable(get_object(name)) for name in classes)


PLUGINS = {
    "launcher=joblib": "joblib-launcher",
    "launcher=slurm": "submitit-launcher",
    "sweeper=optuna": "optuna-sweeper",
}


@cache
def installed(choice: str) -> bool:
    """Whether Hydra has the plugin that a choice of pages needs, which is an extra."""
    return choice not in PLUGINS or f"hydra-{PLUGINS[choice]}" in packages_distributions().get("hydra_plugins", [])


def test_every_page_of_a_choice_composes():
    chosen = ("bilm", "trainer", "logger", "launcher")
    groups = {group: [page for page in pages(group) if installed(f"{group}={page}")] for group in chosen}
    for chosen in zip_longest(*groups.values()):
        choices = [f"{group}={page}" for group, page in zip(groups, chosen, strict=True) if page]
        assert OmegaConf.to_container(compose([*choices, "data_root=data"]), resolve=True)


@pytest.mark.parametrize("recipe", pages("pretrain"))
def test_every_recipe_of_a_bilm_composes(recipe):
    assert OmegaConf.to_container(compose([f"pretrain={recipe}", "data_root=data"], "pretrain"), resolve=True)
