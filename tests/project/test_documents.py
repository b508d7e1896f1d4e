"""What the documents and the workflow say of the project is what is there."""

import re

import pytest
import yaml

from elmo_bench.commands.command import COMMANDS, command
from tests.project.test_layout import PROJECT, ROOT, targets

pytestmark = pytest.mark.slow

PYTHONS = [found[1] for each in PROJECT["classifiers"] if (found := re.fullmatch(r".* :: (3\.\d+)", each))]
PAGES = sorted((ROOT / "docs").glob("*.md"))
TASKS = sorted((ROOT / "tasks").rglob("README.md"))
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *PAGES,
    *TASKS,
    *sorted((ROOT / "models").glob("*/README.md")),
]
LATER = {"results/replication.md"}  # a page that may not have been written yet
INVENTED = ("tasks/chunking/", "conf/task/chunking.yaml", "conf/cluster/ours.yaml")  # of examples


def read(name: str) -> str:
    return (ROOT / name).read_text()


def code(text: str) -> str:
    """What a page shows as commands: its blocks of shell and its `code`."""
    fence = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
    shell = [body for language, body in fence.findall(text) if language == "sh"]
    return "\n".join(shell + re.findall(r"`([^`\n]+)`", fence.sub("", text)))


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_the_workflow_runs_ci_on_every_python_of_the_project():
    (job,) = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"].values()
    assert job["strategy"]["matrix"]["python"] == PYTHONS == ["3.11", "3.12", "3.13"]
    assert any(step.get("run", "").startswith(".ci/run") for step in job["steps"])
    low, high = re.findall(r"3\.(\d+)", PROJECT["requires-python"])
    assert [f"3.{minor}" for minor in range(int(low), int(high))] == PYTHONS


def test_the_citation_is_that_of_this_version():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["references"][0]["doi"] == "10.18653/v1/N18-1202"
    assert {"cff-version", "message", "title", "authors"} <= set(citation)


# Pages are short and found.


def test_the_readme_is_read_in_five_minutes():
    text = read("README.md")
    assert len(text.splitlines()) <= 200
    assert "make reproduce TASK=ner   #" in text
    assert re.search(r"<!-- verdicts -->\n.*<!-- /verdicts -->", text, re.DOTALL)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_is_short_and_in_the_index(path):
    text = path.read_text()
    written = re.sub(r"<!-- generated: .*?<!-- /generated -->", "", text, flags=re.DOTALL)
    assert len(written.splitlines()) <= 250
    assert re.findall(r"^# .+", text)
    index = read("docs/README.md") + "(README.md)"
    assert f"({path.name})" in index


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = re.sub(r"^```\w*\n.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (path.parent / name).resolve() if name else path
        there = target.exists() or str(target.relative_to(ROOT)) in LATER
        if not there or (anchor and anchor not in anchors(target.read_text())):
            wrong.append(link)
    for name in re.findall(r"`((?:elmo_bench|system|tasks|tests|conf)/[\w./-]+\.\w+)`", text):
        there = any((ROOT / at / name).exists() for at in ("", "elmo_bench"))
        if not there and not name.startswith(INVENTED):
            wrong.append(name)
    assert wrong == []


# Commands, targets and keys that the pages name.


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_targets_and_commands_that_a_page_names_exist(path):
    shown = code(path.read_text())
    assert set(re.findall(r"\bmake ([a-z-]+)", shown)) <= targets()
    named = set(re.findall(r"(?:elmo-bench|-m elmo_bench) ([a-z][\w.]*)", shown))
    assert named <= set(COMMANDS)
    assert "-m elmo_bench." not in shown, "a command is `elmo-bench NAME` or `python -m elmo_bench NAME`"


def test_every_target_and_command_is_described():
    described = code(read("docs/commands.md"))
    assert targets() <= set(re.findall(r"\bmake ([a-z-]+)", described))
    named = set(re.findall(r"(?:elmo-bench )?([a-z][\w.]*)", described))
    assert set(COMMANDS) <= named
    assert {"setup", "test", "lint", "report"} <= set(re.findall(r"\bmake ([a-z-]+)", code(read("CONTRIBUTING.md"))))


def test_every_variable_of_the_environment_is_described():
    files = (path.read_text() for path in (ROOT / "elmo_bench").rglob("*.py"))
    asked = {name for text in files for name in re.findall(r"environ\.get\(\s*\"([A-Z_]+)\"", text)}
    ours = {name for name in asked if not name.startswith(("SLURM", "MASTER", "WORLD", "LOCAL"))}
    assert {"ELMO_BENCH_KERNELS", "DATA_ROOT"} <= ours
    described = set(re.findall(r"`([A-Z_]+)`", read("docs/files-and-errors.md")))
    assert ours - described == set()


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_help_names_the_page_of_a_command(name):
    page = command(name).page
    assert page
    text = read(f"docs/{page}.md")
    assert re.search(rf"\b{re.escape(name)}\b", text), f"docs/{page}.md does not speak of {name}"


# The overview of the code.


def test_the_overview_names_every_package():
    packages = {path.name for path in (ROOT / "elmo_bench").iterdir() if (path / "__init__.py").is_file()}
    readme = read("README.md").partition("## Folders")[2].partition("##")[0]
    column = "\n".join(re.findall(r"^\| ([^|]*) \|", readme, re.MULTILINE))
    named = {place for place in re.findall(r"`([^`\n]+)`", column) if "<" not in place}
    assert named
    assert [place for place in named if not any((ROOT / at / place).exists() for at in ("", "elmo_bench"))] == []
    listed = read("docs/development.md").partition("## Packages of elmo_bench")[2].partition("\n## ")[0]
    column = "\n".join(re.findall(r"^\| ([^|]*) \|", listed, re.MULTILINE))
    assert {each for each in re.findall(r"`([\w.]+)`", column) if not each.endswith(".py")} == packages
