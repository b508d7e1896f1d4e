"""Training on a fraction of the data (paper, section 5.4 and Figure 1): which part is read, and for how long.

The paper does not say how long its models were trained on a fraction. At 1 % of the data, the usual number of epochs
gives only 1 % of the updates, too few to learn. Each epoch therefore repeats the subset until the run makes
`task.fit.least_updates` updates, but never more than training on all the data. The number of epochs and the patience
stay the same.
"""

from __future__ import annotations

import inspect
import math
import sys

from datasets import DatasetDict

from elmo_bench.configuration.schema import RunConfig
from elmo_bench.system.errors import UserError
from elmo_bench.task import Reader
from elmo_bench.text.part import Part


def load(reader: Reader, run: RunConfig) -> DatasetDict:
    """The splits of a run: dev and test whole, of train the run's fraction.

    Raises:
        UserError: the errors of the reader; a fraction that does not fill a batch, or a reader that knows no fractions.
    """
    if run.fraction == 1:
        return reader.load()
    if "part" not in inspect.signature(reader.load).parameters:
        raise UserError(f"fraction={run.fraction}: the reader of task={run.task.name} can only read all of its data")
    splits = reader.load(Part(run.fraction, run.seed, run.task.batch.batch_size))
    print(f"fraction={run.fraction}: training on {len(splits['train'])} examples", file=sys.stderr)
    return splits


def passes(run: RunConfig, batches: int) -> int:
    """How often an epoch passes over the training data: once, if these are all of them.

    Args:
        run: its configuration.
        batches: the number of batches in one pass.
    """
    if run.fraction == 1:
        return 1
    together = run.trainer.devices * run.trainer.lightning.get("accumulate_grad_batches", 1)
    updates = run.task.fit.epochs * max(batches // together, 1)  # of all epochs, with one pass each
    return max(1, math.ceil(min(run.task.fit.least_updates / updates, 1 / run.fraction)))
