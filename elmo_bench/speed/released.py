"""Sizes of the released biLMs."""

from __future__ import annotations

from elmo_bench.bilm.options import Options

FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]


def official(dim: int, projection: int, highways: int) -> Options:
    """A size of the release."""
    lstm = {"dim": dim, "projection_dim": projection, "n_layers": 2, "cell_clip": 3, "proj_clip": 3}
    cnn = {"embedding": {"dim": 16}, "filters": FILTERS, "n_highway": highways, "max_characters_per_token": 50}
    return Options.parse({"lstm": {**lstm, "use_skip_connections": True}, "char_cnn": cnn})


def small() -> Options:
    """13.6 million parameters."""
    return official(1024, 128, 1)


def original() -> Options:
    """93.6 million parameters."""
    return official(4096, 512, 2)
