"""Tiny models with random weights: a biLM of two layers and eight cells, and a BERT."""

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


# A BERT, as `save_pretrained` writes it; its vocabulary is made of syllables and letters.


SYLLABLES = ("ba", "de", "gi", "ko", "lu", "ma", "ne", "po", "ri", "su")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def write_bert(folder: Path, positions: int = 64, seed: int = 0) -> Path:
    """Writes configuration, weights (safetensors) and WordPiece tokenizer; returns the folder.

    Args:
        positions: the most pieces that the model reads at once.
        seed: of the weights.
    """
    from transformers import BertConfig, BertModel, BertTokenizer

    starts = [*SYLLABLES, *(a + b for a in SYLLABLES for b in SYLLABLES), *LETTERS]
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *starts, *(f"##{piece}" for piece in starts)]
    tokenizer = BertTokenizer(vocab={piece: i for i, piece in enumerate(vocabulary)})
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        config = BertConfig(
            vocab_size=len(vocabulary), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
            intermediate_size=24, max_position_embeddings=positions, initializer_range=0.5,
        )  # fmt: skip
        BertModel(config).save_pretrained(folder)
    return folder
