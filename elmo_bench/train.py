"""One run, or with `-m` a sweep of runs: `python -m elmo_bench.train task=ner scale=open elmo.where=input seed=3`.

A run that has a record is not run again (`force=true` does), and a half-finished one goes on from its last whole epoch.
"""

from __future__ import annotations

from pathlib import Path

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.types import RunMode
from hydra.utils import get_method
from omegaconf import DictConfig, OmegaConf

from elmo_bench.experiment import records
from elmo_bench.experiment.choices import check_run
from elmo_bench.experiment.identity import Identity
from elmo_bench.experiment.records import Record
from elmo_bench.experiment.run_names import arm, label, variant
from elmo_bench.system import console, places
from elmo_bench.system.errors import UserError
from elmo_bench.system.locks import held


def train(cfg: DictConfig) -> Record:
    """The record of a run: read where there is one, else made by training.

    Raises:
        UserError: a value that cannot be meant, missing data, malformed files.
    """
    check(cfg)
    if cfg.scale.prepare:
        get_method(cfg.scale.prepare)(cfg)
    if (prepare := cfg.bilm.get("prepare")) and cfg.elmo.where != "none":
        get_method(prepare)(cfg)
    identity = Identity(cfg)
    path = records.place(cfg.results_root, cfg.scale.name, cfg.task.name, identity.run)
    if path.is_file() and not cfg.force:
        record = records.read(path)
        print(f"{title(record)}: recorded on {record['finished'][:10]}, not run again (force=true does)", flush=True)
        return record
    folder = records.work(cfg.results_root, cfg.scale.name, cfg.task.name, identity.run)
    with held(folder, f"another process is at this run; waiting for its record, {path}") as waited:
        if path.is_file() and (waited or not cfg.force):  # it has just been made
            return records.read(path)
        return _train(cfg, identity, path, folder)


def check(cfg: DictConfig) -> None:
    """Raises `UserError` where a configuration lacks a value or has one that cannot be meant."""
    if missing := OmegaConf.missing_keys(cfg):
        raise UserError(f"no value for {', '.join(sorted(missing))}; give it as key=value")
    check_run(cfg)


def finished(cfg: DictConfig) -> Record | None:
    """The record of a run, if there is one; nothing is made or trained. Raises `UserError` as `train` does."""
    check(cfg)
    try:
        identity = Identity(cfg)
    except UserError:
        if cfg.scale.prepare or cfg.bilm.get("prepare"):  # which make what is missing
            return None
        raise
    path = records.place(cfg.results_root, cfg.scale.name, cfg.task.name, identity.run)
    return records.read(path) if path.is_file() else None


def _train(cfg: DictConfig, identity: Identity, path: Path, folder: Path) -> Record:
    """Under the lock of the run's work folder."""
    from elmo_bench.experiment import run

    forced = folder / "forced"  # says that what lies there was begun by a forced run: that goes on, too
    if cfg.force and not forced.is_file():
        run.clear(folder)
        forced.touch()
    changes = variant(cfg)
    print(f"{name(cfg.task.name, cfg.scale.name, label(changes, cfg.elmo.where), cfg.seed)}: training", flush=True)
    record = run.run(cfg, identity, changes)
    records.write(path, record)
    for part in (folder / "last.ckpt", forced):
        part.unlink(missing_ok=True)
    print(f"{title(record)}: {summary(record)}; {path}", flush=True)
    return record


def title(record: Record) -> str:
    """Which run a record is of, in words."""
    return name(record["task"], record["scale"], arm(record), record["seed"])


def name(task: str, scale: str, arm: str, seed: int) -> str:
    """The same from its parts."""
    return f"{task}/{scale} {arm}, seed {seed}"


def summary(record: Record) -> str:
    """The scores of a record in a few words."""
    monitor = record["config"]["task"]["monitor"]
    dev, test = (record["metrics"][split][monitor] for split in ("dev", "test"))
    return f"dev {monitor} {dev:.2f}, test {monitor} {test:.2f}, {record['epochs']} epochs, {record['seconds']:.0f} s"


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
            failed.append(error)  # not raised here: Hydra would add a line of its own
            if HydraConfig.get().mode == RunMode.MULTIRUN:
                console.show(error)  # now: the rest of the sweep comes first
            return None
        return record["metrics"]["dev"][record["config"]["task"]["monitor"]]

    def run() -> None:
        command()
        if failed:
            raise failed[0]

    console.report(run)


def _in_process() -> bool:
    """Whether `failed` of `main` is seen there: not where a launcher runs the jobs elsewhere."""
    config = HydraConfig.get()
    return config.mode == RunMode.RUN or "BasicLauncher" in config.launcher["_target_"]


if __name__ == "__main__":
    main()
