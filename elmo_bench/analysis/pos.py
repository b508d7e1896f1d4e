"""The paper's Table 6: parts of speech by a linear classifier on the vectors of one layer (section 5.3).

It is softmax regression, trained by Adam.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import compress, islice
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_bench.analysis.settings import PosConfig
from elmo_bench.analysis.study import GROUP, Score, Study, cluster_kind, words_of
from elmo_bench.embedding.vectors import Lookup, find
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.metrics.accuracy import Accuracy
from elmo_bench.records.studies import StudyRecord
from elmo_bench.system.errors import UserError
from elmo_bench.text.columns import Block, in_comments, read_blocks

NOTE = (
    "Accuracy in percent on {words} words of test: a linear classifier on the vectors of one layer, trained on {train} "
    "words, the epoch of best dev accuracy; the mean of {seeds} seeds, with its 95 % interval over the seeds "
    "and the {clusters} of test. {remark}{scale}"
)
NO_VECTORS = "The control {name} is left out: its files are not here (get them: {download}). "
SPLITS = ("train", "dev", "test")
ROWS = 8192  # words classified at once


def measure(study: Study[PosConfig]) -> StudyRecord:
    """The table."""
    settings = study.settings
    splits, cells = [read(Path(getattr(settings, split)), settings) for split in SPLITS], []
    for name, by_layer in _vectors(study, splits):
        scores = [[_score(settings, splits, tags, vectors) for tags in settings.tags] for vectors in by_layer]
        for tags, of_layers in zip(settings.tags, zip(*scores, strict=True), strict=True):
            cells += study.by_layer(name, tags, of_layers, name != settings.vectors)
    block, table = study.vectors
    remark = NO_VECTORS.format(name=block.name, download=block.download) if block and not table else ""
    note = NOTE.format(
        words=sum(splits[2].lengths), train=sum(splits[0].lengths), seeds=settings.seeds, remark=remark,
        clusters=cluster_kind(splits[2].documents), scale=study.run.scale.note,
    )  # fmt: skip
    return study.record(6, "parts of speech", note, cells)


def _vectors(study: Study[PosConfig], splits: list[Tagged]) -> Iterator[tuple[str, Iterator[list[Tensor]]]]:
    """Each source of vectors, and by layer the vectors (N, W) for the words of every split."""
    block, table = study.vectors
    if block and table:  # zero for words that the table lacks
        words = {word for split in splits for sentence in split.sentences for word in sentence}
        found, zero = find(table, words, block.size, Lookup(block.cased, "lower")), torch.zeros(block.size)
        static = [[found.get(word, zero) for words in split.sentences for word in words] for split in splits]
        yield str(study.settings.vectors), iter([[torch.stack(vectors).half() for vectors in static]])
    for name, source in study.open(cached=True).items():
        if isinstance(source, ActivationCache):
            source.prepare([sentence for split in splits for sentence in split.sentences])
        layers = range(source.n_layers)
        yield name, ([layer(source, split.sentences, number) for split in splits] for number in layers)


def _score(settings: PosConfig, splits: list[Tagged], tags: str, vectors: list[Tensor]) -> Score:
    """The accuracy on test of the classifiers of all seeds."""
    numbers, known = numbered([split.tags[tags] for split in splits])
    train, dev, test = map(Split, vectors, numbers)
    seeds, lengths = [], splits[2].lengths
    for seed in range(1, settings.seeds + 1):
        right = classifier(train, dev, known, settings, seed)(test.x) == test.y
        metric = Accuracy()  # an example is a sentence
        for i, (document, each) in enumerate(zip(splits[2].documents, right.split(lengths), strict=True)):
            metric.tally.add(int(each.sum()), len(each), cluster=document or i)
        seeds.append(metric)
    return Score.of(seeds, "accuracy")


# Text with parts of speech, in columns: CoNLL-U, CoNLL-2012, or words and tags.


class Tagged(NamedTuple):
    """The sentences of a split, their tags by the name of the tag set, and their documents if these are known."""

    sentences: list[list[str]]
    tags: dict[str, list[list[str]]]
    documents: list[str | None]

    @property
    def lengths(self) -> list[int]:
        return [len(sentence) for sentence in self.sentences]


def read(path: Path, settings: PosConfig) -> Tagged:
    """A split, up to `settings.sentences` sentences."""
    if not isinstance(settings.tags, dict) or not all(type(column) is int for column in settings.tags.values()):
        raise UserError(f"tags={settings.tags}: expected columns by the names of tag sets, as in tags={{XPOS: 4}}")
    widths = "sentence" if settings.apart else "file"
    listed = in_comments(read_blocks(path, comment=settings.comment, apart=settings.apart, widths=widths))
    if settings.numbers is not None:  # without ranges ("3-4") and empty nodes ("8.1") of CoNLL-U
        listed = ((_words_alone(block, settings.numbers), document) for block, document in listed)
    blocks = [*islice(((block, document) for block, document in listed if block.rows), settings.sentences)]
    if not blocks:
        raise UserError("contains no word", path)
    blocks, documents = zip(*blocks, strict=True)
    tags = {name: [block.column(column) for block in blocks] for name, column in settings.tags.items()}
    return Tagged([block.column(settings.word) for block in blocks], tags, list(documents))


def _words_alone(block: Block, column: int) -> Block:
    """The rows of a sentence whose token number is an integer."""
    words = [number.isdecimal() for number in block.column(column)]
    return block._replace(rows=[*compress(block.rows, words)], lines=[*compress(block.lines, words)])


# The classifier.


class Split(NamedTuple):
    """The words of a split: vectors (N, W) float16, and tag ids (N,), -1 for a tag that is not in train."""

    x: Tensor
    y: Tensor


def layer(source: Any, sentences: Sequence[list[str]], number: int) -> Tensor:
    """(N, W) float16, one layer of all words of the sentences."""
    groups = (sentences[start : start + GROUP] for start in range(0, len(sentences), GROUP))
    return torch.cat([words_of(source, group)[number].half() for group in groups])


def numbered(splits: Sequence[Sequence[Sequence[str]]]) -> tuple[list[Tensor], int]:
    """The tags of all splits as ids, -1 for a tag that is not in train, and the number of tags in train."""
    known = {tag: i for i, tag in enumerate(sorted({tag for tags in splits[0] for tag in tags}))}
    return [torch.tensor([known.get(tag, -1) for tags in each for tag in tags]) for each in splits], len(known)


def classifier(split: Split, dev: Split, tags: int, settings: PosConfig, seed: int) -> Callable[[Tensor], Tensor]:
    """The classifier of the best epoch on dev, as a function (N, W) -> (N,)."""
    torch.manual_seed(seed)
    parts, number = split.x.split(ROWS), len(split.x)
    mean = torch.stack([part.double().sum(dim=0) for part in parts]).sum(dim=0) / number
    squares = torch.stack([(part.double() - mean).square().sum(dim=0) for part in parts]).sum(dim=0)
    deviation = (squares / number).sqrt()
    mean, deviation = mean.float(), torch.where(deviation < 1e-4, 1.0, deviation).float()  # 1 for a constant
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
