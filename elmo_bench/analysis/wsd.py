"""The paper's Table 5."""

from __future__ import annotations

import sys
from itertools import islice
from pathlib import Path

import numpy as np

from elmo_bench.analysis.corpora import inventory
from elmo_bench.analysis.corpora import senses as corpora
from elmo_bench.analysis.corpora.senses import SenseSentence
from elmo_bench.analysis.disambiguation import disambiguate, f1, first_sense, scores
from elmo_bench.analysis.resampling import Score, clusters
from elmo_bench.analysis.settings import WsdConfig
from elmo_bench.analysis.study import Study
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.system.errors import UserError
from elmo_bench.text.vocabulary import coverage

NOTE = (
    "Fine-grained F1 in percent over {instances} instances: precision over the attempted instances, recall over all; "
    "any of several gold keys is right. An instance has the sense whose mean over {train} sentences is nearest "
    "by cosine, or its first sense if these lack the word. 95 % intervals from draws of the {clusters} of test. {scale}"
)
FIRST = "first sense"
HARDLY = 0.1  # the share of the words from which on an inventory is taken to be meant for a text


def load(settings: WsdConfig) -> tuple[list[SenseSentence], list[SenseSentence]]:
    """The sentences of train and test. Raises `UserError` for malformed files, or a file without senses."""
    loaded = [_sentences(settings, split) for split in ("train", "test")]
    for split, sentences in zip(("train", "test"), loaded, strict=True):
        if not any(sentence.instances for sentence in sentences):
            raise UserError("holds no word with a sense", getattr(settings, split))
    return loaded[0], loaded[1]


def _sentences(settings: WsdConfig, split: str) -> list[SenseSentence]:
    path, senses = getattr(settings, split), getattr(settings, f"{split}_senses")
    if path is None or (settings.format != "columns" and senses is None):
        raise UserError(f"format={settings.format} needs {split}=FILE and {split}_senses=FILE")
    if settings.format == "columns":
        return list(islice(corpora.read_columns(Path(path)), settings.sentences))
    read = corpora.read_xml if settings.format == "xml" else corpora.read_mini
    return read(Path(path), Path(senses))[: settings.sentences]


def measure(study: Study[WsdConfig]) -> StudyRecord:
    """The table."""
    train, test = load(study.settings)
    first, documents = _first(study.settings, train, test), [sentence.document for sentence in test]
    counts = first_sense(test, first)
    cells = _cells(study, FIRST, counts[None], documents)
    for name, source in study.open(cached=False).items():
        cells += _cells(study, name, disambiguate(source, train, test, first), documents)
    note = NOTE.format(
        instances=int(counts[:, 2].sum()), train=len(train), clusters=clusters(documents), scale=study.run.scale.note
    )  # fmt: skip
    return study.record(5, "word senses", note, cells)


def _first(settings: WsdConfig, train: list[SenseSentence], test: list[SenseSentence]) -> dict[tuple[str, str], str]:
    """The first senses: of the inventory, whose keys are then required, or of the training text."""
    if settings.inventory is None:
        return inventory.first_senses(train)
    path = Path(settings.inventory)
    numbers = inventory.read_index(path)
    for split, sentences in (("train", train), ("test", test)):
        gold = getattr(settings, f"{split}_senses") or getattr(settings, split)
        inventory.check_keys(sentences, numbers, path, Path(gold))
    first = inventory.first_of_index(numbers)
    words = [instance.word for sentence in test for instance in sentence.instances]
    mend = "is it index.sense of the WordNet that the keys are of, the first sense numbered 1?"
    known = sum(word in first for word in words)
    print(coverage(path, known, len(words), "first senses of the words of test", HARDLY, mend), file=sys.stderr)
    return first


def _cells(study: Study[WsdConfig], name: str, counts: np.ndarray, documents: list[str | None]) -> list[StudyCell]:
    """Of one source of layers, or of the first senses, which have none."""
    cells = study.by_layer(name, "F1", [Score(each[None], documents, f1) for each in counts], name != FIRST)
    for number, each in enumerate(counts):
        layer = None if name == FIRST else number
        cells += [StudyCell(name, quantity, value, layer) for quantity, value in scores(each).items()]
    return cells
