"""Prefetching: a thread computes the next item while this one is used."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
END = object()


def ahead(things: Iterator[T]) -> Iterator[T]:
    """The same things in the same order, one of them ahead, made by a thread; an error comes in its place."""
    with ThreadPoolExecutor(1, "ahead") as thread:
        coming = thread.submit(next, things, END)
        while (thing := coming.result()) is not END:
            coming = thread.submit(next, things, END)
            yield thing  # type: ignore[misc]
