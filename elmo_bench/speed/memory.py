"""Peak memory, of a process that does one thing and prints it: `... corpus OPTIONS WEIGHTS SENTENCES DATA_ROOT`, or
`... step FILE`.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elmo_bench.bilm import BiLM
from elmo_bench.speed import device
from elmo_bench.speed.inputs import read_sentences
from elmo_bench.system.machine import peak_mib
from elmo_bench.system.storage import json_text


def corpora(options: Path, weights: Path, data_root: Path | None, sentences: int) -> dict[str, float]:
    """MiB of a process that encodes a corpus and of one that encodes a corpus four times as long, by their lengths."""
    return {
        str(number): device.in_own_process("memory", "corpus", options, weights, number, data_root)
        for number in (sentences, 4 * sentences)
    }


def step(task: str, data: Sequence[str]) -> dict[str, Any]:
    """Rows, words of the longest row, and peak memory in MiB of one training step with ELMo at the paper's sizes.

    Another process chooses the rows than trains on them, so that reading a data set does not count.
    """
    from elmo_bench.speed import cases

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "batch.json"
        cases.write(cases.choose(task, data), file)
        return device.in_own_process("memory", "step", file)


def _corpus(options: str, weights: str, number: str, data_root: str) -> float:
    """Computes the layers batch by batch and keeps none."""
    sentences, _ = read_sentences(Path(data_root) if data_root else None, int(number))
    if not sentences:
        raise ValueError("no sentences")
    while len(sentences) < int(number):
        sentences = (sentences * 2)[: int(number)]
    for _ in BiLM.from_files(options, weights).batches(sentences):
        pass
    return peak_mib()


def _step(file: str) -> dict[str, Any]:
    """One step of training, without the optimizer."""
    from elmo_bench.speed import cases
    from elmo_bench.text.tokens import lengths

    case = cases.Case(json_text.read(file))
    batch = case.batches[0]
    case.module()(batch).loss.backward()
    words = max(lengths(batch.rows, case.reader.fields))
    return {"rows": len(batch.rows), "words": words, "peak_mib": peak_mib()}


if __name__ == "__main__":
    print(json_text.dumps({"corpus": _corpus, "step": _step}[sys.argv[1]](*sys.argv[2:])))
