"""Arguments of Lightning's Trainer below `trainer.` that are answered with the key that sets them.

They are listed here, so that a recorded run or a wrong key loads no Lightning; a test compares them with its signature.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from elmo_bench.system.errors import UserError, as_typed

PRECISIONS = {"32": "32-true", "64": "64-true", "16": "16-mixed", "bf16": "bf16-mixed"}  # as older releases write them
WHOLE = "dev and test are scored whole, and dev after every epoch; trainer.fast_dev_run=true is a smoke run"
ENDS = "task.fit.epochs and task.fit.patience say when training ends"
OURS = "this is decided here, so that a resumed run equals an undisturbed one"
ANSWERS = {
    "max_epochs": "task.fit.epochs sets it",
    "gradient_clip_val": "task.clip.value sets it",
    "gradient_clip_algorithm": "task.clip.by sets it (norm or value)",
    "limit_train_batches": "trainer.limit_batches sets it",
    "overfit_batches": "trainer.limit_batches trains on a few batches",
    "callbacks": "callbacks=NAME adds some (conf/callbacks/), and +callbacks.NAME._target_=CLASS any other",
    "logger": "logger=NAME chooses it (conf/logger/)",
    "enable_progress_bar": "trainer.progress sets it (auto, true or false)",
    "gpu": "trainer.devices=[N] names a GPU by its number",
    "default_root_dir": "results_root sets it",
    "strategy": "trainer.devices=N trains with DDP, a process a device; there is no other strategy",
    "num_nodes": "a run has one machine; sweep on=slurm spreads the runs of a sweep over many",
    **dict.fromkeys(("max_steps", "min_steps", "max_time"), ENDS),
    **dict.fromkeys(("limit_val_batches", "limit_test_batches", "limit_predict_batches"), WHOLE),
    **dict.fromkeys(("val_check_interval", "check_val_every_n_epoch", "num_sanity_val_steps"), WHOLE),
    **dict.fromkeys(("enable_checkpointing", "enable_model_summary", "use_distributed_sampler", "barebones"), OURS),
    **dict.fromkeys(("reload_dataloaders_every_n_epochs", "plugins", "model_registry"), OURS),
}


def read(block: dict[str, Any], passed: Collection[str]) -> dict[str, Any]:
    """A `trainer` block in today's words, with `devices` as a number; null is Lightning's default of a `passed` key.

    Raises:
        UserError: an argument of Lightning that another key sets.
    """
    for name in block:
        if name in ANSWERS and not (name == "strategy" and block[name] in ("auto", "ddp")):
            raise UserError(f"trainer.{name}: {ANSWERS[name]}")
    kept = {key: value for key, value in block.items() if key != "strategy" and not (key in passed and value is None)}
    if (precision := str(kept.get("precision"))) in PRECISIONS:
        kept["precision"] = PRECISIONS[precision]
    return kept | _devices(kept)


def _devices(block: dict[str, Any]) -> dict[str, Any]:
    """`devices=[1]`, Lightning's way to name one GPU: a single device, whose number is no part of the run's id."""
    named = block.get("devices")
    if not isinstance(named, list):
        return {}
    if named == list(range(len(named))) and named:
        return {"devices": len(named)}
    if len(named) != 1 or isinstance(named[0], bool) or not isinstance(named[0], int) or named[0] < 0:
        wanted = "the number of one GPU, as in [1], or how many devices"
        several = "; of several by number: CUDA_VISIBLE_DEVICES=1,3 and trainer.devices=2"
        raise UserError(f"trainer.devices={as_typed(named)}: {wanted} is needed{several}")
    return {"devices": 1, "gpu": named[0]}
