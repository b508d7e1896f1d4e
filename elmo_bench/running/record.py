"""The contents of a finished run's record."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elmo_bench.bilm.card import read_card
from elmo_bench.configuration.schema import RunConfig, TunedConfig
from elmo_bench.embedding.representation import Elmo
from elmo_bench.embedding.vectors import WordsUsed
from elmo_bench.layers.cache import ActivationCache
from elmo_bench.records.record import Record, own_files
from elmo_bench.records.settings import Description, Identity
from elmo_bench.records.store import columns
from elmo_bench.running.callbacks import KeepBest
from elmo_bench.running.module import BenchModule
from elmo_bench.system import machine
from elmo_bench.system.storage.hashing import content_sha256, sha256


def begun(run: RunConfig, described: Description) -> dict[str, Any]:
    """The part of a record that is known before the run starts."""
    return {
        "task": run.task.name,
        "scale": run.scale.name,
        "arm": run.arm,
        "variant": run.variant,
        "seed": run.seed,
        "version": run.task.version,
        "run": described.identity.run,
        "group": described.identity.group,
        "config": described.portable,
        "own_files": own_files(described.portable),
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
    """The record of a run; `outside` is the time outside the epochs in seconds, `preparing` comes from `machine`."""
    history = [{**epoch, "epoch": number} for number, epoch in enumerate(module.history, start=1)]
    identity, best = described.identity, history[keep.epoch - 1]
    sums = {key: sum(epoch[key] for epoch in history) for key in ("seconds", "device_seconds", "tokens")}
    mixes = {
        key: {place: [epoch[key][place] for epoch in history] for place in best[key]}
        for key in ("layer_weights", "gamma")
    }
    generated = {name: Path(path) for name, path in (run.task.data or {}).items() if isinstance(path, str)}
    bilm = {"name": None, "sha256": module.bilm_sha256, "tuned": False}
    if not run.baseline:
        bilm |= {"name": run.bilm.name, "tuned": bool(run.bilm.tuned or run.elmo.finetune != "none")}
        if isinstance(run.bilm, TunedConfig):
            bilm["parent"] = read_card(Path(run.bilm.tuning.folder))["parent"]
    return Record(
        **begun(run, described),
        **mixes,
        metrics={"dev": best["dev"], "test": module.tested},
        epoch=keep.epoch,
        epochs=len(history),
        updates=history[-1]["updates"],
        selected_updates=best["updates"],
        seconds=round(sums["seconds"] + outside, 1),
        device_seconds=round(sums["device_seconds"], 1),
        preparing=preparing,
        tokens_per_second=round(sums["tokens"] / sum(epoch["training_seconds"] for epoch in history), 1),
        **machine.peaks(device),
        parameters=sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad),
        bilm=bilm | _size(module.representation.elmo),
        data_sha256=identity.data,
        generated_sha256={
            name: content_sha256(path) for name, path in generated.items() if run.scale.maker and path.is_file()
        },
        **machine.circumstances(device),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
        checkpoint=keep.best.relative_to(Path(run.results_root).absolute()).as_posix(),
        history=columns([{key: value for key, value in epoch.items() if key not in mixes} for epoch in history]),
        settings=identity.settings,
        word_vectors=None if words is None else _word_vectors(words, identity),
    )


def _size(elmo: Elmo | None) -> dict[str, int]:
    """The parameters of a source of layers, and the bytes per token of stored layers."""
    if elmo is None:
        return {}
    cache = elmo.source if isinstance(elmo.source, ActivationCache) else None
    computes = cache.source.module if cache else elmo.source.module
    known = {"parameters": sum(each.numel() for each in computes.parameters())} if computes else {}
    return known | ({"token_bytes": cache.blocks.nbytes(1)} if cache else {})


def _word_vectors(words: WordsUsed, identity: Identity) -> dict[str, Any]:
    """The source of the word vectors (random, file, sets, text), the number of words, and the number of words with a
    vector; for several sets, the number of each."""
    known = {"source": words.source, "words": words.number, "found": len(words.found)}
    if words.source == "sets":
        digests = [block["table"].removeprefix("sha256:") for block in identity.settings["vectors"]["sets"].values()]
        return known | {"sets": [
            {
                "name": table.name, "file": table.files.vectors.name, "sha256": digest, "size": table.size,
                "found": len(table.vectors),
            }
            for table, digest in zip(words.tables, digests, strict=True)
        ]}  # fmt: skip
    for table in words.tables:  # their sha256 is not part of the identity
        known |= {"file": table.name if words.source == "file" else None, "sha256": sha256(table.files.vectors)}
    return known
