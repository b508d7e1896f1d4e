"""Several coreference models as one: two mentions corefer where most models put them into one cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

from elmo_bench.task import Batch, Row
from tasks.coref.head import CorefHead, CorefScores, bracketed

METHOD = "links by majority, joined to clusters"
Mention = tuple[int, int]
Clusters = list[list[Mention]]


def opinions(head: CorefHead, scores: CorefScores, batch: Batch) -> list[Clusters]:
    """Of one member, for each document its clusters of mentions (first word, last word)."""
    decoded = head.decode(scores, batch)
    return [[[(first, last) for first, last in cluster] for cluster in each["clusters"]] for each in decoded]


def agreed(members: Sequence[Sequence[Clusters]], head: CorefHead, rows: Sequence[Row]) -> list[Any]:
    """The answers of all members together.

    Args:
        members: the opinions of each, on all rows.
        head: of any member; not needed.
        rows: of the split.
    """
    answers = []
    for row, *opinions in zip(rows, *members, strict=True):
        clusters = [[list(mention) for mention in cluster] for cluster in majority(opinions)]
        answers.append({"clusters": clusters, "text": bracketed(row["sentences"], clusters)})
    return answers


def majority(opinions: Sequence[Clusters]) -> Clusters:
    """The clusters that the links of more than half of the models give; a link joins two mentions of one cluster.

    A mention that more than half have in a cluster of its own is one of the result too, unless it is linked.
    """
    votes = Counter(link for clusters in opinions for link in _links(clusters))
    linked = sorted(link for link, number in votes.items() if 2 * number > len(opinions))
    cluster_of: dict[Mention, list[Mention]] = {}
    for first, second in linked:
        joined = cluster_of.get(first, [first])
        if second != first and second not in joined:
            joined += cluster_of.get(second, [second])
        for mention in joined:
            cluster_of[mention] = joined
    distinct = {id(cluster): sorted(cluster) for cluster in cluster_of.values()}
    return sorted(distinct.values())


def _links(clusters: Clusters) -> Iterable[tuple[Mention, Mention]]:
    """Each pair of mentions of a cluster; a mention that is a cluster of its own is linked to itself."""
    for cluster in clusters:
        mentions = sorted(set(cluster))
        yield from combinations(mentions, 2) if len(mentions) > 1 else [(mentions[0], mentions[0])]
