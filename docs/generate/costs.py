"""What runs cost, from the committed records: time, memory, disk."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence

from hydra.utils import instantiate

from elmo_bench.configuration import pages, schema
from elmo_bench.configuration.tables import in_order
from elmo_bench.identity.makers import maker
from elmo_bench.records.query import is_main, rest
from elmo_bench.records.record import Record
from elmo_bench.records.store import read_all, whole
from elmo_bench.records.times import on_one_processor, typical
from elmo_bench.reporting.section import pipes
from elmo_bench.reporting.statistics.outcomes import by_scale
from elmo_bench.reporting.tables import tables
from elmo_bench.system import places
from elmo_bench.system.storage.files import write_text
from elmo_bench.text.tokens import sentences

COUNTED = places.ROOT / "docs" / "generate" / "tokens.json"  # words of all distinct sentences, by scale and task
SCALES = ("mini", "open")


def counted() -> dict[str, dict[str, int]]:
    """The words whose layers are stored, by scale and task, as they were counted last."""
    return json.loads(COUNTED.read_text(encoding="utf-8"))


def count() -> None:
    """Counts them again, at each scale whose data are here."""
    known = counted()
    for scale in SCALES if os.environ.get("DATA_ROOT") else SCALES[:1]:
        known[scale] = {task: words(task, scale) for task in in_order(pages.tasks())}
    write_text(COUNTED, json.dumps(known, indent=1) + "\n")


def words(task: str, scale: str) -> int:
    """The words of all distinct sentences of a task's data."""
    run = schema.typed(pages.compose([f"task={task}", f"scale={scale}"]))
    if made := maker(run.scale, run.places):
        made.make()
    reader = instantiate(run.task.reader)
    return sum(map(len, sentences(reader.load().values(), reader.fields)))


def table() -> str:
    """Time, memory and disk of a run, by scale and task, and the sums."""
    rows, words_of = [], counted()
    for scale in SCALES:
        seconds, width = 0.0, _width(scale)
        for task in in_order(pages.tasks()):
            runs = [_main(scale, task, arm) for arm in ("baseline", "elmo")]
            arms = [[each for each in arm if each.machine["accelerator"] == "cpu"] for arm in runs]
            gpu = [each for each in runs[1] if each.machine["accelerator"] != "cpu"]
            kind, timed = on_one_processor(*arms)
            seconds += sum(map(typical, timed))
            times, peaks = map(_minutes, timed), map(_peak, arms)
            disk = words_of[scale][task] * width
            on_gpu, stored = _minutes(gpu) if gpu else "not known", f"{disk / 1e6:,.0f} MB"
            rows.append((scale, task, kind or "several", *times, on_gpu, *peaks, stored))
        rows.append((scale, "**all**, both arms, one seed", "", f"**{seconds / 60:.0f}**", *[""] * 5))
    minutes, memory = ([f"{arm}, {what}" for arm in ("baseline", "+ELMo")] for what in ("minutes", "memory"))
    header = ("scale", "task", "processor", *minutes, "+ELMo on a GPU", *memory, "layers on disk")
    return "\n\n".join([pipes(header, rows), _machine(), _others()])


def _minutes(records: Sequence[Record]) -> str:
    minutes = typical(records) / 60
    return f"{minutes:.0f}" if minutes >= 10 else f"{minutes:.1f}"


def _peak(records: Sequence[Record]) -> str:
    return f"{max(each.peak_memory_mib or 0 for each in records) / 1024:.1f} GiB"


def _machine() -> str:
    records = [each for scale in SCALES for each in read_all(places.RECORDED, scale) if is_main(each)]
    names = sorted({each.machine["cpu"] for each in records})
    return (
        f"From {len(records)} recorded runs on {', '.join(names)} (one core a run): the median of the CPU "
        "time of those on the processor that is named, which both arms have, and the largest peak of memory over the "
        "seeds."
    )


def _width(scale: str) -> int:
    """Bytes of the layers of a word, of the scale's own biLM."""
    (width,) = {each.bilm["token_bytes"] for each in read_all(places.RECORDED, scale)
                if is_main(each) and "bilm" not in each.variant and "token_bytes" in each.bilm}  # fmt: skip
    return width


def _others() -> str:
    """The peaks of another source of layers."""
    found = [
        r for r in whole(read_all(places.RECORDED)) if r.has_elmo and not r.from_bilm and not rest(r, {"bilm": None})
    ]
    if not found:
        return ""
    most = max(found, key=lambda each: each.peak_memory_mib or 0)
    return (
        f"With `bilm={most.bilm_name}` instead of ELMo the highest peak is {_peak([most])} ({most.task}, scale "
        f"{most.scale})."
    )


def _main(scale: str, task: str, arm: str) -> list[Record]:
    return [each for each in read_all(places.RECORDED, scale, task) if is_main(each) and each.arm == arm]


def first_result(task: str) -> str:
    """What `make reproduce` prints for a task at mini, with the recorded runs of seed 1 as the user's."""
    own = [each for each in read_all(places.RECORDED, "mini", task) if is_main(each) and each.seed == 1]
    (section,) = tables.beside(own)
    rows = [section.header, *section.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(["```text", section.title, *lines, "```"])


def two_gains() -> str:
    """The clearest gain of the reference runs on open data, and one that is not shown."""
    section = tables.overview(by_scale(whole(read_all(places.RECORDED, "open"))))[0]
    lows = [float(re.findall(r"[-+][\d.]+", row[5])[1]) for row in section.rows]
    shown = section.rows[lows.index(max(lows))]
    unsure = [row for row, low in zip(section.rows, lows, strict=True) if low <= 0]
    rows = [
        (shown, "shown: the interval excludes 0"),
        *((row, "not shown: these runs also agree with no gain") for row in unsure[:1]),
    ]
    return pipes(("task", "baseline", "+ELMo", "gain", ""), [(row[0], *row[3:6], what) for row, what in rows])


def score(task: str, scale: str, arm: str, seed: int) -> float:
    """A recorded score on test."""
    (record,) = (each for each in _main(scale, task, arm) if each.seed == seed)
    return record.metrics["test"][record.monitor]


def one_seed(task: str) -> str:
    """The scores of a task at mini with seed 1, in a sentence."""
    before, after = (score(task, "mini", arm, 1) for arm in ("baseline", "elmo"))
    return f"For example, with `TASK={task}` seed 1 gives {before:.1f} without ELMo and {after:.1f} with it."
