"""Fixtures for the tests of the tasks."""

from collections.abc import Callable
from typing import Any

import datasets
import pytest

from elmo_bench.text import hub


@pytest.fixture
def on_hub(monkeypatch) -> Callable[[Any], list]:
    """Puts a data set on a hub that answers; returns the list of what it is asked for."""

    def put(dataset: Any) -> list[tuple[tuple, dict]]:
        asked = []
        monkeypatch.setattr(hub, "_reachable", lambda: True)
        monkeypatch.setattr(datasets, "load_dataset", lambda *a, **k: asked.append((a, k)) or dataset)
        return asked

    return put
