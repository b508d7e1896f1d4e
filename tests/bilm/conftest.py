"""Random biLMs, written once for all tests of a module."""

import pytest

from tests.reference_bilm import SIZES, Files, write_random


@pytest.fixture(scope="module", params=SIZES)
def files(request, tmp_path_factory) -> Files:
    """A random biLM of each shape."""
    return write_random(tmp_path_factory.mktemp(request.param), **SIZES[request.param])


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Files:
    return write_random(tmp_path_factory.mktemp("bilm"), seed=5)
