"""What a reader must know of the scores of a task at a scale, in sentences below its table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from elmo_bench.records.record import Record
from elmo_bench.records.studies import LONG, SHARED, StudyRecord
from elmo_bench.reporting.statistics import scores as statistics
from elmo_bench.reporting.statistics.groups import Group

CHANCE = 1.0  # percent of the longer sentences of dev: what is below it comes about by chance
Read = Mapping[tuple[str, str], Sequence[str]]  # sentences by scale and task


def all_of(groups: Sequence[Group], metric: str) -> list[str]:
    """The other metrics, and the machines."""
    records = [record for group in groups for record in group.records]
    return [*_details(groups, metric), *_machines(records)]


def read(studies: Iterable[StudyRecord]) -> Read:
    """What the biLM has read of dev, if it is more than chance, by the records of `elmo-bench analysis.overlap`."""
    found: dict[tuple[str, str], list[str]] = {}
    for study in (study for study in studies if study.study == "overlap"):
        counts: dict[str, Counter[Any]] = {}  # of each task, by split and quantity
        for cell in study.cells:
            counts.setdefault(cell.source, Counter())[cell.split, cell.quantity] = int(cell.value)
        for task, known in counts.items():
            if 100 * known["dev", SHARED] > CHANCE * known["dev", LONG]:
                found.setdefault((study.scale, task), []).append(_overlap(known))
    return found


def _overlap(counts: Counter[Any]) -> str:
    dev, test = (f"{counts[split, SHARED]:,} of the {counts[split, LONG]:,} longer" for split in ("dev", "test"))
    return (
        f"The biLM's text has 13 running words in common with {dev} sentences of dev, and {test} of test. It flatters "
        "dev scores with this biLM and the epochs that they chose; no verdict on a finding rests on them."
    )


def _details(groups: Sequence[Group], metric: str) -> list[str]:
    """The other test metrics and the peak memory, for each arm."""
    remarks = []
    for group in groups:
        names = [name for name in group.first.metrics["test"] if name != metric]
        others = [f"{name} {statistics.scores(group.records, 'test', name)}" for name in names]
        peaks = [record.peak_memory_mib for record in group.records if record.peak_memory_mib]
        details = [f"test {', '.join(others)}"] if others else []
        details += [f"peak memory {max(peaks):,} MiB"] if peaks else []
        if details:
            bilm = f", biLM {group.first.bilm_name}" if group.first.bilm_name else ""
            remarks.append(f"{group.name}{bilm}: {'; '.join(details)}.")
    return remarks


def _machines(records: Sequence[Record]) -> list[str]:
    described = {(m.get("gpu") or m["cpu"], m["cores"], m["threads"], m["accelerator"])
                 for m in (record.machine for record in records)}  # fmt: skip
    shown = [
        f"{name} ({cores} cores, {threads} threads, {accelerator})"
        for name, cores, threads, accelerator in sorted(described, key=str)
    ]
    dirty = sum(bool(record.dirty) for record in records)
    changed = f" {dirty} of {len(records)} runs: code with uncommitted changes." if dirty else ""
    return [f"Machine: {'; '.join(shown)}.{changed}"]
