"""What runs cost, from the committed records: time, memory, disk."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from typing import Any

from hydra.utils import instantiate

from elmo_bench.configuration import composing, pages
from elmo_bench.configuration.tables import in_order
from elmo_bench.identity.settings import maker
from elmo_bench.records.frame import is_main, rest
from elmo_bench.records.record import Record
from elmo_bench.records.store import full_runs, read_all
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
    run = composing.run_config([f"task={task}", f"scale={scale}"])
    if made := maker(run.scale, run):
        made.make()
    reader = instantiate(run.task.reader)
    return sum(map(len, sentences(reader.load().values(), reader.fields)))


def table() -> str:
    """Time, memory and disk of a run, by scale and task, and the sums."""
    rows, words_of = [], counted()
    for scale in SCALES:
        own = [each.bilm for each in _main(scale) if "bilm" not in each.variant]
        seconds, (width,) = 0.0, {bilm["token_bytes"] for bilm in own if "token_bytes" in bilm}  # of a word's layers
        for task in in_order(pages.tasks()):
            runs = [_main(scale, task=task, arm=arm) for arm in ("baseline", "elmo")]
            arms = [[each for each in arm if each.machine["accelerator"] == "cpu"] for arm in runs]
            gpu = [each for each in runs[1] if each.machine["accelerator"] != "cpu"]
            kind, timed = on_one_processor(*arms)
            seconds += sum(map(typical, timed))
            times, peaks = map(_minutes, timed), map(_peak, arms)
            on_gpu, stored = _minutes(gpu) if gpu else "not known", f"{words_of[scale][task] * width / 1e6:,.0f} MB"
            rows.append((scale, task, kind or "several", *times, on_gpu, *peaks, stored))
        rows.append((scale, "**all**, both arms, one seed", "", f"**{seconds / 60:.0f}**", *[""] * 5))
    minutes, memory = ([f"{arm}, {what}" for arm in ("baseline", "+ELMo")] for what in ("minutes", "memory"))
    header = ("scale", "task", "processor", *minutes, "+ELMo on a GPU", *memory, "layers on disk")
    records = [each for scale in SCALES for each in _main(scale)]
    processors = ", ".join(sorted({each.machine["cpu"] for each in records}))
    told = (
        f"From {len(records)} recorded runs on {processors} (one core a run): the median of the CPU time of those on "
        "the processor that is named, which both arms have, and the largest peak of memory over the seeds."
    )
    return "\n\n".join([pipes(header, rows), told, _others()])


def _main(scale: str, **about: Any) -> list[Record]:
    """The recorded runs of the arms of Table 1, of which `about` holds."""
    main = filter(is_main, read_all(places.RECORDED, scale))
    return [each for each in main if all(getattr(each, name) == value for name, value in about.items())]


def _minutes(records: Sequence[Record]) -> str:
    minutes = typical(records) / 60
    return f"{minutes:.0f}" if minutes >= 10 else f"{minutes:.1f}"


def _peak(records: Sequence[Record]) -> str:
    return f"{max(each.peak_memory_mib or 0 for each in records) / 1024:.1f} GiB"


def _others() -> str:
    """The peaks of another source of layers."""
    found = [
        r
        for r in full_runs(read_all(places.RECORDED))
        if r.has_elmo and not r.from_bilm and not rest(r, {"bilm": None})
    ]
    if not found:
        return ""
    most = max(found, key=lambda each: each.peak_memory_mib or 0)
    return (
        f"With `bilm={most.bilm_name}` instead of ELMo the highest peak is {_peak([most])} ({most.task}, scale "
        f"{most.scale})."
    )


def first_result(task: str) -> str:
    """What `make reproduce` prints for a task at mini, with the recorded runs of seed 1 as the user's."""
    (section,) = tables.beside(_main("mini", task=task, seed=1))
    rows = [section.header, *section.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join(["```text", section.title, *lines, "```"])


def two_gains() -> str:
    """The clearest gain of the reference runs on open data, and one that is not shown."""
    section = tables.overview(by_scale(full_runs(read_all(places.RECORDED, "open"))))[0]
    lows = [float(re.findall(r"[-+][\d.]+", row[5])[1]) for row in section.rows]
    shown = section.rows[lows.index(max(lows))]
    unsure = [row for row, low in zip(section.rows, lows, strict=True) if low <= 0]
    rows = [
        (shown, "shown: the interval excludes 0"),
        *((row, "not shown: these runs also agree with no gain") for row in unsure[:1]),
    ]
    return pipes(("task", "baseline", "+ELMo", "gain", ""), [(row[0], *row[3:6], what) for row, what in rows])


def one_seed(task: str) -> str:
    """The scores of a task at mini with seed 1, in a sentence."""
    (before,), (after,) = (_main("mini", task=task, arm=arm, seed=1) for arm in ("baseline", "elmo"))
    scores = (record.metrics["test"][record.monitor] for record in (before, after))
    return "For example, with `TASK={}` seed 1 gives {:.1f} without ELMo and {:.1f} with it.".format(task, *scores)
