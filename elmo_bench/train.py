"""One run, or with `-m` a sweep of runs: `python -m elmo_bench.train task=ner scale=open elmo.where=input seed=3`.

A recorded run is not run again, unless with `force=true`; an interrupted run resumes from its last completed epoch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf

from elmo_bench.configuration import schema
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.experiment import store, usage
from elmo_bench.experiment.arms import placed
from elmo_bench.experiment.identity import Description, Identity, placeless
from elmo_bench.experiment.makers import Makers
from elmo_bench.experiment.run_names import label, run_name, summary, title
from elmo_bench.experiment.store import Record
from elmo_bench.system import console, places
from elmo_bench.system.locks import held


def train(cfg: DictConfig) -> Record:
    """The record of a run: read if there is one, else made by training.

    Raises:
        UserError: a value that is not allowed, missing data, malformed files.
    """
    run = schema.typed(cfg)
    identity = Identity(run)
    path = store.place(run.results_root, run.scale.name, run.task.name, identity.run)
    if path.is_file() and not run.force:
        record = store.read(path)
        print(f"{title(record)}: recorded on {record['finished'][:10]}, not run again (force=true does)", flush=True)
        return record
    folder = store.work(run.results_root, run.scale.name, run.task.name, identity.run)
    with held(folder, f"another process is training this run; waiting for its record, {path}") as waited:
        if path.is_file() and (waited or not run.force):  # it has just been made
            return store.read(path)
        return _train(run, describe(run, identity, cfg), path, folder)


def describe(run: RunConfig, identity: Identity, cfg: DictConfig) -> Description:
    """What is known of a run before it starts."""
    arm, variant = placed(run)
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    return Description(identity, arm, variant, config, placeless(cfg))


def finished(cfg: DictConfig) -> Record | None:
    """The record of a run, if there is one; nothing is made or trained. Raises `UserError` as `train` does."""
    run = schema.typed(cfg)
    path = store.place(run.results_root, run.scale.name, run.task.name, Identity(run).run)
    return store.read(path) if path.is_file() else None


def _train(run: RunConfig, described: Description, path: Path, folder: Path) -> Record:
    """Under the lock of the run's work folder."""
    from elmo_bench.experiment.blocks import check_blocks
    from elmo_bench.experiment.fit import clear
    from elmo_bench.experiment.run import run_once

    check_blocks(run.task)
    forced = folder / "forced"  # marks a forced run as begun, so that it is resumed and not started again
    if run.force and not forced.is_file():
        clear(folder)
        forced.touch()
    makers = Makers.of(run)
    makers.make()
    name = label(described.arm, run.elmo.where, described.variant)
    print(f"{run_name(run.task.name, run.scale.name, name, run.seed)}: training", flush=True)
    vectors = None if makers.vectors is None else makers.vectors.make()
    record = run_once(run, described, _table(run), vectors)
    store.write(path, record)
    for part in (folder / "last.ckpt", forced):
        part.unlink(missing_ok=True)
    print(f"{title(record)}: {summary(record)}; {path}", flush=True)
    return record


def _table(run: RunConfig) -> str:
    """The W&B group."""
    sweep = HydraConfig.get().runtime.choices.get("sweep") if HydraConfig.initialized() else None
    return f"{sweep or 'table1'}/{run.scale.name}/{run.task.name}"


def main() -> None:
    """The entry point."""
    failed: list[Exception] = []

    @hydra.main(config_path=str(places.CONF), config_name="train", version_base="1.3")
    def command(cfg: DictConfig) -> float | None:
        try:
            record = train(cfg)
        except Exception as error:
            if not _in_process() or console.explain(error) is None:
                raise
            failed.append(error)  # not raised here: Hydra would print a line too
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                console.show(error)  # at once, before the rest of the sweep runs
            return None
        return record["metrics"]["dev"][record["config"]["task"]["monitor"]]

    def run() -> None:
        command()
        if failed:
            raise failed[0]

    usage.TRAIN.run(run)


def _in_process() -> bool:
    """Whether runs share this process with `main` and its list `failed`; other launchers start new processes."""
    config = HydraConfig.get()
    return config.mode == RunMode.RUN or "BasicLauncher" in config.launcher["_target_"]


if __name__ == "__main__":
    main()
