"""Prints the peak memory of one batch of a task whose reader makes examples: `... TASK WORDS train|answer ROWS`.

The model is the page's at scale=paper, without ELMo; WORDS is the length of the longest text of every row.
"""

from __future__ import annotations

import sys

import torch
from hydra.utils import get_class, instantiate

from elmo_bench.configuration import pages, schema
from elmo_bench.running.build import build
from elmo_bench.running.data import sentences
from elmo_bench.speed.memory import peak_mib
from elmo_bench.task import MakesExamples
from elmo_bench.text.batching import BucketSampler
from elmo_bench.text.vocabulary import Vocabulary


def tasks() -> list[str]:
    """Those whose reader has `example(words)`, a labelled row of made-up words, and whose batches have a budget."""
    names = []
    for task in pages.tasks():
        page = pages.compose([f"task={task}", "scale=paper"]).task
        if page.batch.get("token_budget") and issubclass(get_class(page.reader._target_), MakesExamples):
            names.append(task)
    return names


def number(task: str, words: int, bounded: bool) -> int:
    """The rows of a batch as large as the page's batch size and, if bounded, its budget of padded tokens allow."""
    bounds = schema.typed(pages.compose([f"task={task}", "scale=paper", "arm=baseline"])).task.batch
    lengths, budget = [words] * bounds.batch_size, bounds.token_budget if bounded else None
    return len(BucketSampler(lengths, bounds.batch_size, token_budget=budget).batches(0)[0])


def main(task: str, words: str, mode: str, rows: str) -> None:
    """One step of training, or the answers of one batch."""
    torch.manual_seed(0)
    cfg = schema.typed(pages.compose([f"task={task}", "scale=paper", "arm=baseline"]))
    reader = instantiate(cfg.task.reader)
    row = reader.example(int(words))
    seen = [word for sentence in sentences([[row]], reader.fields) for word in sentence]
    reader.vocabularies = {"words": Vocabulary.count(seen), "chars": Vocabulary.count("".join(seen))}
    module = build(cfg, reader, None)
    batch = reader.collate([row] * int(rows))
    if mode == "train":
        module(batch).loss.backward()
    else:
        with torch.no_grad():
            module.eval().predict_step(batch)
    print(peak_mib())


if __name__ == "__main__":
    main(*sys.argv[1:])
