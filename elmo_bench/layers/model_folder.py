"""The folder of a Hugging Face model: its required files and its digest. torch is not imported here."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from elmo_bench.system.errors import StrPath, UserError
from elmo_bench.system.places import expanded
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import read_text
from elmo_bench.system.storage.hashing import content_sha256

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
# Code outside the library; escaped letters (\u...) could hide it, too.
CODE = r'\w*implementation\w*"\s*:(?!\s*(?:null|"eager"|"sdpa"))|\\u00[4-7]'
TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.txt"),
    *("vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model"),
)


def files(path: StrPath) -> list[Path]:
    """The files that determine a model's layers: its configuration, weights and tokenizer, sorted by name.

    Other files in the folder (a model card, weights in another format) are ignored.
    """
    folder = expanded(path)
    if not folder.is_dir():
        raise UserError("no such folder; bilm.path=FOLDER must be the folder of a Hugging Face model", folder)
    if not (folder / CONFIG).is_file():
        raise UserError(f"not the folder of a Hugging Face model: it has no {CONFIG}", folder)
    if named := re.search(CODE, read_text(folder / CONFIG)):  # `transformers` would fetch it from the hub and run it
        raise UserError(f"names code that is not in the folder ({named[0]}); remove this key", folder / CONFIG)
    weights = _weights(folder)
    tokenizer = [folder / name for name in TOKENIZER if (folder / name).is_file()]
    if not tokenizer:
        raise UserError("has no tokenizer: save it there too, with tokenizer.save_pretrained(FOLDER)", folder)
    return sorted([folder / CONFIG, *weights, *tokenizer])


def _weights(folder: Path) -> list[Path]:
    """One file, or an index and the files that it names."""
    if (folder / WEIGHTS).is_file():
        return [folder / WEIGHTS]
    if not (folder / INDEX).is_file():
        raise UserError(f"has no {WEIGHTS}, and pickled weights are never read: save the model as safetensors", folder)
    try:
        names = set(json_text.read(folder / INDEX)["weight_map"].values())
        missing = sorted(name for name in names if not (folder / name).is_file())
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise UserError(f"damaged index of the weights ({error}); download it again", folder / INDEX) from None
    if missing:
        raise UserError(f"names {missing[0]}, which does not exist; download it again", folder / INDEX)
    return [folder / INDEX, *(folder / name for name in names)]


def sha256(path: StrPath) -> str:
    """Digest of the names and bytes of `files`, which a process reads once."""
    digest = hashlib.sha256()
    for file in files(path):
        digest.update(f"{file.name} {content_sha256(file)}\n".encode())
    return digest.hexdigest()
