"""One training run, from configuration to record."""

from __future__ import annotations

import inspect
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytorch_lightning as pl
import torch
from datasets import Dataset, DatasetDict
from hydra.utils import instantiate
from lightning_fabric.utilities.exceptions import MisconfigurationException
from omegaconf import DictConfig, OmegaConf
from pytorch_lightning.callbacks import EarlyStopping
from torch.utils.data import DataLoader

from elmo_bench.bilm import BiLM
from elmo_bench.embedding import words as word_vectors
from elmo_bench.embedding.representation import Elmo, Representation
from elmo_bench.embedding.words import WordVectors
from elmo_bench.experiment import items, records
from elmo_bench.experiment.callbacks import KeepBest, WholeFiles, progress, quiet
from elmo_bench.experiment.identity import Identity
from elmo_bench.experiment.module import BenchModule
from elmo_bench.experiment.records import Record
from elmo_bench.experiment.run_names import label
from elmo_bench.experiment.tracking import tracking
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.system.errors import UserError
from elmo_bench.task import Batch, Reader, Row
from elmo_bench.text.batching import BucketSampler


def run(cfg: DictConfig, identity: Identity, variant: dict[str, Any]) -> Record:
    """Trains, or goes on training, selects the best epoch on dev, tests it, and returns the record (not yet written).

    Args:
        cfg: the composed configuration.
        identity: its hashes.
        variant: what differs from the task's page, for the record.

    Raises:
        UserError: malformed data, a device that is not there.
    """
    quiet()
    started = time.perf_counter()
    cfg = OmegaConf.create(OmegaConf.to_container(cfg, resolve=True))  # type: ignore[assignment]
    folder = records.work(cfg.results_root, cfg.scale.name, cfg.task.name, identity.run).absolute()
    if cfg.trainer.threads:
        torch.set_num_threads(cfg.trainer.threads)
    pl.seed_everything(cfg.seed, verbose=False)
    reader: Reader = instantiate(cfg.task.reader)
    splits = reader.load()
    found = word_vectors.find(cfg, reader, splits)
    source = layers_source(cfg)
    if isinstance(source, ActivationCache):
        source.prepare(list(sentences(splits, reader.fields)))
    pl.seed_everything(cfg.seed, verbose=False)  # the same start whatever was drawn above
    module = build(cfg, reader, source, found)
    keep = KeepBest(folder)
    data = Data(cfg, reader, splits)
    with tracking(cfg, folder, identity.run, label(variant, cfg.elmo.where), _table(cfg)) as loggers:
        trainer = make_trainer(cfg, folder, [keep], loggers)
        earlier = fit(trainer, module, data, keep)
        module.load_state_dict(torch.load(keep.best, map_location="cpu", weights_only=True)["state_dict"])
        with interruptible(trainer):
            trainer.test(module, datamodule=data, verbose=False)
    outside = time.perf_counter() - started - sum(epoch["seconds"] for epoch in module.history[earlier:])
    record = make_record(cfg, identity, variant, module, keep, outside, trainer.strategy.root_device.type)
    scored = items.collect(folder, module)
    items.check(scored, record["metrics"], module.make_metric().from_totals)
    items.write(items.path_of(records.place(cfg.results_root, cfg.scale.name, cfg.task.name, identity.run)), scored)
    return {**record, "word_vectors": word_vectors.describe(cfg, reader, found)}


def layers_source(cfg: DictConfig, check_sha256: str | None = None) -> BiLM | ActivationCache | None:
    """The biLM, or its cached layers where it stays frozen; None for a baseline.

    Raises:
        UserError: the files cannot be read, or are not those that `check_sha256` says.
    """
    if cfg.elmo.where == "none":
        return None
    bilm = BiLM.from_files(cfg.bilm.options, cfg.bilm.weights, state=cfg.bilm.state)
    if check_sha256 is not None and bilm.sha256 != check_sha256:
        raise UserError(f"not the weights that the model was trained with (sha256 {check_sha256})", cfg.bilm.weights)
    bilm.to(_device(cfg.trainer.accelerator))
    cached = cfg.bilm.cache and cfg.elmo.finetune == "none" and cfg.bilm.state != "carry"
    return ActivationCache(bilm, Path(cfg.cache_root) / "activations") if cached else bilm


def _device(accelerator: str) -> str:
    """Where a cache is computed: it does not move with the model."""
    return "cuda" if accelerator in ("gpu", "cuda", "auto") and torch.cuda.is_available() else "cpu"


def build(cfg: DictConfig, reader: Reader, source: Any, found: WordVectors | None = None) -> BenchModule:
    """The model of a configuration, for a reader with its vocabularies, the biLM, and the words' vectors of a file."""
    vocabularies, task = reader.vocabularies, cfg.task
    elmo = None if source is None else Elmo.build(source, OmegaConf.to_container(cfg.elmo))  # type: ignore[arg-type]
    instead = cfg.elmo.words == "instead" and elmo is not None
    given = {} if found is None else {"vectors": found.vectors}
    words = None if instead else make(task, "words", vocabularies.get("words"), **given)
    chars = make(task, "chars", len(vocabularies.get("chars", ())))
    representation = Representation(words, chars, elmo)
    sizes = {"input_size": representation.input_size, "elmo_size": representation.elmo_size}
    if "own_size" in inspect.signature(instantiate(task.head).func).parameters:
        sizes["own_size"] = representation.own_size
    head = make(task, "head", **sizes, vocabularies=vocabularies)
    schedule = task.schedule or {}
    return BenchModule(
        representation,
        head,
        metric=partial(instantiate, task.metric),
        optimizer=instantiate(task.optimizer),
        monitor=task.monitor,
        schedule=instantiate(schedule["scheduler"]) if schedule else None,
        interval=schedule.get("interval", "epoch"),
        penalty=cfg.elmo["lambda"],
        seed=cfg.seed,
        vocabularies=vocabularies,
        bilm_sha256=None if source is None else source.sha256,
        config=OmegaConf.to_container(cfg, resolve=True),  # type: ignore[arg-type]
    )


def make(task: DictConfig, part: str, *arguments: Any, **keywords: Any) -> Any:
    """What the partial node `part` of a task's page makes; None where the page has none.

    Raises:
        UserError: the page or the command line gives it arguments that it does not take.
    """
    if task.get(part) is None:
        return None
    maker = instantiate(task[part])
    try:
        inspect.signature(maker.func).bind(*maker.args, *arguments, **maker.keywords, **keywords)
    except TypeError as error:
        raise UserError(f"task.{part}: {error}") from error
    return maker(*arguments, **keywords)


class Data(pl.LightningDataModule):
    """Batches of the splits; those of training are a function of (seed, epoch)."""

    def __init__(self, cfg: DictConfig, reader: Reader, splits: DatasetDict):
        super().__init__()
        self.reader, self.splits, self.seed = reader, splits, cfg.seed
        for split in ("train", "dev", "test"):
            if not len(splits[split]):
                raise UserError(f"the {split} split of task={cfg.task.name} has no rows")
        self.lengths = {split: lengths(rows, reader.fields) for split, rows in splits.items()}
        self.sampler = partial(BucketSampler, seed=cfg.seed, **cfg.task.batch)

    def train_dataloader(self) -> DataLoader:
        """Called before every epoch."""
        assert self.trainer is not None
        epoch = self.trainer.current_epoch
        sampler = self.sampler(self.lengths["train"])
        sampler.set_epoch(epoch)
        return self._loader("train", sampler, self._sampled(epoch))

    def val_dataloader(self) -> DataLoader:
        return self._whole("dev")

    def test_dataloader(self) -> DataLoader:
        return self._whole("test")

    def _whole(self, split: str) -> DataLoader:
        return self._loader(split, self.sampler(self.lengths[split], shuffle=False))

    def _sampled(self, epoch: int) -> Callable[[Sequence[Row]], Batch]:
        """How training rows become a batch, where the reader shows only a part of some."""
        sample = getattr(self.reader, "sample", None)
        if sample is None:
            return self.reader.collate
        random = np.random.default_rng([self.seed, epoch])
        return lambda rows: self.reader.collate([sample(row, random) for row in rows])

    def _loader(self, split: str, sampler: BucketSampler, collate: Callable | None = None) -> DataLoader:
        return DataLoader(
            self.splits[split],  # type: ignore[arg-type]
            batch_sampler=sampler,
            collate_fn=collate or self.reader.collate,
            generator=torch.Generator(),  # its own: an iterator's seed must not come out of the model's random numbers
        )


def lengths(rows: Dataset | Sequence[Row], fields: Sequence[str]) -> list[int]:
    """Words in the longest field of each row."""
    return [max(sum(map(len, _sentences(row[field]))) for field in fields) for row in rows]  # type: ignore[index]


def sentences(splits: DatasetDict, fields: Sequence[str]) -> Iterator[list[str]]:
    """All distinct sentences of all splits, as the biLM will see them; a paragraph may stand under many questions."""
    seen: set[tuple[str, ...]] = set()
    for rows in splits.values():
        for row in rows:
            for field in fields:
                for sentence in _sentences(row[field]):  # type: ignore[index]
                    if (key := tuple(sentence)) not in seen:
                        seen.add(key)
                        yield sentence


def _sentences(value: Any) -> Iterable[list[str]]:
    """A field holds words, or the sentences of a document."""
    return value if value and not isinstance(value[0], str) else [value]


def make_trainer(cfg: DictConfig, folder: Path | None, callbacks: list[pl.Callback], logger: Any) -> pl.Trainer:
    """A Lightning trainer. Raises `UserError` where the machine has no such device."""
    task, machine = cfg.task, cfg.trainer
    budget, clip = task.fit[cfg.scale.name], task.get("clip") or {}
    if budget.patience is not None:
        monitor = f"dev/{task.monitor}"
        callbacks = [EarlyStopping(monitor, patience=budget.patience, mode="max", check_on_train_epoch_end=True),
                     *callbacks]  # fmt: skip
    if task.average is not None:
        device = _device(machine.accelerator)  # else it stays where the model is built, and every update copies
        callbacks = [instantiate(task.average, device=device), *callbacks]
    bar = progress(machine.progress)
    try:
        return pl.Trainer(
            accelerator=machine.accelerator,
            devices=machine.devices,
            precision=machine.precision,
            max_epochs=budget.epochs,
            limit_train_batches=machine.limit_batches,
            gradient_clip_val=clip.get("value"),
            gradient_clip_algorithm=clip.get("by", "norm") if clip else None,
            reload_dataloaders_every_n_epochs=1,  # each epoch's batches follow from its number, resumed or not
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
            default_root_dir=folder,
            callbacks=[*callbacks, *bar],
            plugins=[WholeFiles()],
            logger=logger,
            enable_progress_bar=bool(bar),
            enable_model_summary=False,
            enable_checkpointing=True,
        )
    except (ValueError, TypeError, MisconfigurationException) as error:
        raise UserError(f"trainer.{{accelerator,devices,precision}}: {error}") from error


def fit(trainer: pl.Trainer, module: BenchModule, data: Data, keep: KeepBest) -> int:
    """Trains from the last whole epoch on; returns how many epochs an earlier process had done."""
    resumed = keep.last if keep.last.is_file() else None
    earlier = 0
    if resumed:
        try:
            earlier = len(torch.load(resumed, map_location="cpu", weights_only=True)["history"])
        except Exception as error:
            raise UserError("a damaged checkpoint; remove it to begin the run again", resumed) from error
        print(f"goes on after epoch {earlier}", flush=True)
    with interruptible(trainer):
        trainer.fit(module, datamodule=data, ckpt_path=resumed, weights_only=True)
    return earlier


@contextmanager
def interruptible(trainer: pl.Trainer) -> Iterator[None]:
    """Lightning ends the process without a word on Ctrl-C; an interrupt stays one here."""
    try:
        yield
    except SystemExit as end:
        if trainer.interrupted:
            raise KeyboardInterrupt from end
        raise


def make_record(
    cfg: DictConfig,
    identity: Identity,
    variant: dict[str, Any],
    module: BenchModule,
    keep: KeepBest,
    outside: float,
    device: str,
) -> Record:
    """The fixed keys and those beside them; `outside` is the time in seconds spent outside the epochs."""
    history = module.history
    best = next(epoch for epoch in history if epoch["epoch"] == keep.epoch)
    commit, dirty = records.commit()
    baseline = cfg.elmo.where == "none"
    return {
        "task": cfg.task.name,
        "scale": cfg.scale.name,
        "seed": cfg.seed,
        "run": identity.run,
        "group": identity.group,
        "variant": variant,
        "metrics": {"dev": best["dev"], "test": module.tested},
        "epoch": best["epoch"] + 1,
        "epochs": len(history),
        "updates": history[-1]["updates"],
        "selected_updates": best["updates"],
        "layer_weights": _by_place(history, "layer_weights"),
        "gamma": _by_place(history, "gamma"),
        "seconds": round(_sum(history, "seconds") + outside, 1),
        "device_seconds": round(_sum(history, "device_seconds"), 1),
        "tokens_per_second": round(_sum(history, "tokens") / _sum(history, "training_seconds"), 1),
        **records.peaks(device),
        "parameters": sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad),
        "bilm": {
            "name": None if baseline else cfg.bilm.name,
            "sha256": identity.bilm,
            "tuned": False if baseline else bool(cfg.bilm.tuned or cfg.elmo.finetune != "none"),
        },
        "data_sha256": identity.data,
        "machine": records.machine(device),
        "versions": records.versions(),
        "commit": commit,
        "dirty": dirty,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "checkpoint": keep.best.relative_to(Path(cfg.results_root).absolute()).as_posix(),
        "history": [
            {key: value for key, value in epoch.items() if key not in ("layer_weights", "gamma")} for epoch in history
        ],
        "config": identity.config,
    }


def _sum(history: list[dict[str, Any]], key: str) -> float:
    return sum(epoch[key] for epoch in history)


def _by_place(history: list[dict[str, Any]], key: str) -> dict[str, list[Any]]:
    """A list over the epochs for each place of ELMo."""
    return {place: [epoch[key][place] for epoch in history] for place in history[-1][key]}


def _table(cfg: DictConfig) -> str:
    """What W&B groups by."""
    from hydra.core.hydra_config import HydraConfig

    sweep = HydraConfig.get().runtime.choices.get("sweep") if HydraConfig.initialized() else None
    return f"{sweep or 'table1'}/{cfg.scale.name}/{cfg.task.name}"


def clear(folder: Path) -> None:
    """Forgets a half-finished run."""
    for part in ("last.ckpt", "best.ckpt", items.DEV, items.PREDICTIONS):
        (folder / part).unlink(missing_ok=True)
    shutil.rmtree(folder / "csv", ignore_errors=True)
