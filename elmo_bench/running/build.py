"""Builds the model of a run from the parts named in the task's configuration, without importing Lightning."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from hydra.utils import instantiate

from elmo_bench.configuration.schema import LayersConfig, Plain, RunConfig, TaskConfig
from elmo_bench.embedding.representation import Elmo, Representation
from elmo_bench.embedding.vectors import WordTable
from elmo_bench.layers.cache import ActivationCache, open_source
from elmo_bench.layers.source import LayersSource
from elmo_bench.running.blocks import GIVEN
from elmo_bench.system.errors import UserError, explained
from elmo_bench.system.machine import unseen_gpu
from elmo_bench.task import Head, Reader

if TYPE_CHECKING:
    from elmo_bench.running.module import BenchModule


def build(
    run: RunConfig,
    reader: Reader,
    source: Any,
    vectors: Sequence[WordTable] | None = None,
    config: Plain | None = None,
) -> BenchModule:
    """Builds the model of a run."""
    from elmo_bench.running.module import BenchModule

    task = run.task
    return BenchModule(
        *parts(run, reader, source, vectors),
        metric=partial(instantiate, task.metric),
        optimizer=None if task.optimizer is None else instantiate(task.optimizer),
        monitor=task.monitor,
        schedule=None if task.schedule.scheduler is None else instantiate(task.schedule.scheduler),
        interval=task.schedule.interval,
        penalty=run.elmo.penalty,
        seed=run.seed,
        vocabularies=reader.vocabularies,
        bilm_sha256=None if source is None else source.sha256,
        config=config,
    )


def parts(
    run: RunConfig, reader: Reader, source: Any, vectors: Sequence[WordTable] | None = None
) -> tuple[Representation, Head]:
    """The parts of a run's `Model`, without optimizer and schedule; arguments as for `build`."""
    vocabularies, task = reader.vocabularies, run.task
    given = {"vectors": vectors} if vectors else {}
    words = None if run.words_dropped else make(task, "words", vocabularies.get("words"), **given)
    chars = make(task, "chars", len(vocabularies.get("chars", ())))
    elmo = None if source is None else Elmo(source, run.elmo)
    representation = Representation(words, chars, elmo)
    sizes = {name: getattr(representation, name) for name in ("input_size", "elmo_size", "own_size")}
    return representation, make(task, "head", **sizes, vocabularies=vocabularies)


def layers_source(
    bilm: LayersConfig, run: RunConfig, check_sha256: str | None = None
) -> LayersSource | ActivationCache:
    """The run's source of layers, cached if it stays frozen. Raises the errors of `open_source`."""
    cached = bilm.cache and run.elmo.finetune == "none"
    return open_source(bilm, device_of(run.trainer.accelerator), run.cache_root, cached, check_sha256)


def device_of(accelerator: str) -> str:
    """The device on which a cache is computed, because a cache is not moved with the model."""
    cuda, mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if accelerator != "cpu" and not mps and (why := unseen_gpu()):
        raise UserError(f"trainer.accelerator={accelerator}: {why}, or choose trainer=cpu")
    if not {"gpu": cuda or mps, "cuda": cuda, "mps": mps}.get(accelerator, True):
        raise UserError(f"trainer.accelerator={accelerator}: torch finds none on this machine; choose cpu or auto")
    return "cuda" if accelerator in ("gpu", "cuda", "auto") and cuda else "cpu"


def make(task: TaskConfig, part: str, *arguments: Any, **keywords: Any) -> Any:
    """Calls the partial node `part` of a task's configuration; None without such a node."""
    block = getattr(task, part)
    if block is None:
        return None
    maker = instantiate(block)
    taken, optional = inspect.signature(maker.func).parameters, GIVEN[part].optional
    keywords = {key: value for key, value in keywords.items() if key not in optional or key in taken}
    with explained(lambda: f"making task.{part}", f"give task.{part} smaller sizes"):
        try:
            return maker(*arguments, **keywords)
        except (ValueError, ArithmeticError, LookupError, AssertionError, TypeError) as error:
            raise UserError(f"task.{part}: {error}") from error
