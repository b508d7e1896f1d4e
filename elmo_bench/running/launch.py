"""The record of a run, read if there is one, otherwise made by training."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from omegaconf import DictConfig, OmegaConf

from elmo_bench.configuration.composing import validated
from elmo_bench.configuration.schema import RunConfig
from elmo_bench.records import settings, store
from elmo_bench.records.missing import check_files
from elmo_bench.records.record import Record, label, own_files, run_name, summary, title
from elmo_bench.records.settings import Description, Identity, portable
from elmo_bench.records.wandb_runs import SWEEP, of_record
from elmo_bench.system import machine
from elmo_bench.system.storage.disk import writing
from elmo_bench.system.storage.locks import held


def train(cfg: DictConfig) -> Record:
    """The record of a run, read if there is one, otherwise made by training."""
    run = validated(cfg)
    if run.debug or run.trainer.fast_dev_run or run.trainer.overfit_batches:
        return _smoke(cfg)
    check_files(run)
    identity = Identity(run)
    of_run = run.results_root, run.scale.name, run.task.name, identity.run
    path, folder = store.place(*of_run), store.work(*of_run)
    if store.is_finished(path) and not run.force:
        return _recorded(run, path, "not run again (force=true does)")
    before = path.is_file() and path.stat().st_mtime_ns
    with held(folder, f"another process is training this run; waiting for its record, {path}", wait=True):
        if path.is_file() and path.stat().st_mtime_ns != before:
            return _recorded(run, path, "by another process in the meantime")
        described = describe(run, identity, cfg)
        return _train(run, described, path, folder)


def _recorded(run: RunConfig, path: Path, why: str) -> Record:
    """The existing record of a run; a line says why it is not trained."""
    record = store.read(path)
    print(f"{title(record)}: recorded on {record.finished[:10]}, {why}", flush=True)
    if run.logger.wandb is not None and os.environ.get(SWEEP):  # the agent's run needs its metric
        of_record(record, store.work(run.results_root, record.scale, record.task, record.run), run.logger.wandb)
    return record


def _smoke(cfg: DictConfig) -> Record:
    """Trains a trial run (`debug=`), which records nothing; only shared files such as stored layers stay."""
    from elmo_bench.running.run import checked, run_once

    with TemporaryDirectory() as folder:
        cfg.results_root, cfg.logger.wandb = folder, None
        run = validated(cfg)
        check_files(run)
        described = describe(run, Identity(run), cfg)
        _report_data(run, described)
        typed = checked(run, Path(folder))._replace(loggers=[])
        record, _ = run_once(run, described, settings.make(run), typed)
    first, *_, last = [*record.history["loss"]] * 2
    print(
        f"{title(record)}: trained and scored on a few batches (loss {first:.3g} to {last:.3g}, {summary(record)}); "
        "nothing is recorded",
        flush=True,
    )
    return record


def describe(run: RunConfig, identity: Identity, cfg: DictConfig) -> Description:
    """The description of a run, known before it starts."""
    machine.commit()  # read now, because the code may be updated while the run trains
    config: Any = OmegaConf.to_container(cfg, resolve=True)
    for key in ("table", "typed"):
        config.pop(key, None)
    return Description(identity, config, portable(cfg))


def _report_data(run: RunConfig, described: Description) -> None:
    """Prints a line if the data are partly the user's own and partly the scale's, or the same in two splits."""
    splits, own = ("train", "dev", "test"), own_files(described.portable)
    scales = [split for split in splits if split not in own]
    if own and scales:
        rest = f"{' and '.join(scales)}: the data of scale={run.scale.name}"
        print(f"{', '.join(own.values())}: your own; {rest}", flush=True)
    digests = described.identity.settings["task"]["reader"].get("data") or {}
    for one, other in combinations([split for split in splits if digests.get(split)], 2):
        if digests[one] == digests[other]:
            print(f"{one} and {other} are the same data: the scores on {other} are not on unseen data", flush=True)


def _train(run: RunConfig, described: Description, path: Path, folder: Path) -> Record:
    """Trains the run under the lock of its work folder."""
    from elmo_bench.records import items
    from elmo_bench.running import unfinished
    from elmo_bench.running.run import checked, run_once

    unfinished.check_place(folder)
    typed = checked(run, folder)
    if run.force and not unfinished.is_restarted(folder):
        unfinished.start_anew(folder)
    with machine.preparing("files"):
        vectors = settings.make(run)
    name = label(run.elmo.where, run.variant)
    print(f"{run_name(run.task.name, run.scale.name, name, run.seed)}: training", flush=True)
    _report_data(run, described)
    with writing(folder):
        record, scored = run_once(run, described, vectors, typed)
    store.write(path, record, {items.path_of(path): items.packed(scored)})
    for part in (unfinished.LAST, store.AGAIN):
        (folder / part).unlink(missing_ok=True)
    print(f"{title(record)}: {summary(record)}; {path}", flush=True)
    return replace(record, path=path)
