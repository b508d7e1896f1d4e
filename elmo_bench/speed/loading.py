"""Prints what reading a task's data takes, with all its training rows: `... TASK DATA_ROOT`."""

from __future__ import annotations

import json
import sys
import time

from hydra.utils import instantiate

from elmo_bench.configuration import pages, schema
from elmo_bench.system.machine import peak_mib

WHOLE = {"squad": ["task.reader.train_questions=null"]}  # where scale=open takes a part


def main(task: str, data_root: str) -> None:
    """Reads the data of scale=open; prints the rows, the peak of memory and the CPU seconds as JSON."""
    page = pages.compose([f"task={task}", "scale=open", f"data_root={data_root}", *WHOLE.get(task, ())])
    reader, started = instantiate(schema.typed(page).task.reader), time.process_time()
    rows = {str(split): len(rows) for split, rows in reader.load().items()}
    print(json.dumps({"task": task, "rows": rows, "peak_mib": peak_mib(), "seconds": time.process_time() - started}))


if __name__ == "__main__":
    main(*sys.argv[1:])
