"""A seventh task in one file: each word's label depends on the word before it, which is drawn from a seed."""

import random
from pathlib import Path
from typing import ClassVar, NamedTuple

from datasets import Dataset, DatasetDict
from torch import Tensor, nn

from elmo_bench.metrics.items import AdditiveMetric
from elmo_bench.system.errors import UserError
from elmo_bench.task import Batch
from elmo_bench.text.batching import pad, pad_tokens
from elmo_bench.text.part import WHOLE, Part
from elmo_bench.text.vocabulary import Vocabulary

PAGE = """
# @package _global_
task:
  name: toy
  scales: [open]
  monitor: accuracy
  paper: {baseline: 50.0, elmo: 60.0, elmo_deviation: 0.5}
  data: {root: "${data_root}", folder: toy, train: train.txt, dev: dev.txt, test: test.txt}
  fit: {epochs: 4, patience: null}
  reader: {_target_: tests.toy.ToyReader, data: "${task.data}"}
  words: {_target_: elmo_bench.embedding.vectors.word_embedding, _partial_: true, size: 4}
  chars: null
  head: {_target_: tests.toy.ToyHead, _partial_: true, dropout: 0.5}
  metric: {_target_: tests.toy.ToyMetric}
  score: tests.toy.score
  optimizer: {_target_: torch.optim.Adam, _partial_: true, lr: 0.01}
  clip: {value: 5.0, by: norm}
  batch: {batch_size: 8}
elmo:
  where: input
  lambda: 0.1
"""


def write(folder: Path, sentences: int = 40, seed: int = 1) -> Path:
    """train, dev and test below `folder`/toy; returns `folder`."""
    draw = random.Random(seed)
    words = "ba de gi ko lu".split()
    (folder / "toy").mkdir(parents=True, exist_ok=True)
    for split in ("train", "dev", "test"):
        lines = []
        for _ in range(sentences):
            sentence = draw.choices(words, k=draw.randint(1, 9))
            labels = ["A" if i and sentence[i - 1] in ("ba", "de") else "B" for i in range(len(sentence))]
            lines.append(" ".join(f"{word}/{tag}" for word, tag in zip(sentence, labels, strict=True)))
        (folder / "toy" / f"{split}.txt").write_text("\n".join(lines) + "\n")
    return folder


class ToyReader:
    fields = ("tokens",)
    lower = False

    def __init__(self, data):
        self.data, self.vocabularies = data, {}

    def load(self, part: Part = WHOLE) -> DatasetDict:
        folder = Path(self.data["root"], self.data["folder"])
        splits = {split: read(folder / self.data[split]) for split in ("train", "dev", "test")}
        splits["train"] = part.of(splits["train"], "sentences")
        self.vocabularies = {
            "words": Vocabulary.count(word for row in splits["train"] for word in row["tokens"]),
            "labels": Vocabulary(["A", "B"], special=False),
        }
        return DatasetDict({split: Dataset.from_list(rows) for split, rows in splits.items()})

    def collate(self, rows) -> Batch:
        labels = {}
        if all("tags" in row for row in rows):
            labels["tags"] = pad([[self.vocabularies["labels"][tag] for tag in row["tags"]] for row in rows])
        return Batch(
            list(rows), {"tokens": pad_tokens([r["tokens"] for r in rows], self.vocabularies["words"])}, labels
        )

    def from_text(self, **raw):
        if not raw.get("tokens"):
            raise UserError('expected {"tokens": [...]}')
        return {"tokens": raw["tokens"]}


def read(path: Path):
    rows = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        pairs = [pair.split("/") for pair in line.split()]
        if not pairs or any(len(pair) != 2 for pair in pairs):
            raise UserError("expected word/label ...", path, number)
        rows.append({"tokens": [word for word, _ in pairs], "tags": [tag for _, tag in pairs]})
    return rows


class ToyScores(NamedTuple):
    loss: Tensor | None
    logits: Tensor


class ToyHead(nn.Module):
    def __init__(self, input_size, elmo_size, vocabularies, dropout):
        super().__init__()
        self.labels = vocabularies["labels"].items
        self.dropout = nn.Dropout(dropout)
        self.hidden = nn.Linear(input_size, 8)
        self.project = nn.Linear(8 + elmo_size, len(self.labels))

    def forward(self, texts, batch):
        text = texts["tokens"]
        logits = self.project(text.after(self.hidden(self.dropout(text.x)).tanh()))  # (B, T, K)
        gold = batch.labels.get("tags")
        loss = None if gold is None else nn.functional.cross_entropy(logits[text.mask], gold[text.mask])
        return ToyScores(loss, logits)

    def decode(self, scores, batch):
        best = scores.logits.argmax(-1)
        return [
            [self.labels[int(i)] for i in ids[: len(row["tokens"])]] for ids, row in zip(best, batch.rows, strict=True)
        ]


class ToyMetric(AdditiveMetric):
    statistics = ("right", "all")

    def update(self, predictions, rows):
        for tags, row in self.tally.pairs(predictions, rows):
            self.tally.add(sum(a == b for a, b in zip(tags, row["tags"], strict=True)), len(tags))

    @staticmethod
    def from_totals(totals):
        return {"accuracy": 100 * totals["right"] / totals["all"]}


def score(gold, predictions):
    metric = ToyMetric()
    metric.update([row["tags"] for row in read(Path(predictions))], read(Path(gold)))
    return metric.compute()


class OtherMetric(ToyMetric):
    """Gives other numbers than its items wherever an answer is right."""

    def compute(self):
        return {name: value / 100 for name, value in super().compute().items()}


class NamedMetric(ToyMetric):
    def compute(self):
        return super().compute() | {"sentences": 42.0}


class ScriptedMetric(AdditiveMetric):
    """Its dev scores rise and fall as told, so that a test knows the best epoch and the stop. It has one example."""

    script: ClassVar[list[float]] = []
    statistics = ("accuracy",)

    def update(self, predictions, rows):
        assert len(predictions) == len(rows)
        if not len(self.items()):
            self.tally.add(type(self).script.pop(0))

    @staticmethod
    def from_totals(totals):
        return dict(totals)
