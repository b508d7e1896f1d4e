"""Fixtures for the tests of Tables 4 to 6."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest


@pytest.fixture
def refused(monkeypatch, capsys) -> Callable[[ModuleType, list[str]], list[str]]:
    """Calls a command with arguments that it must refuse; returns the lines that it says."""

    def call(module: ModuleType, arguments: list[str]) -> list[str]:
        monkeypatch.setattr("sys.argv", ["elmo-bench", *arguments])
        with pytest.raises(SystemExit) as stopped:
            module.COMMAND.run(module.main)
        assert stopped.value.code == 2
        return capsys.readouterr().err.splitlines()

    return call
