"""Training with Lightning: the trainer of a run, and resuming where an earlier process stopped."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytorch_lightning as pl
import torch
from lightning_fabric.utilities.exceptions import MisconfigurationException
from pytorch_lightning.callbacks import EarlyStopping, ProgressBar, RichProgressBar
from pytorch_lightning.strategies import DDPStrategy

from elmo_bench.configuration.schema import LIGHTNING, TaskConfig, TrainerConfig
from elmo_bench.nn.numerics import allow_tf32
from elmo_bench.running import unfinished
from elmo_bench.running.build import device_of
from elmo_bench.running.callbacks import AtomicCheckpoints, KeepBest, averaging, quiet
from elmo_bench.running.data import Data
from elmo_bench.running.module import SMALLER, BenchModule
from elmo_bench.running.ranks import ALONE, Environment, Rank
from elmo_bench.running.tracking import lightnings
from elmo_bench.system.errors import UserError, explained
from elmo_bench.system.machine import cores, keep_freed_memory


def make_trainer(
    task: TaskConfig,
    machine: TrainerConfig,
    folder: Path | None,
    callbacks: list[pl.Callback],
    logger: Any,
    rank: Rank = ALONE,
    unused: bool = False,
) -> pl.Trainer:
    """A Lightning trainer for this rank of a run.

    `unused` means that a batch may leave a parameter without a gradient; the search for such parameters takes time.
    """
    quiet()
    if task.fit.patience is not None and not any(isinstance(each, EarlyStopping) for each in callbacks):
        monitor = f"dev/{task.monitor}"
        callbacks = [EarlyStopping(monitor, patience=task.fit.patience, mode="max", check_on_train_epoch_end=True),
                     *callbacks]  # fmt: skip
    if task.average is not None:
        device = device_of(machine.accelerator)  # otherwise the averages stay on the CPU, and every update copies them
        callbacks = [averaging(task.average, device), *callbacks]
    shown = sys.stdout.isatty() if machine.progress == "auto" else bool(machine.progress)
    has_bar = any(isinstance(each, ProgressBar) for each in callbacks)  # which replaces ours
    bar = [RichProgressBar()] if shown and rank.first and not has_bar else []
    try:
        return pl.Trainer(
            accelerator=machine.accelerator,
            devices=rank.size if machine.gpu is None else [machine.gpu],
            strategy="auto" if rank.size == 1 else DDPStrategy(find_unused_parameters=unused),
            precision=machine.precision,  # type: ignore[arg-type]
            max_epochs=1 if machine.fast_dev_run else task.fit.epochs,
            limit_train_batches=int(machine.fast_dev_run) or machine.limit_batches,
            gradient_clip_val=task.clip.value,
            gradient_clip_algorithm=None if task.clip.value is None else task.clip.by,
            reload_dataloaders_every_n_epochs=1,  # an epoch's batches depend on its number, resumed or not
            num_sanity_val_steps=1,  # compares the metric with its items: `rehearse_metric`
            use_distributed_sampler=False,
            default_root_dir=folder,
            callbacks=[*callbacks, *bar],
            plugins=[AtomicCheckpoints(), Environment(rank)],
            logger=logger,
            enable_progress_bar=bool(bar) or has_bar,
            enable_model_summary=False,
            enable_checkpointing=True,
            **{name: getattr(machine, name) for name in LIGHTNING},
        )
    except (ValueError, TypeError, RuntimeError, MisconfigurationException) as error:
        raise UserError(f"callbacks or trainer: {error}") from error


def check_machine(machine: TrainerConfig) -> str:
    """The device from `device_of`, checked before anything is prepared."""
    device = device_of(machine.accelerator)
    if machine.precision == "16-mixed" and device == "cpu":  # Lightning would use bfloat16
        raise UserError("trainer.precision=16-mixed needs a GPU; bf16-mixed runs on a CPU, too")
    if machine.devices > (most := torch.cuda.device_count() if device == "cuda" else max(2, cores())):
        raise UserError(f"trainer.devices={machine.devices}: this machine has at most {most}")
    if machine.gpu is not None:
        asked = f"trainer.devices=[{machine.gpu}]"
        if machine.accelerator == "cpu":
            raise UserError(f"{asked} names a GPU, but trainer.accelerator is cpu: give the number of devices")
        if machine.gpu >= (there := torch.cuda.device_count()):
            raise UserError(f"{asked}: torch finds {there} GPUs here, numbered from 0")
    return device


def set_up(machine: TrainerConfig, rank: Rank = ALONE) -> None:
    """Sets torch's threads, the rank's own GPU, TF32, and deterministic algorithms in this process.

    Called before anything is opened, which would otherwise be on the first GPU.
    """
    keep_freed_memory()
    if machine.threads or machine.devices > 1:  # a rank has its share of the cores
        torch.set_num_threads(machine.threads or max(1, cores() // machine.devices))
    if device_of(machine.accelerator) == "cuda":
        torch.cuda.set_device(rank.number if machine.gpu is None else machine.gpu)
    allow_tf32(machine.tf32)
    if machine.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else cuBLAS may add in another order each time
    torch.use_deterministic_algorithms(machine.deterministic, warn_only=True)


def fit(trainer: pl.Trainer, module: BenchModule, data: Data, keep: KeepBest) -> int:
    """Trains, resuming after the last completed epoch; returns the number of epochs done before."""
    earlier = unfinished.check(keep.folder)
    if earlier and trainer.is_global_zero:
        print(f"resuming after epoch {earlier}", flush=True)
    resumed = keep.last if earlier else None
    trainer.num_sanity_val_steps *= not earlier
    try:
        with interruptible(trainer), explained(module.doing, SMALLER):
            trainer.fit(module, datamodule=data, ckpt_path=resumed, weights_only=True)
    except UserError:
        raise
    except Exception as error:
        if "loading state_dict" in str(error):
            raise UserError(f"not a checkpoint of this model; {unfinished.REMEDY}", keep.last) from error
        owners = (frame.f_locals.get("self") for frame, _ in traceback.walk_tb(error.__traceback__))
        raised = (type(one).__name__ for one in owners if isinstance(one, pl.Callback) and lightnings(one))
        alone = trainer.world_size == 1  # otherwise another rank's end may have caused the error
        if alone and (callback := next(raised, None)) is not None:
            raise UserError(f"callbacks: {callback}: {error}") from error
        if isinstance(error, MisconfigurationException):
            raise UserError(f"callbacks or trainer: {error}") from error
        raise
    return earlier


@contextmanager
def interruptible(trainer: pl.Trainer) -> Iterator[None]:
    """Turns Lightning's silent exit after Ctrl-C back into a `KeyboardInterrupt`.

    Signals are left to the caller. Lightning's own handler of SIGTERM would wait in vain for other ranks to take part,
    and in a Slurm job would end a run that is about to be queued again.
    """
    trainer._signal_connector.register_signal_handlers = lambda: None  # type: ignore[method-assign]
    try:
        yield
    except SystemExit as end:
        if trainer.interrupted:
            raise KeyboardInterrupt from end
        raise
