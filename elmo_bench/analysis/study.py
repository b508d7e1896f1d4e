"""The shared parts of Tables 4 to 6: the check of files, opened layers, scores of layers, and the record, which is the
table.

Besides its numbers, a record (`records/studies.py`) has the sha256 of data and biLMs, time, machine and commit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from elmo_bench.analysis import settings as pages_of_studies
from elmo_bench.analysis.settings import StudyConfig, files, missing_data
from elmo_bench.configuration import composing
from elmo_bench.configuration.schema import BilmConfig, RunConfig, VectorSetConfig
from elmo_bench.embedding.tables import VectorFiles, locate
from elmo_bench.layers.cache import open_source
from elmo_bench.layers.source import Layers, frozen_layers
from elmo_bench.metrics.items import AdditiveMetric
from elmo_bench.records import store, studies
from elmo_bench.records.missing import missing_layers
from elmo_bench.records.settings import make
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.reporting.intervals import Arm, Evidence, spread, total
from elmo_bench.system import machine
from elmo_bench.system.errors import UserError, check_missing
from elmo_bench.system.storage.hashing import MEMORY, content_sha256

T = TypeVar("T", bound=StudyConfig)
GROUP = 64  # sentences whose layers are read at once


@dataclass
class Study(Generic[T]):
    """One table at one scale with one biLM.

    Attributes:
        name: the name of the configuration file with the settings.
        run: the scale, the biLM and the folders.
        controls: runs with other biLMs, by the name of their configuration file.
    """

    name: str
    run: RunConfig
    settings: T
    controls: dict[str, RunConfig]
    started: float = field(default_factory=time.monotonic)

    @classmethod
    def of(cls, name: str, config: type[T], arguments: Sequence[str]) -> Study[T]:
        """The study for a command's arguments; missing generated files are made, all other missing files are named."""
        run, settings = pages_of_studies.read(name, config, arguments)
        blocks = ("scale", "data_root", "models_root", "cache_root", "results_root")
        overrides = [each for each in arguments if re.split("[.=]", each, maxsplit=1)[0] in blocks]
        names = getattr(settings, "controls", [])
        controls = {one: composing.run_config([*overrides, f"bilm={one}"]) for one in names}
        lines = [line for each in (run, *controls.values()) for line in missing_layers(each)]
        check_missing(f"analysis.{name} scale={run.scale.name}", [*missing_data(run, settings), *lines])
        for each in (run, *controls.values()):
            make(each)
        return cls(name, run, settings, controls)

    def open(self, cached: bool) -> dict[str, Any]:
        """The sources of layers by name: the biLM first, then the controls.

        A biLM that carries its state from sentence to sentence is refused.
        """
        runs, root = {self.run.bilm.name: self.run, **self.controls}, self.run.cache_root
        sources = {name: open_source(each.bilm, cache_root=root, cached=cached) for name, each in runs.items()}
        for name, source in sources.items():
            if not getattr(source, "cacheable", True):
                raise UserError(f"bilm={name}: a sentence's layers depend on others; give bilm.state=warm or zero")
        return sources

    @cached_property
    def vectors(self) -> tuple[VectorSetConfig | None, VectorFiles | None]:
        """The static word vectors named by the settings, and their files if they exist; None if none are named."""
        if (name := getattr(self.settings, "vectors", None)) is None:
            return None, None
        if not (chosen := composing.run_config([f"vectors={name}"]).vectors.chosen):
            raise UserError(f"vectors={name}: not a table of word vectors, such as vectors=glove.6B.50d")
        return chosen[0], locate(chosen[0], self.run.vectors_root)

    @cached_property
    def bilms(self) -> dict[str, Any]:
        """The sha256 and the settings of every biLM."""
        sources = self.open(cached=False)
        return {name: {"sha256": source.sha256, **source.settings} for name, source in sources.items()}

    @cached_property
    def identity(self) -> dict[str, Any]:
        """Everything that the result depends on; files by the sha256 of their unpacked content."""
        memory, named = Path(self.run.cache_root) / MEMORY, files(self.settings)
        if table := self.vectors[1]:
            named["vectors"] = table.vectors
        data = {name: content_sha256(path, memory) for name, path in named.items()}
        own = {"study": self.name, "scale": self.run.scale.name, **self.settings.identifying()}
        own |= {"version": self.settings.version, "data_sha256": data}
        return own | {"bilms": list(self.bilms.values())}

    def record(self, table: int, what: str, note: str, cells: list[StudyCell]) -> StudyRecord:
        """The measurements in the form of the table; `write` adds the settings that the result depends on."""
        return StudyRecord(self.run.scale.name, self.name, what, note.strip(), cells, self.run.bilm.name, table)

    def by_layer(self, name: str, quantity: str, scores: Sequence[Score], layers: bool = True) -> list[StudyCell]:
        """The scores of all layers of a source; for the biLM itself also the top layer's minus layer 1's."""
        figures = (self.settings.paper or {}).get(quantity, {})
        # Only a biLM's layers are comparable with the paper's, layer by layer.
        ours = name == self.run.bilm.name and isinstance(self.run.bilm, BilmConfig)
        if not layers:
            return [score.cell(name, quantity, paper=figures.get(name)) for score in scores]
        paper = [figures.get(f"layer {number}") if ours else None for number in range(len(scores))]
        cells = [score.cell(name, quantity, layer=i, paper=paper[i]) for i, score in enumerate(scores)]
        if ours and len(scores) > 2:
            apart = None if paper[-1] is None or paper[1] is None else paper[-1] - paper[1]
            top = len(scores) - 1
            cells.append(scores[-1].cell(name, quantity, less=scores[1], layer=top, minus=1, paper=apart))
        return cells

    def recorded(self) -> StudyRecord | None:
        """The record; None if there is none of this version, or if `force=true` asks for a new one."""
        path = replace(self.record(0, "", "", []), settings=self.identity).place(self.run.results_root)
        try:
            return studies.read(path) if path.exists() and not self.run.force else None
        except store.Mismatch:
            return None

    def write(self, measured: StudyRecord) -> StudyRecord:
        """Writes and returns the record of the measurements."""
        sha256 = {name: bilm["sha256"] for name, bilm in self.bilms.items()}
        seconds = round(time.monotonic() - self.started, 1)
        about = {"sha256": sha256, "seconds": seconds, **machine.peaks("cpu"), **machine.circumstances("cpu")}
        return studies.write(replace(measured, settings=self.identity), self.run.results_root, about)


def words_of(source: Layers, group: Sequence[list[str]]) -> Tensor:
    """(L, N, W), the layers of all words of a group of sentences, one after another."""
    layers = frozen_layers(source, group).cpu()  # (B, L, T, W)
    return torch.cat([one[:, : len(sentence)] for one, sentence in zip(layers, group, strict=True)], dim=1)


class Score(NamedTuple):
    """A score with the data for its interval.

    Attributes:
        arm: its values, one per seed.
        n, clusters: the numbers of examples and of independent clusters.
    """

    arm: Arm
    n: int
    clusters: int

    @classmethod
    def of(cls, seeds: Sequence[AdditiveMetric], key: str) -> Score:
        """One of the numbers of a metric, for each seed; the last of its statistics counts the examples."""
        known = [Evidence(metric.items(), metric.from_totals, key) for metric in seeds]
        table = known[0].table
        return cls(Arm.of([each.value for each in known], known), int(table[:, -1].sum()), len(table))

    def cell(self, source: str, quantity: str, less: Score | None = None, **about: Any) -> StudyCell:
        """The score, or its difference from another on the same examples, with its interval."""
        arms = [self.arm, *([less.arm.scaled(-1)] if less else [])]
        (value, _), found = total(arms), spread(*arms)
        low, high = found.around(value) if found else (None, None)
        interval = {"low": low, "high": high, "degrees": found and found.degrees}
        return StudyCell(source, quantity, value, n=self.n, clusters=self.clusters, **interval, **about)


def cluster_kind(documents: Iterable[str | None]) -> str:
    """The kind of clusters of an interval."""
    return "sentences" if None in documents else "documents"
