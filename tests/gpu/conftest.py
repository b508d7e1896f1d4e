"""The tests of `make gpu` share the data and the forks of the tests of the speed."""

from tests.speed.conftest import data, forked

__all__ = ["data", "forked"]
