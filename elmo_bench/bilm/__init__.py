"""The bidirectional language model: `BiLM.from_files(options, weights, state="warm").encode(sentences)`."""

from elmo_bench.bilm.model import BiLM

__all__ = ["BiLM"]
