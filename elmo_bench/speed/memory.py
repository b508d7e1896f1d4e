"""Prints the peak memory of a process that runs a biLM over a corpus: `... OPTIONS WEIGHTS SENTENCES DATA_ROOT`."""

from __future__ import annotations

import sys
from pathlib import Path

from elmo_bench.bilm import BiLM
from elmo_bench.speed.text import read_sentences
from elmo_bench.system.machine import peak_mib


def main(options: str, weights: str, number: str, data_root: str) -> None:
    """Computes the layers batch by batch and keeps none."""
    sentences, _ = read_sentences(Path(data_root) if data_root else None, int(number))
    if not sentences:
        raise ValueError("no sentences")
    while len(sentences) < int(number):
        sentences = (sentences * 2)[: int(number)]
    for _ in BiLM.from_files(options, weights).batches(sentences):
        pass
    print(peak_mib())


if __name__ == "__main__":
    main(*sys.argv[1:])
