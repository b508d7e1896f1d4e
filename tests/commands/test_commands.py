"""The commands' help, the console command, and the package as a wheel installs it."""

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import h5py
import pytest
from pydantic import Field

from elmo_bench import __version__
from elmo_bench.commands.analysis import OfStudies
from elmo_bench.commands.command import (
    COMMANDS,
    COMPLETED_LINE,
    HEADINGS,
    Command,
    Examples,
    File,
    Folder,
    HelpSection,
    command,
    complete,
    printed,
    summary,
)
from elmo_bench.configuration import composing
from elmo_bench.records import store
from elmo_bench.records.settings import Identity
from elmo_bench.system import places
from tests.conftest import PATIENCE
from tests.drill import documents
from tests.fakes import cases, refuses

pytestmark = pytest.mark.slow

OWN = list(COMMANDS)


def console_command(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    """`elmo-bench ARGUMENTS`, from the checkout."""
    return python("-m", "elmo_bench", *arguments, cwd=cwd, **environment)


def python(*arguments: str, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k not in ("DATA_ROOT", "ELMO_BENCH_CACHE")}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd or places.ROOT, env=inherited | environment, capture_output=True,
        text=True, timeout=PATIENCE,
    )  # fmt: skip


# The console command.


def test_alone_it_lists_every_command_with_a_line():
    done = console_command()
    assert (done.returncode, done.stderr) == (0, "")
    for heading, names in HEADINGS.items():
        assert f"\n{heading}:\n" in done.stdout
        for name in names:
            assert re.search(rf"^  {re.escape(name)} +{re.escape(summary(name))}", done.stdout, re.MULTILINE)
    assert console_command("--help").stdout == done.stdout


def test_every_command_is_listed():
    listed = {command(name) for name in COMMANDS}
    rooms = [importlib.import_module(listed_in.__module__) for listed_in in listed]
    classes = {each for room in rooms for each in vars(room).values() if isinstance(each, type)}
    assert {each for each in classes if issubclass(each, Command) and each.page and each is not OfStudies} == listed


def test_the_version_is_that_of_the_project():
    assert console_command("--version").stdout == f"elmo_bench {__version__}\n"
    project = tomllib.loads((places.ROOT / "pyproject.toml").read_text())["project"]
    assert __version__ == project["version"]
    assert project["scripts"] == {"elmo-bench": "elmo_bench.__main__:main"}


def test_an_unknown_command_is_one_line():
    done = console_command("trian")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: trian: there is no such command; did you mean train? choose from ")
    assert done.stderr.count("\n") == 1


@cases("""
    line                    | found
    predict fo              | ["format="]
    predict format=         | ["format=json", "format=official"]
    predict input=./i       | ["input=./in files/", "input=./in.jsonl"]
    score task=ner gold=~/i | ["gold=~/in files/", "gold=~/in.jsonl"]
    score task=sq           | ["task=squad"]
    data task=a             | ["task=all"]
    sweep on=               | ["on=local", "on=slurm"]
    train trainer.f         | ["trainer.fast_dev_run="]
    train scale=m           | ["scale=mini"]
    train elmo.where=       | ["elmo.where=both", "elmo.where=input", "elmo.where=none", "elmo.where=output"]
    sweep trainer.tf32=t    | ["trainer.tf32=true"]
    train --c               | [""]
""")
def test_tab_offers_arguments_values_and_files(line, found, tmp_path, monkeypatch, capsys):
    (tmp_path / "in.jsonl").touch()
    (tmp_path / "in files").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(COMPLETED_LINE, f"elmo-bench {line}")
    monkeypatch.setattr(sys, "argv", ["elmo-bench", "-sc", "query=bash"])
    complete()
    assert capsys.readouterr().out == " ".join(found) + "\n"


# Help.


def test_every_command_has_help_and_imports_nothing_heavy_for_it():
    """All in one process, which is started once: each is run as `python -m` runs it, by turns with both flags."""
    probe = """
import contextlib, io, json, sys
from elmo_bench import __main__
from elmo_bench.commands.command import COMMANDS
texts = {}
for i, name in enumerate(COMMANDS):
    sys.argv = ["elmo-bench", name, "task=ner", ("--help", "-h")[i % 2]]
    with contextlib.redirect_stdout(io.StringIO()) as text:
        __main__.main()
    texts[name] = text.getvalue()
heavy = sorted({"torch", "pytorch_lightning", "datasets", "h5py", "gensim", "matplotlib"} & set(sys.modules))
print(json.dumps([texts, heavy]))
"""
    done = python("-c", probe)
    assert done.returncode == 0, done.stderr
    texts, heavy = json.loads(done.stdout)
    assert heavy == []
    for name, text in texts.items():
        assert f"Usage: elmo-bench {name}" in text
        assert f"or: python -m elmo_bench {name}" in text
        assert "\nArguments:\n" in text
        assert "\nExamples:\n" in text
        assert "debug=false" in text


def test_a_run_has_every_key_with_its_default():
    text = command("train").help("train")
    for line in ("elmo.lambda=0.0 ", "elmo.where=input ", "task.fit.epochs=VALUE ", "trainer.threads=null "):
        assert f"\n  {line}" in text
    assert "\n  logger.wandb.project=elmo_bench" in text  # of a block that may be null
    assert "(none, input, output, both)" in text


LOADED = """
import json, sys
from elmo_bench import __main__
heavy = {"torch", "pytorch_lightning", "datasets", "pandas", "wandb", "h5py", "gensim", "matplotlib", "scipy"}
loaded = {}
for what, arguments in json.loads(sys.argv[1]).items():
    sys.argv = ["elmo-bench", *arguments]
    try:
        __main__.main()
    except SystemExit as end:
        loaded[f"status of {what}"] = end.code
    loaded[what] = sorted(heavy & set(sys.modules))
print(json.dumps(loaded))
"""


ANSWERS = {f"{part}{n}": text for part in "ab" for n, text in ((1, "Mira Tolk"), (2, "1,000"))}
SCORED = {  # gold, and where it has another format, predictions
    "ner": [documents.NER.partition("\n")[2]], "srl": [documents.CONLL], "coref": [documents.CONLL],
    "snli": ["neutral\n"], "sst5": ["3\n"], "squad": [json.dumps(documents.SQUAD), json.dumps(ANSWERS)],
}  # fmt: skip


def test_help_errors_recorded_runs_and_scores_load_nothing_that_trains(tmp_path):
    chosen = ["task=ner", f"results_root={tmp_path}", "seed=1"]
    path = store.place(tmp_path, "mini", "ner", Identity(composing.run_config(chosen)).run)
    path.parent.mkdir(parents=True)
    shutil.copy(places.ROOT / "results" / "runs" / "mini" / "ner" / path.name, path)
    typed = {"help": ["--help"], "a wrong key": ["sed=1"], "a wrong page": ["task=nre"], "a recorded run": chosen}
    calls = {what: ["train", *arguments] for what, arguments in typed.items()}
    for task, texts in SCORED.items():
        gold, predictions = (tmp_path / f"{task} {i}" for i in (0, -1))
        gold.write_text(texts[0])
        predictions.write_text(texts[-1])
        calls[task] = ["score", f"task={task}", f"gold={gold}", f"predictions={predictions}"]
    done = python("-c", LOADED, json.dumps(calls))
    assert "not run again" in done.stdout, done.stderr
    *scores, last = done.stdout.splitlines()[-1 - len(SCORED) :]
    loaded = json.loads(last)
    assert [loaded[f"status of {what}"] for what in ("a wrong key", "a wrong page")] == [2, 2]
    assert [loaded[what] for what in typed] == [[]] * 4
    assert not {"torch", "datasets", "pytorch_lightning"} & {*loaded["squad"]}  # the last one
    assert [{*json.loads(line).values()} for line in scores] == [{100.0}] * 6


# Declarations.


class Declared(Command):
    """Do x.

    A note.
    """

    examples: ClassVar[Examples] = {"gold=g": "scores g"}
    gold: File
    """right answers"""
    group: Annotated[int, Field(ge=1, le=99)] = 8
    """lines at once"""
    state: Literal["zero", "warm"] = "warm"
    """at first"""
    write: bool = False
    """keep"""
    root: Folder | None = None
    """where"""

    @classmethod
    def sections(cls):
        return [HelpSection("More", [("a", "b")])]


def parsed(*arguments: str):
    return Declared.parse(arguments).model_dump(exclude={"debug", "typed"})


def test_arguments_are_parsed_with_their_defaults():
    defaults = {"gold": "g", "group": 8, "state": "warm", "write": False, "root": None}
    assert parsed("gold=g") == defaults
    given = "gold=a=b group=9 write=true root=r state=zero debug=true".split()
    assert parsed(*given) == {"gold": "a=b", "group": 9, "state": "zero", "write": True, "root": "r"}


@cases("""
    given       | message
    group=0     | group=0: should be greater than or equal to 1
    group=x     | group=x: should be a valid integer
    state=cold  | state=cold: should be 'zero' or 'warm'
    write=maybe | write=maybe: should be a valid boolean
    stat=zero   | stat: there is no such key; did you mean state?
    zero        | zero: arguments are written key=value
    gold=       | missing argument gold=...
""")
def test_what_cannot_be_meant_is_named(given, message):
    arguments = [given] if given == "gold=" else ["gold=g", given]
    with refuses(message):
        Declared.parse(arguments)


def test_the_help_shows_what_was_declared():
    text = Declared.help("x")
    assert text.startswith("Do x.\n\nUsage: elmo-bench x gold=FILE [KEY=VALUE ...]\n")
    assert "  gold=FILE    right answers (required)\n  group=8      lines at once\n" in text
    assert "  root=FOLDER  where\n" in text
    assert "Examples:\n  elmo-bench x gold=g\n    scores g" in text
    assert "\n\nA note.\n\n" in text
    assert "More:\n  a  b" in text


def test_long_meanings_are_wrapped_and_long_terms_stand_alone():
    text = printed(HelpSection("S", [("k", "word " * 40), ("t" * 50, "meaning")]))
    assert all(len(line) <= 100 for line in text.splitlines())
    assert text.splitlines()[-2:] == ["  " + "t" * 50, "     meaning"]


# As a wheel installs it.


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A wheel that was built and unpacked, and an empty folder to work in."""
    pytest.importorskip("hatchling")
    built, site, work = (tmp_path_factory.mktemp(name) for name in ("built", "site", "work"))
    done = python("-m", "hatchling", "build", "-t", "wheel", "-d", str(built))
    assert done.returncode == 0, done.stderr
    (wheel,) = built.glob("*.whl")
    assert wheel.stat().st_size < 50 << 20
    install = ["install", "-q", "--no-deps", "--no-index", "--no-compile", "--target", site, wheel]
    python("-m", "pip", *map(str, install)).check_returncode()
    assert {path.name for path in site.iterdir() if path.suffix != ".dist-info"} == {"elmo_bench", "bin"}
    return site, work


@pytest.fixture
def stranger(installed):
    """What somebody else has put into the folder to work in: code, heads and biLMs under the project's names."""
    _, work = installed
    models, trap = work / "models", "raise SystemExit('the code of the current folder was run')"
    placed = [work / "tasks" / "__init__.py", work / "yaml.py", models / "heads" / "ner" / "card.json",
              models / "open" / "weights.hdf5", models / "mini" / "card.json"]  # fmt: skip
    for path in placed:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(trap)
    yield
    for path in placed:
        path.unlink()


SCRIPT = """
import json, sys
import tasks  # somebody's own
import elmo_bench
(answer,) = elmo_bench.load("ner").predict([{"text": "Ida Berg sang in Oslo ."}])
print(tasks.MINE, answer["prediction"]["tags"][0], *elmo_bench.BiLM.open("open").encode([["a", "boat"]])[0].shape)
from elmo_bench import __main__
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["elmo-bench", *arguments]
    __main__.main()
from elmo_bench.system import places
print(places.CHECKOUT, places.CONF, places.ROOT, places.RECORDED)
"""


@pytest.mark.usefixtures("stranger")
def test_a_wheel_predicts_embeds_and_reports_whatever_the_current_folder_holds(installed, tmp_path):
    """In a script of somebody's who has `tasks` beside it. It brings the heads and the open biLM, and writes only where
    it is called.
    """
    site, work = installed
    before = {path for path in site.rglob("*") if "__pycache__" not in path.parts}
    (tmp_path / "tasks.py").write_text("MINE = 7")
    (tmp_path / "script.py").write_text(SCRIPT)
    (work / "in.jsonl").write_text(json.dumps({"text": "Ida sang in Oslo ."}) + "\n")
    (work / "in.txt").write_text("Ida sang in Oslo .\n")
    (work / "labels.txt").write_text("3\n0\n")
    commands = [
        "predict task=ner input=in.jsonl output=out.jsonl".split(), ["embed", "input=in.txt", "output=out.hdf5"],
        "score task=sst5 gold=labels.txt predictions=labels.txt".split(), ["report"], ["train", "--help"],
        "train task=ner scale=open --cfg job --resolve".split(),
    ]  # fmt: skip
    asked = str(tmp_path / "script.py"), json.dumps(commands)
    done = python(*asked, cwd=work, PYTHONPATH=str(site), HOME=str(work))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split() == "7 B-PER 3 2 256".split()
    assert len(json.loads((work / "out.jsonl").read_text())["prediction"]["tags"]) == 5
    with h5py.File(work / "out.hdf5") as file:
        assert file["0"].shape == (3, 5, 256)  # type: ignore[union-attr]
    own = work / "results" / "own"
    assert sorted(path.name for path in own.iterdir()) == ["README.md", "report.html", "report.json"]
    assert "make" not in (own / "README.md").read_text()
    assert '{"accuracy": 100.0}\n' in done.stdout
    assert re.search("task= +coref, ner,", done.stdout)
    assert str(site / "elmo_bench" / "models" / "open" / "weights.hdf5") in done.stdout, done.stderr
    assert f"cache_root: {work}/.cache/elmo_bench\n" in done.stdout
    brought = [str(site / "elmo_bench" / name) for name in ("conf", "results")]
    assert done.stdout.splitlines()[-1].split() == ["False", brought[0], str(work), brought[1]]
    assert (site / "elmo_bench" / "py.typed").is_file()
    assert {path for path in site.rglob("*") if "__pycache__" not in path.parts} == before


@pytest.mark.usefixtures("stranger")
def test_a_wheel_names_no_make_where_data_is_missing(installed):
    site, work = installed
    asked = "train", "task=ner", "scale=open", "arm=baseline", "vectors=turian"  # which are in no package
    done = console_command(*asked, cwd=work, PYTHONPATH=str(site))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 3)  # data and word vectors
    assert done.stderr.startswith("error: ")
    assert "data_root=FOLDER" in done.stderr
    assert "make" not in done.stderr
