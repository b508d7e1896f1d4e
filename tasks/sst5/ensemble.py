"""Several classifiers as one."""

from __future__ import annotations

from elmo_bench.nn.feedforward import METHOD, agreed, opinions

__all__ = ["METHOD", "agreed", "opinions"]
