"""What the runs of a test have built and stored."""

import pytest

from elmo_bench.running import run


@pytest.fixture
def built(monkeypatch):
    """The readers of the runs whose models are built."""
    readers = []
    monkeypatch.setattr(run, "build", lambda *args, build=run.build: readers.append(args[1]) or build(*args))
    return readers
