"""Prints the peak memory of one training step of a task at scale=paper, with ELMo from the cache: `... TASK FILE`.

The model is that of the page, with layers as wide as the release's; FILE holds the rows, chosen by another process
(`write_batch`), so that reading a data set does not count.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from hydra.utils import instantiate
from torch import Tensor

from elmo_bench.configuration import pages, schema
from elmo_bench.experiment.build import build
from elmo_bench.experiment.data import lengths, sentences
from elmo_bench.experiment.makers import Makers
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.layers.source import Sentences, padded
from elmo_bench.system.files import write_text
from elmo_bench.system.machine import peak_mib
from elmo_bench.task import Samples
from elmo_bench.text.batching import BucketSampler
from elmo_bench.text.vocabulary import Vocabulary


class RandomLayers:
    """A source of random layers with the release's sizes: reading them from the cache costs what the release's do."""

    n_layers, width, sha256, module = 3, 1024, "random", None
    cacheable, doubled_first_layer, settings = True, True, {"source": "random"}

    def layers(self, sentences: Sentences) -> Tensor:
        """(B, 3, T, 1024), zero-padded."""
        return padded(self._drawn(sum(map(len, sentences))), [len(sentence) for sentence in sentences])

    def batches(self, sentences: Sentences) -> Iterator[tuple[list[int], Tensor]]:
        """One sentence after another."""
        for i, sentence in enumerate(sentences):
            yield [i], self._drawn(len(sentence))

    def _drawn(self, words: int) -> Tensor:
        layers = torch.randn(self.n_layers, words, self.width)
        layers[0, :, self.width // 2 :] = layers[0, :, : self.width // 2]
        return layers


def tasks(scale: str) -> list[str]:
    """Those that offer both scale=paper and the scale whose data are read."""
    return [task for task in pages.tasks() if {"paper", scale} <= set(pages.compose([f"task={task}"]).task.scales)]


def write_batch(task: str, data: Sequence[str], file: Path) -> None:
    """Writes the rows and vocabularies of the training batch with the most padded words, cut as at scale=paper.

    Args:
        task: its name.
        data: overrides that choose the data, such as scale=open and data_root.
        file: JSON.
    """
    here = schema.typed(pages.compose([f"task={task}", "arm=baseline", *data]))
    paper = schema.typed(pages.compose([f"task={task}", "arm=baseline", "scale=paper"]))
    if (maker := Makers.of(here).scale) is not None:
        maker.make()
    reader = instantiate({**paper.task.reader, "data": here.task.data})
    train = reader.load()["train"]
    words, bounds = lengths(train, reader.fields), paper.task.batch
    batches = BucketSampler(words, bounds.batch_size, token_budget=bounds.token_budget).batches(0)
    rows = [train[i] for i in max(batches, key=lambda batch: len(batch) * max(words[i] for i in batch))]
    vocabularies = {name: vocabulary.state() for name, vocabulary in reader.vocabularies.items()}
    if isinstance(reader, Samples):
        rows = [reader.sample(row, np.random.default_rng(0)) for row in rows]
    write_text(file, json.dumps({"rows": rows, "vocabularies": vocabularies}))


def main(task: str, file: str) -> None:
    """One step of training, without the optimizer; prints the rows, the words of the longest and the peak as JSON."""
    torch.manual_seed(0)
    saved = json.loads(Path(file).read_text(encoding="utf-8"))
    run = schema.typed(pages.compose([f"task={task}", "arm=elmo", "scale=paper"]))
    reader, rows = instantiate(run.task.reader), saved["rows"]
    reader.vocabularies = {name: Vocabulary.restore(state) for name, state in saved["vocabularies"].items()}
    with tempfile.TemporaryDirectory() as folder:
        cache = ActivationCache(RandomLayers(), folder)
        cache.console.quiet = True
        cache.prepare(list(sentences([rows], reader.fields)))
        build(run, reader, cache).train()(reader.collate(rows)).loss.backward()
    print(json.dumps({"rows": len(rows), "words": max(lengths(rows, reader.fields)), "peak_mib": peak_mib()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
