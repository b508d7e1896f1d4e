"""A tiny BERT with random weights, as `save_pretrained` writes it; its vocabulary is made of syllables and letters."""

from pathlib import Path

import torch

SYLLABLES = ("ba", "de", "gi", "ko", "lu", "ma", "ne", "po", "ri", "su")
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def write(folder: Path, positions: int = 64, seed: int = 0) -> Path:
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
