"""The contents of a finished run's record."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elmo_bench.bilm.card import read_card
from elmo_bench.configuration.schema import RunConfig, TunedConfig
from elmo_bench.embedding.representation import Elmo
from elmo_bench.embedding.vectors import WordsUsed, WordTable
from elmo_bench.identity.arms import own_files
from elmo_bench.identity.settings import Description, Identity
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.records.record import Record
from elmo_bench.records.store import columns
from elmo_bench.running.callbacks import KeepBest
from elmo_bench.running.module import BenchModule
from elmo_bench.system import machine
from elmo_bench.system.storage.hashing import content_sha256, sha256


def begun(run: RunConfig, described: Description) -> dict[str, Any]:
    """What a record says of the run that is known before it starts."""
    return {
        "task": run.task.name,
        "scale": run.scale.name,
        "arm": described.arm,
        "variant": described.variant,
        "seed": run.seed,
        "version": run.task.version,
        "run": described.identity.run,
        "group": described.identity.group,
        "config": described.placeless,
        "own_files": own_files(described.placeless),
    }


def make_record(
    run: RunConfig,
    described: Description,
    module: BenchModule,
    keep: KeepBest,
    outside: float,
    device: str,
    words: WordsUsed | None,
    preparing: dict[str, float],
) -> Record:
    """The record of a run; `outside` is the time in seconds spent outside the epochs, `preparing` of `machine`."""
    history = [{**epoch, "epoch": number} for number, epoch in enumerate(module.history, start=1)]
    identity, best = described.identity, history[keep.epoch - 1]
    generated, digests = _generated(run), _digests(words)
    memory, circumstances = machine.peaks(device), machine.circumstances(device)
    return Record(
        **begun(run, described),
        metrics={"dev": best["dev"], "test": module.tested},
        epoch=keep.epoch,
        epochs=len(history),
        updates=history[-1]["updates"],
        selected_updates=best["updates"],
        layer_weights=_by_place(history, "layer_weights"),
        gamma=_by_place(history, "gamma"),
        seconds=round(_sum(history, "seconds") + outside, 1),
        device_seconds=round(_sum(history, "device_seconds"), 1),
        preparing=preparing,
        tokens_per_second=round(_sum(history, "tokens") / _sum(history, "training_seconds"), 1),
        **memory,
        parameters=sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad),
        bilm={
            "name": None if run.baseline else run.bilm.name,
            "sha256": module.bilm_sha256,
            "tuned": False if run.baseline else bool(run.bilm.tuned or run.elmo.finetune != "none"),
            **_parent(run),
            **_size(module.representation.elmo),
        },
        data_sha256=identity.data,
        generated_sha256=generated,
        **circumstances,
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        checkpoint=keep.best.relative_to(Path(run.results_root).absolute()).as_posix(),
        history=columns(
            [{key: value for key, value in epoch.items() if key not in ("layer_weights", "gamma")} for epoch in history]
        ),
        settings=identity.settings,
        word_vectors=None if words is None else _described(words, identity, digests),
    )


def _parent(run: RunConfig) -> dict[str, Any]:
    """The biLM from which a tuned one was made, by name and sha256."""
    if run.baseline or not isinstance(run.bilm, TunedConfig):
        return {}
    return {"parent": read_card(Path(run.bilm.tuning.folder))["parent"]}


def _size(elmo: Elmo | None) -> dict[str, int]:
    """The parameters of a source of layers, and the bytes that a token takes where its layers are stored."""
    if elmo is None:
        return {}
    cache = elmo.source if isinstance(elmo.source, ActivationCache) else None
    computes = cache.source.module if cache else elmo.source.module
    known = {"parameters": sum(each.numel() for each in computes.parameters())} if computes else {}
    return known | ({"token_bytes": cache.blocks.nbytes(1)} if cache else {})


def _digests(words: WordsUsed | None) -> list[str]:
    """sha256 of a file of vectors; those of vector sets are part of the identity."""
    return [] if words is None or words.source == "sets" else [sha256(table.files.vectors) for table in words.tables]


def _described(words: WordsUsed, identity: Identity, digests: list[str]) -> dict[str, Any]:
    """Where the word vectors come from (random, file, sets, text), how many words there are, and how many have one
    there; of several sets, how many each has."""
    known = {"source": words.source, "words": words.number, "found": len(words.found)}
    if words.source == "sets":
        digests = [block["table"].removeprefix("sha256:") for block in identity.settings["vectors"]["sets"].values()]
        return known | {"sets": [*map(_set, words.tables, digests)]}
    for table, digest in zip(words.tables, digests, strict=True):
        known |= {"file": table.name if words.source == "file" else None, "sha256": digest}
    return known


def _set(table: WordTable, digest: str) -> dict[str, Any]:
    file, found = table.files.vectors.name, len(table.vectors)
    return {"name": table.name, "file": file, "sha256": digest, "size": table.size, "found": found}


def _generated(run: RunConfig) -> dict[str, str]:
    """sha256 of the generated files of the data, which the identity names by their recipe; empty for other data."""
    if run.scale.maker is None:
        return {}
    paths = {name: Path(path) for name, path in (run.task.data or {}).items() if isinstance(path, str)}
    return {name: content_sha256(path) for name, path in paths.items() if path.is_file()}


def _sum(history: list[dict[str, Any]], key: str) -> float:
    return sum(epoch[key] for epoch in history)


def _by_place(history: list[dict[str, Any]], key: str) -> dict[str, list[Any]]:
    """A list over the epochs for each place of ELMo."""
    return {place: [epoch[key][place] for epoch in history] for place in history[-1][key]}
