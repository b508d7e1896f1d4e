"""The paper's NER model on top of the word representation (section 4; supplement, NER)."""

from __future__ import annotations

from elmo_bench.tagging.head import TaggingHead


class NerHead(TaggingHead):
    """Two biLSTMs and a CRF, as in `TaggingHead`; predictions are described as "entities"."""

    described = "entities"
