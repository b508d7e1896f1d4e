"""What tests of the speed share: a small data set, and processes that are forks."""

import subprocess
from types import SimpleNamespace

import pytest

from elmo_bench.speed import measuring
from tests.command import anew
from tests.conftest import ROOT, clean_environment

SIZES = "{lm:[300,50,50],ner:[12,12,12],srl:[30,10,10],coref:[6,4,3],snli:[60,20,20],squad:[8,4,4],sst:[60,20,20]}"


@pytest.fixture(scope="session")
def data(tmp_path_factory) -> list[str]:
    """Overrides for a small data set of the mini scale."""
    return ["scale=mini", f"scale.folder={tmp_path_factory.mktemp('mini')}", f"scale.sizes={SIZES}"]


@pytest.fixture
def forked(monkeypatch) -> None:
    """What is measured in a process of its own is measured in a fork, for which nothing large is imported again."""

    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        done = anew(ROOT, command[4], command[5:], clean_environment())  # after python -P start.py -m
        done.check_returncode()
        return done

    monkeypatch.setattr(measuring, "subprocess", SimpleNamespace(run=run))
