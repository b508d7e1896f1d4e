"""Prints the peak memory of one training step of a task at scale=paper, with ELMo from the cache: `... FILE`.

The model is that of the page, with layers as wide as the release's; FILE holds the rows, chosen by another process
(`cases.choose`), so that reading a data set does not count.
"""

from __future__ import annotations

import json
import sys

from elmo_bench.running.data import lengths
from elmo_bench.speed.cases import Case
from elmo_bench.system.machine import peak_mib
from elmo_bench.system.storage import json_text


def main(file: str) -> None:
    """One step of training, without the optimizer; prints the rows, the words of the longest and the peak as JSON."""
    case = Case(json_text.read(file))
    batch = case.batches[0]
    case.module()(batch).loss.backward()
    words = max(lengths(batch.rows, case.reader.fields))
    print(json.dumps({"rows": len(batch.rows), "words": words, "peak_mib": peak_mib()}))


if __name__ == "__main__":
    main(*sys.argv[1:])
