"""A biLM of two layers and eight cells, with random weights."""

import json
from pathlib import Path

import torch

from elmo_bench.bilm.model import BiLM
from elmo_bench.bilm.options import Options
from elmo_bench.layers.bilm import BilmLayers

OPTIONS = json.loads("""
{"lstm": {"use_skip_connections": true, "projection_dim": 4, "cell_clip": 3, "proj_clip": 3, "dim": 8, "n_layers": 2},
 "char_cnn": {"activation": "relu", "filters": [[1, 4], [2, 4]], "n_highway": 1, "embedding": {"dim": 4},
              "n_characters": 262, "max_characters_per_token": 50}}
""")


def exported(folder: Path, seed: int = 1) -> BilmLayers:
    """The biLM, from its files options.json and weights.hdf5 in a folder."""
    torch.manual_seed(seed)
    files = folder / "options.json", folder / "weights.hdf5"
    BiLM(Options.parse(OPTIONS)).export(*files)
    return BilmLayers(*files)


def overrides(folder: Path) -> list[str]:
    """The arguments of a study at scale=open by the biLM in a folder, with all that it reads and writes there."""
    return [
        "scale=open", f"data_root={folder}", f"vectors_root={folder}", f"cache_root={folder}/cache",
        f"results_root={folder}", "bilm=custom", "bilm.name=toy", f"bilm.options={folder}/options.json",
        f"bilm.weights={folder}/weights.hdf5",
    ]  # fmt: skip
