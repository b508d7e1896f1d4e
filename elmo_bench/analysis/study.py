"""What Tables 4 to 6 share: the check of files, opened layers, and the record, which is also the table.

A record (`records/studies.py`) has beside its numbers the sha256 of data and biLMs, time, machine and commit.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from pandas import DataFrame
from torch import Tensor

from elmo_bench.analysis import settings as pages_of_studies
from elmo_bench.analysis.settings import StudyConfig, files, missing_data
from elmo_bench.configuration import composing
from elmo_bench.configuration.schema import BilmConfig, RunConfig, VectorSetConfig
from elmo_bench.embedding.tables import VectorFiles, locate
from elmo_bench.identity.missing import missing_layers
from elmo_bench.identity.settings import make
from elmo_bench.layers.cache import open_source
from elmo_bench.layers.source import Layers, frozen_layers
from elmo_bench.records import store, studies
from elmo_bench.records.studies import StudyCell, StudyRecord
from elmo_bench.reporting.statistics.evidence import Percent, influences
from elmo_bench.reporting.statistics.intervals import Arm, spread, total
from elmo_bench.system import machine
from elmo_bench.system.errors import UserError, check_missing
from elmo_bench.system.storage.hashing import MEMORY, content_sha256

T = TypeVar("T", bound=StudyConfig)
GROUP = 64  # sentences whose layers are read at once


@dataclass
class Study(Generic[T]):
    """One table at one scale with one biLM.

    Attributes:
        name: of the configuration file of settings.
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
        """From the arguments of a command, with all files made or found.

        Raises:
            UserError: a wrong argument, or missing files, all of which are named.
        """
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

        Raises:
            UserError: a file cannot be read, or a biLM carries its state from sentence to sentence.
        """
        runs, root = {self.run.bilm.name: self.run, **self.controls}, self.run.cache_root
        sources = {name: open_source(each.bilm, cache_root=root, cached=cached) for name, each in runs.items()}
        for name, source in sources.items():
            if not getattr(source, "cacheable", True):
                raise UserError(f"bilm={name}: a sentence's layers depend on others; give bilm.state=warm or zero")
        return sources

    @cached_property
    def bilms(self) -> dict[str, Any]:
        """The sha256 and the settings of every biLM."""
        sources = self.open(cached=False)
        return {name: {"sha256": source.sha256, **source.settings} for name, source in sources.items()}

    @cached_property
    def vectors(self) -> tuple[VectorSetConfig, VectorFiles | None] | None:
        """The static word vectors that the settings name, and their files if they are here; None if none are named."""
        if (name := getattr(self.settings, "vectors", None)) is None:
            return None
        if not (chosen := composing.run_config([f"vectors={name}"]).vectors.chosen):
            raise UserError(f"vectors={name}: names no table of word vectors, as vectors=glove.6B.50d does")
        return chosen[0], locate(chosen[0], self.run.vectors_root)

    @cached_property
    def data_sha256(self) -> dict[str, str]:
        """The sha256 of the unpacked content of every file of data, and of the table of word vectors if it is here."""
        memory = Path(self.run.cache_root) / MEMORY
        named = files(self.settings)
        if self.vectors and self.vectors[1]:
            named["vectors"] = self.vectors[1].vectors
        return {name: content_sha256(path, memory) for name, path in named.items()}

    @cached_property
    def plain(self) -> dict[str, Any]:
        """All that the result depends on."""
        own = {"study": self.name, "scale": self.run.scale.name, **self.settings.identifying()}
        own |= {"version": self.settings.version, "data_sha256": self.data_sha256}
        return own | {"bilms": list(self.bilms.values())}

    def record(self, table: int, what: str, note: str, cells: list[StudyCell]) -> StudyRecord:
        """What was measured, as it is shown; `write` adds what the result depends on."""
        return StudyRecord(self.run.scale.name, self.name, what, note.strip(), cells, self.run.bilm.name, table)

    def by_layer(self, name: str, quantity: str, scores: Sequence[Score], layers: bool = True) -> list[StudyCell]:
        """The scores of all layers of a source; of the biLM itself also the top layer's minus layer 1's."""
        figures = (self.settings.paper or {}).get(quantity, {})
        # Only a biLM's layers compare with the paper's, layer by layer.
        ours = name == self.run.bilm.name and isinstance(self.run.bilm, BilmConfig)
        if not layers:
            return [score.cell(name, quantity, paper=figures.get(name)) for score in scores]
        known = [figures.get(f"layer {number}") if ours else None for number in range(len(scores))]
        cells = [score.cell(name, quantity, number, known[number]) for number, score in enumerate(scores)]
        if ours and len(scores) > 2:
            cells.append(scores[-1].minus(scores[1], cells[-1], cells[1]))
        return cells

    def recorded(self) -> StudyRecord | None:
        """The record, unless there is none, or one of another version, or `force=true` asks for a new one."""
        path = replace(self.record(0, "", "", []), settings=self.plain).place(self.run.results_root)
        try:
            return studies.read(path) if path.exists() and not self.run.force else None
        except store.Mismatch:
            return None

    def write(self, measured: StudyRecord) -> StudyRecord:
        """Writes and returns the record of what was measured."""
        sha256 = {name: bilm["sha256"] for name, bilm in self.bilms.items()}
        seconds = round(time.monotonic() - self.started, 1)
        about = {"sha256": sha256, "seconds": seconds, **machine.peaks("cpu"), **machine.circumstances("cpu")}
        return studies.write(replace(measured, settings=self.plain), self.run.results_root, about)


def words_of(source: Layers, group: Sequence[list[str]]) -> Tensor:
    """(L, N, W), the layers of all words of a group of sentences, one after another."""
    layers = frozen_layers(source, group).cpu()  # (B, L, T, W)
    return torch.cat([one[:, : len(sentence)] for one, sentence in zip(layers, group, strict=True)], dim=1)


# Scores of layers and their differences, with the interval that gains have.


class Score:
    """A score, computed from what each cluster of examples adds to some sums.

    Args:
        counts: (seeds, S, C), what each sentence adds to each sum; the last sum is of the examples.
        documents: of the sentences; None: it stands alone.
        statistic: the score from the sums.
    """

    def __init__(self, counts: np.ndarray, documents: Sequence[str | None], statistic: Percent):
        names = np.array([i if name is None else name for i, name in enumerate(documents)], dtype=object)
        tables = [np.asarray(DataFrame(table).groupby(names, sort=False).sum()) for table in counts]
        tables = [table[tables[0][:, -1] > 0] for table in tables]
        scores = np.array([statistic(table.sum(0)[None])[0] for table in tables])
        self.items, self.clusters = int(tables[0][:, -1].sum()), len(tables[0])
        several = self.clusters > 1
        added = [influences(statistic, table) if several else np.zeros(0) for table in tables]
        self.arm = Arm(scores, np.stack(added))

    def cell(self, source: str, quantity: str, layer: int | None = None, paper: float | None = None) -> StudyCell:
        """The score with its interval."""
        return self._cell([self.arm], StudyCell(source, quantity, 0.0, layer, paper=paper))

    def minus(self, other: Score, one: StudyCell, less: StudyCell) -> StudyCell:
        """The difference of two layers on the same examples."""
        paper = None if one.paper is None or less.paper is None else one.paper - less.paper
        return self._cell(
            [self.arm, other.arm.scaled(-1)],
            StudyCell(one.source, one.quantity, 0.0, one.layer, less.layer, paper=paper),
        )

    def _cell(self, arms: Sequence[Arm], about: StudyCell) -> StudyCell:
        (value, _), found = total(arms), spread(*arms)
        given = vars(about) | {"value": value, "n": self.items, "clusters": self.clusters}
        if found is not None:
            low, high = found.around(value)
            given |= {"low": low, "high": high, "degrees": found.degrees}
        return StudyCell(**given)


def clusters(documents: Sequence[str | None]) -> str:
    """What the clusters of an interval are."""
    return "sentences" if None in documents else "documents"
