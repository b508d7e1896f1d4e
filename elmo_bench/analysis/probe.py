"""A linear classifier on the vectors of one layer (section 5.3 of the paper): softmax regression by Adam."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_bench.analysis.settings import PosConfig
from elmo_bench.layers.source import frozen_layers

GROUP = 64  # sentences whose layers are read at once
ROWS = 8192  # words classified at once


class Split(NamedTuple):
    """The words of a split: vectors (N, W) float16, and numbers of tags (N,), -1 for a tag that train lacks."""

    x: Tensor
    y: Tensor


def layer(source: Any, sentences: Sequence[list[str]], number: int) -> Tensor:
    """(N, W) float16, one layer of all words of the sentences."""
    parts = []
    for start in range(0, len(sentences), GROUP):
        group = sentences[start : start + GROUP]
        layers = frozen_layers(source, group)[:, number].half()  # (B, T, W)
        parts += [row[: len(sentence)] for row, sentence in zip(layers, group, strict=True)]
    return torch.cat(parts)


def numbered(splits: Sequence[Sequence[Sequence[str]]]) -> tuple[list[Tensor], int]:
    """The tags of train and of the other splits as numbers, -1 for a tag that train lacks; and how many train has."""
    known = {tag: i for i, tag in enumerate(sorted({tag for tags in splits[0] for tag in tags}))}
    return [torch.tensor([known.get(tag, -1) for tags in each for tag in tags]) for each in splits], len(known)


def train(split: Split, dev: Split, tags: int, settings: PosConfig, seed: int) -> Callable[[Tensor], Tensor]:
    """The classifier of the epoch that is best on dev, as a function (N, W) -> (N,)."""
    torch.manual_seed(seed)
    mean, deviation = _moments(split.x)
    model = nn.Linear(split.x.shape[1], tags)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    best, kept = -1.0, model.state_dict()

    def classify(x: Tensor) -> Tensor:
        with torch.no_grad():
            return torch.cat([model((part.float() - mean) / deviation).argmax(dim=1) for part in x.split(ROWS)])

    for _ in range(settings.epochs):
        for rows in torch.randperm(len(split.y)).split(settings.batch):
            scores = model((split.x[rows].float() - mean) / deviation)  # (rows, tags)
            optimizer.zero_grad()
            F.cross_entropy(scores, split.y[rows]).backward()
            optimizer.step()
        if (accuracy := (classify(dev.x) == dev.y).float().mean().item()) > best:
            best, kept = accuracy, {name: value.clone() for name, value in model.state_dict().items()}
    model.load_state_dict(kept)
    return classify


def _moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (W,) of the columns; 1 for a column that does not vary."""
    parts = x.split(ROWS)
    mean = sum((part.double().sum(dim=0) for part in parts), torch.zeros(x.shape[1]).double()) / len(x)
    squares = sum(((part.double() - mean).square().sum(dim=0) for part in parts), torch.zeros(x.shape[1]).double())
    deviation = (squares / len(x)).sqrt()
    return mean.float(), torch.where(deviation < 1e-4, 1.0, deviation).float()
