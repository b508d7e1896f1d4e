"""Tuning a biLM on the text of a task, without its labels (paper, section 3.4), and its perplexities (Table 7)."""

from elmo_bench.tuning.tuned import TunedBilm

__all__ = ["TunedBilm"]
