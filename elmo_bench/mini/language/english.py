"""The tables of words.yaml and grammar.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from omegaconf import OmegaConf

from elmo_bench.system.storage import yaml_text


def table(name: str) -> dict[str, Any]:
    """The tables of a file in this folder. A string is a list of words: use `str.split`."""
    content: Any = OmegaConf.to_container(yaml_text.read(Path(__file__).with_name(f"{name}.yaml")))
    return content


WORDS, GRAMMAR, REVIEWS = map(table, ("words", "grammar", "reviews"))
TAGS = {word: tag for tag, words in WORDS["tags"].items() for word in words.split()}
THINGS = tuple(WORDS["things"].split())
