"""Several NER models as one."""

from __future__ import annotations

from elmo_bench.tagging.ensemble import METHOD, agreed, opinions

__all__ = ["METHOD", "agreed", "opinions"]
