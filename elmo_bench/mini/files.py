"""The names of the files of a mini data set, and how much they hold."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PositiveInt, Strict

from elmo_bench.configuration.keys import Keys

SPLITS = ("train", "dev", "test")
ENDINGS = {"ner": ".iob2", "srl": ".conll", "coref": ".conll", "snli": ".tsv", "squad": "-v1.1.json", "sst": ".txt"}
FILES = {task: [f"{task}/{split}{ending}" for split in SPLITS] for task, ending in ENDINGS.items()}
TEXT = (*(f"lm/{split}.txt" for split in SPLITS), "lm/senses.tsv")
Counts = Annotated[tuple[PositiveInt, PositiveInt, PositiveInt], Strict(False)]  # of train, dev, test


class Sizes(Keys):
    """How much to generate, and how rich the world is."""

    lm: Counts = (700_000, 10_000, 40_000)  # tokens
    ner: Counts = (400, 300, 1000)  # sentences
    srl: Counts = (600, 200, 600)  # sentences
    coref: Counts = (100, 40, 100)  # documents
    snli: Counts = (2400, 400, 1200)  # pairs
    squad: Counts = (1200, 100, 250)  # paragraphs of about four questions
    sst: Counts = (400, 300, 1000)  # sentences
    names: Annotated[int, Field(ge=200)] = 8000  # different names
    invented: Annotated[int, Field(ge=2)] = 12  # invented words per group of nouns and per frame of verbs
