"""What the documents and the workflow say of the project is what pyproject.toml says."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PYTHONS = [found[1] for each in PROJECT["classifiers"] if (found := re.fullmatch(r".* :: (3\.\d+)", each))]


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


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


def test_the_changelog_begins_with_what_is_unreleased():
    assert re.findall(r"^## (.*)", read("CHANGELOG.md"), re.MULTILINE)[0] == "[Unreleased]"


def test_contributing_names_only_targets_and_files_that_exist():
    text = read("CONTRIBUTING.md")
    targets = set(re.findall(r"^([a-z][a-z-]*):(?!=)", read("Makefile"), re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z-]+)", text, re.MULTILINE))
    assert {"setup", "test", "lint", "report"} <= named <= targets
    links = [link for link in re.findall(r"\]\(([^)#:]+)\)", text) if link != "tasks/README.md"]
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_wheel_holds_what_the_package_reads():
    files = tomllib.loads(read("pyproject.toml"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert set(files["only-include"]) == {"elmo_bench", "tasks", "conf"}
    assert files["sources"]["conf"] == "elmo_bench/conf"
    assert (ROOT / "elmo_bench" / "py.typed").exists()
    assert list((ROOT / "elmo_bench" / "reporting" / "templates").glob("*.html"))
