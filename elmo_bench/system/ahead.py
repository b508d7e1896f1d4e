"""Prepares the next batches in a background thread, if there is a free core."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from queue import Full, Queue
from typing import TypeVar

from elmo_bench.system.machine import cores

T = TypeVar("T")
PATIENCE = 5.0  # seconds to wait for the item that the thread is preparing


def ahead(items: Iterator[T], depth: int = 4) -> Iterator[T]:
    """The same items in the same order, up to `depth` of them prepared in a thread; errors are raised here.

    With one core a thread would gain nothing, and none is started.
    """
    if cores() == 1:
        yield from items
        return
    queue: Queue[tuple[T | None, BaseException | None]] = Queue(depth)
    stopped = threading.Event()

    def put(item: T | None, error: BaseException | None) -> None:
        while not stopped.is_set():
            try:
                queue.put((item, error), timeout=0.1)
                break
            except Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put(item, None)
                if stopped.is_set():
                    return
            put(None, StopIteration())
        except BaseException as error:
            put(None, error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            item, error = queue.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        stopped.set()
        thread.join(PATIENCE)  # a thread that is still in torch when the process ends would abort it
