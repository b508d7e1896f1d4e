"""A run from Python: `elmo_bench.train("ner", ["arm=baseline", "seed=2"])`."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from elmo_bench.records.record import Record
from elmo_bench.system import console
from elmo_bench.system.errors import UserError
from elmo_bench.trained.opened import ALONE, default_dtype


def train(task: str = "ner", overrides: Sequence[str] | None = None) -> Record:
    """The record of a run, trained or found as by `elmo-bench train task=TASK OVERRIDES`.

    Args:
        task: a file in conf/task/.
        overrides: as on the command line, such as ["arm=baseline", "scale=open", "seed=2"].

    Only one thread trains or predicts at a time; others wait.
    """
    listed: Any = [] if overrides is None else overrides
    several = isinstance(listed, Iterable) and not isinstance(listed, str | Mapping)
    given: list[Any] = list(listed) if several else [listed]
    if not several or not all(isinstance(each, str) for each in given):
        raise UserError(f'overrides are {overrides!r}: give a list of texts, as in ["arm=baseline", "seed=2"]')
    if sweep := next((each for each in given if each.lstrip("+").startswith("sweep=")), None):
        raise UserError(f"{sweep}: a sweep has many runs, but train makes one; `elmo-bench sweep {sweep}` trains them")
    with ALONE, _process_kept():
        from elmo_bench.configuration import composing  # explains Hydra's errors
        from elmo_bench.running import launch

        try:
            return launch.train(composing.compose([f"task={task}", *given]))
        except Exception as error:
            message = None if isinstance(error, UserError) else console.explain(error)
            if message is None:
                raise
            raise UserError(message) from error


@contextmanager
def _process_kept() -> Iterator[None]:
    """A run seeds and configures its process; afterwards, the caller's state is restored.

    Lightning's `isolate_rng` would keep the run's seeds if the run ends in an error.
    """
    drawn, environment = random.getstate(), dict(os.environ)  # before imports, which may draw too
    import numpy as np
    import torch

    from elmo_bench.nn.numerics import tf32

    numpys = np.random.get_state()  # noqa: NPY002
    threads, deterministic = torch.get_num_threads(), torch.get_deterministic_debug_mode()
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    try:
        with warnings.catch_warnings(), torch.random.fork_rng(gpus), tf32(False), default_dtype("32-true"):
            yield
    finally:
        random.setstate(drawn)
        np.random.set_state(numpys)  # noqa: NPY002
        torch.set_num_threads(threads)
        torch.set_deterministic_debug_mode(deterministic)
        for name in os.environ.keys() - environment.keys():
            del os.environ[name]
        os.environ.update(environment)
