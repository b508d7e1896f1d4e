"""Reads named entities from CoNLL column files or the hub."""

from __future__ import annotations

from elmo_bench.tagging.reader import TaggingReader


class NerReader(TaggingReader):
    """A row is {"tokens": [str], "tags": [str]}, with its "document" if known; all else as in `TaggingReader`."""

    hub_tags = "ner_tags"
