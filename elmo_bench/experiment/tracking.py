"""Where a run's metrics go: always CSV files, and Weights & Biases with `logger=wandb`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytorch_lightning.loggers import CSVLogger, Logger

from elmo_bench.configuration.schema import RunConfig, WandbConfig


@contextmanager
def tracking(config: RunConfig, folder: Path, run: str, variant: str, table: str) -> Iterator[list[Logger]]:
    """The loggers of a run, closed at its end, so that each run of a sweep is a separate W&B run.

    Args:
        config: of the run.
        folder: the run's work folder; a resumed run starts a new `csv/version_<n>`.
        run: its id.
        variant: the name of the arm and variant, as in reports; the W&B job type.
        table: the sweep or table that the run belongs to; the W&B group.
    """
    chosen: list[Logger] = [CSVLogger(folder, name="csv")]
    if config.logger.wandb is None:
        yield chosen
        return
    import wandb

    failed = 1
    try:
        yield [*chosen, _wandb(config, config.logger.wandb, folder, run, variant, table)]
        failed = 0
    finally:
        wandb.finish(failed)


def _wandb(config: RunConfig, options: WandbConfig, folder: Path, run: str, variant: str, table: str) -> Logger:
    """Never asks for a key: without WANDB_API_KEY the run stays offline; `wandb sync` uploads it later."""
    import wandb
    from pytorch_lightning.loggers import WandbLogger

    offline = not os.environ.get("WANDB_API_KEY") or os.environ.get("WANDB_MODE", "").lower() == "offline"
    return WandbLogger(
        project=options.project,
        group=options.group or table,
        job_type=options.job_type or variant,
        name=f"{config.task.name}-{config.scale.name}-{variant}-{config.seed}",
        id=run,
        resume=None if offline else "allow",
        save_dir=folder,
        offline=offline,
        mode="offline" if offline else "online",  # `offline` alone is not heard after an earlier run of this process
        settings=wandb.Settings(silent=True, console="off"),
    )
