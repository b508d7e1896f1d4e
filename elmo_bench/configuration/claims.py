"""The findings of the paper, and what decides each: the entries of conf/claims.yaml."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from elmo_bench.configuration import pages
from elmo_bench.system import places
from elmo_bench.system.errors import UserError
from elmo_bench.system.terminal.console import choices

MEASURES = ("score", "error", "updates", "first_layer", "spread", "lower_layers")
STUDIES = ("wsd", "pos", "tuning")


@dataclass
class Claim:
    """One finding.

    Attributes:
        finding, where: its words, and the section or table of the paper.
        paper: the paper's figures by task; "" stands for all of them together.
        sweep: the sweep that makes the runs.
        tasks: those that the paper speaks of; none named: all that have such runs.
        more, less: the values of `arm` and of keys of the configuration that the compared runs have.
        measure: what is compared. "score": points of the task's metric; "error": the percentage of the errors of `less`
            that `more` does not make; "updates": the percentage of updates saved; of the weights s_j at `place`, in the
            runs `more` alone: "first_layer": s_1 less the largest other, "spread": the largest less the smallest,
            "lower_layers": the mean of all but the last, less the last.
        place: of the weights, input or output.
        region: [low, high], where the difference lies if the finding holds; null: no bound.
        study: instead of runs: a study of the biLM, whose record has the number (wsd, pos, tuning).
        bilm: its name, in a finding of a study.
        quantity: of the study; of each of `tasks`, if these are named, else of the biLM.
        layer, minus: of which layer the quantity is, and the layer whose value is subtracted.
        unit: of the quantity.
        untested: why nothing here tests it.
    """

    finding: str = ""
    where: str = ""
    paper: dict[str, str] = field(default_factory=dict)
    sweep: str = ""
    tasks: list[str] = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)
    less: dict[str, Any] = field(default_factory=dict)
    measure: str = "score"
    place: str = "input"
    region: list[Any] = field(default_factory=lambda: [0, None])
    study: str = ""
    bilm: str = ""
    quantity: str = ""
    layer: int | None = None
    minus: int | None = None
    unit: str = "points"
    untested: str = ""

    @property
    def bounds(self) -> tuple[float, float]:
        """The region with infinities for null."""
        low, high = self.region
        return -float("inf") if low is None else float(low), float("inf") if high is None else float(high)


def claims(scale: str) -> dict[str, Claim]:
    """All findings by name, with a scale's pair of arms and biLM where an entry has `${pair.without}` or `${bilm}`.

    Raises:
        UserError: an entry has a key that a finding does not have, or a value that is not allowed.
    """
    return dict(_claims(places.CONF / "claims.yaml", pages.pair(scale), pages.own_bilm(scale) or ""))


@cache
def _claims(page: Path, pair: pages.Pair, bilm: str) -> dict[str, Claim]:
    ours = {"pair": pair._asdict(), "bilm": bilm}
    entries = OmegaConf.merge(pages.read(page), ours)
    found = {}
    for name in entries:
        if name in ours:
            continue
        try:
            entry = OmegaConf.to_container(OmegaConf.select(entries, str(name)), resolve=True)
            typed: Any = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(Claim), entry))
        except OmegaConfBaseException as error:
            raise UserError(f"{name}: {str(error).splitlines()[0]}", page) from None
        for key, value, known in (("measure", typed.measure, MEASURES), ("study", typed.study or "wsd", STUDIES)):
            if value not in known:
                raise UserError(f"{name}.{key}={value}: {choices(value, known)}", page)
        if typed.study and not (typed.bilm and typed.quantity):
            raise UserError(f"{name}.study={typed.study}: name its bilm and quantity, too", page)
        if len(typed.region) != 2:
            raise UserError(f"{name}.region: two bounds are needed, as [0, null]", page)
        found[str(name)] = typed
    return found
