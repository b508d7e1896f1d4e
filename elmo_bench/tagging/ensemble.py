"""Several taggers as one: the mean of their scores, emissions and transitions alike, and its best valid sequence."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from elmo_bench.tagging.head import TaggingHead, TaggingScores
from elmo_bench.task import Batch, Row

METHOD = "averaged emissions and transitions, Viterbi"


class Scored(NamedTuple):
    """What one tagger makes of a sentence."""

    emissions: Tensor  # (T, K)
    crf: dict[str, Tensor]  # the parameters of its CRF


def opinions(head: TaggingHead, scores: TaggingScores, batch: Batch) -> list[Scored]:
    """Of one member, for each row of a batch."""
    crf = {name: value.detach().cpu().clone() for name, value in head.crf.state_dict().items()}
    lengths = scores.mask.sum(1).tolist()
    return [Scored(x[:n].float().cpu(), crf) for x, n in zip(scores.emissions, lengths, strict=True)]


def agreed(members: Sequence[Sequence[Scored]], head: TaggingHead, rows: Sequence[Row]) -> list[Any]:
    """The answers of all members together.

    A CRF scores a sequence by a sum of emissions and transitions, so that the mean of the members' scores of a sequence
    is the score of a CRF with the mean of both.

    Args:
        members: the opinions of each, on all rows.
        head: of any member.
        rows: of the split.
    """
    head = copy.deepcopy(head).cpu()
    tables = [member[0].crf for member in members]
    head.crf.load_state_dict({name: torch.stack([crf[name] for crf in tables]).mean(0) for name in tables[0]})
    answers = []
    for row, *opinions in zip(rows, *members, strict=True):
        emissions = torch.stack([each.emissions for each in opinions]).mean(0)[None]  # (1, T, K)
        scores = TaggingScores(None, emissions, torch.ones(emissions.shape[:2], dtype=torch.bool))
        answers += head.decode(scores, Batch([row], {}, {}))
    return answers
