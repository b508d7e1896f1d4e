"""Blocks of pages: what runs cost and score, from the committed records; commands, sweeps, and the trained heads."""

from __future__ import annotations

import importlib
import json
import os
import re
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra.utils import instantiate

import elmo_bench
from elmo_bench.commands.command import HEADINGS, command, summary
from elmo_bench.configuration import composing, pages
from elmo_bench.configuration.pages import in_order
from elmo_bench.records.frame import is_main
from elmo_bench.records.record import Record
from elmo_bench.records.settings import maker
from elmo_bench.records.store import full_runs, read_all
from elmo_bench.records.times import on_one_processor, typical
from elmo_bench.reporting import score_tables
from elmo_bench.reporting.cards import card
from elmo_bench.reporting.gains import by_scale
from elmo_bench.reporting.section import pipes
from elmo_bench.system.places import RECORDED, ROOT
from elmo_bench.system.storage.files import write_text
from elmo_bench.text.tokens import sentences

COUNTED = ROOT / "docs" / "generate" / "tokens.json"  # the number of words of all distinct sentences, by scale and task
SCALES = ("mini", "open")
INPUT: dict[str, dict[str, Any]] = {
    "ner": {"text": "Ida sang in Oslo."},
    "snli": {"premise": "A man plays a guitar.", "hypothesis": "A person makes music."},
    "sst5": {"text": "A fine film."},
    "srl": {"text": "Ida sang in Oslo.", "predicates": [1]},
    "coref": {"text": "Ida has a cat. She likes it."},
    "squad": {"context": "Ida Berg was born in Oslo in 1901.", "question": "Where was Ida Berg born?"},
}


# What runs cost.


def counted() -> dict[str, dict[str, int]]:
    """The number of words whose layers are stored, by scale and task, as last counted."""
    return json.loads(COUNTED.read_text(encoding="utf-8"))


def count() -> None:
    """Counts them again, at each scale whose data are available."""
    known = counted()
    for scale in SCALES if os.environ.get("DATA_ROOT") else SCALES[:1]:
        known[scale] = {task: words(task, scale) for task in in_order(pages.tasks())}
    write_text(COUNTED, json.dumps(known, indent=1) + "\n")


def words(task: str, scale: str) -> int:
    """The number of words of all distinct sentences of a task's data."""
    run = composing.run_config([f"task={task}", f"scale={scale}"])
    if data := maker(run.scale, run):
        data.make()
    reader = instantiate(run.task.reader)
    return sum(map(len, sentences(reader.load().values(), reader.fields)))


def costs() -> str:
    """Time, memory and disk of a run, by scale and task, and the sums; and the peak of another source of layers."""
    rows, tokens, records = [], counted(), [run for scale in SCALES for run in _main(scale)]

    def minutes(runs: Sequence[Record]) -> str:
        seconds = [run.device_seconds for run in runs]
        took = (each / 60 for each in (typical(runs), min(seconds), max(seconds)))
        middle, *ends = (f"{each:.0f}" if each >= 10 else f"{each:.1f}" for each in took)
        return middle if ends == [middle] * 2 else f"{middle} ({ends[0]} to {ends[1]})"

    def peak(runs: Sequence[Record]) -> str:
        return f"{max(run.peak_memory_mib or 0 for run in runs) / 1024:.1f} GiB"

    for scale in SCALES:
        own = [run.bilm for run in records if run.scale == scale and "bilm" not in run.variant]
        seconds, (width,) = 0.0, {bilm["token_bytes"] for bilm in own if "token_bytes" in bilm}  # of a word's layers
        for task in in_order(pages.tasks()):
            runs = [_main(scale, task=task, arm=arm) for arm in ("baseline", "elmo")]
            arms = [[run for run in arm if run.machine["accelerator"] == "cpu"] for arm in runs]
            gpu = [run for run in runs[1] if run.machine["accelerator"] != "cpu"]
            kind, timed = on_one_processor(*arms)
            seconds += sum(map(typical, timed))
            on_gpu, stored = minutes(gpu) if gpu else "not known", f"{tokens[scale][task] * width / 1e6:,.0f} MB"
            rows.append((scale, task, kind or "several", *map(minutes, timed), on_gpu, *map(peak, arms), stored))
        rows.append((scale, "**all**, both arms, one seed", "", f"**{seconds / 60:.0f}**", *[""] * 5))
    times, memory = ([f"{arm}, {what}" for arm in ("baseline", "+ELMo")] for what in ("minutes", "memory"))
    header = ("scale", "task", "processor", *times, "+ELMo on a GPU", *memory, "layers on disk")
    processors = ", ".join(sorted({run.machine["cpu"] for run in records}))
    note = (
        f"From {len(records)} recorded runs on {processors} (one core a run): the median of the CPU time of those on "
        "the processor that is named, which both arms have, with their range, and the largest peak of memory over the "
        "seeds. Other work on the machine shares its caches and clock, which lengthens CPU time too, and later runs "
        "have faster code."
    )
    others = [run for run in full_runs(read_all(RECORDED)) if not run.from_bilm and not run.variant.keys() - {"bilm"}]
    most = max(others, key=lambda run: run.peak_memory_mib or 0)
    highest = (
        f"With `bilm={most.bilm_name}` instead of ELMo the highest peak is {peak([most])} ({most.task}, scale "
        f"{most.scale})."
    )
    return "\n\n".join([pipes(header, rows), note, highest])


def _main(scale: str, **about: Any) -> list[Record]:
    """The recorded runs of Table 1's arms that have these attributes."""
    main = filter(is_main, read_all(RECORDED, scale))
    return [each for each in main if all(getattr(each, name) == value for name, value in about.items())]


# What runs score.


def first_result(task: str) -> str:
    """What `make reproduce` prints for a task at mini, with the recorded runs of seed 1 as the user's."""
    (section,) = score_tables.beside(_main("mini", task=task, seed=1))
    rows = [section.header, *section.rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    return "\n".join(["```text", section.title, *lines, "```"])


def two_gains() -> str:
    """The clearest gain of the reference runs on open data, and one that is not shown."""
    section = score_tables.overview(by_scale(full_runs(read_all(RECORDED, "open"))))[0]
    lows = [float(re.findall(r"[-+][\d.]+", row[5])[1]) for row in section.rows]
    rows = [(section.rows[lows.index(max(lows))], "shown: the interval excludes 0")]
    unsure = [row for row, low in zip(section.rows, lows, strict=True) if low <= 0]
    rows += [(row, "not shown: these runs also agree with no gain") for row in unsure[:1]]
    return pipes(("task", "baseline", "+ELMo", "gain", ""), [(row[0], *row[3:6], what) for row, what in rows])


def one_seed(task: str) -> str:
    """The scores of a task at mini with seed 1, in a sentence."""
    runs = (run for arm in ("baseline", "elmo") for run in _main("mini", task=task, arm=arm, seed=1))
    scores = (run.metrics["test"][run.monitor] for run in runs)
    return "For example, with `TASK={}` seed 1 gives {:.1f} without ELMo and {:.1f} with it.".format(task, *scores)


# How the project is used.


def formats() -> str:
    """The keys of a line of the input and of the output, by task, as in `predict --help`."""
    rows = []
    for task in in_order(pages.tasks()):
        text = importlib.import_module(f"tasks.{task}").PREDICT
        parts = (text[part].replace("<", "\\<") for part in ("input", "output", "official"))
        rows.append((f"[{task}](../tasks/{task}/README.md)", *parts))
    return pipes(("task", "a line of the input", "what `prediction` holds", "`format=official`"), rows)


def prediction(task: str) -> str:
    """An input, and what `predict task=TASK` writes for it; numbers are rounded."""
    answer = elmo_bench.load(task, accelerator="cpu").predict([INPUT[task]])[0]
    rounded = json.loads(json.dumps(answer), parse_float=lambda number: round(float(number), 2))
    text = json.dumps(rounded, ensure_ascii=False)
    text = textwrap.fill(text, 110, subsequent_indent=" ", break_long_words=False, break_on_hyphens=False)
    return f"```json\n{text}\n```"


def cards() -> dict[Path, str]:
    """The cards of the heads, by their files."""
    folders = {task: ROOT / "models" / "heads" / task for task in in_order(pages.tasks())}
    return {
        folder / "README.md": card(folder, task, importlib.import_module(f"tasks.{task}"), RECORDED)
        for task, folder in folders.items()
    }


def gains(scale: str) -> str:
    """The gains of the tasks from the biLM of a scale, in the reference runs."""
    first, *_ = score_tables.overview({scale: by_scale(full_runs(read_all(RECORDED, scale)))[scale]})
    return pipes(first.header, first.rows)


def perplexity(name: str) -> str:
    """The perplexities of a biLM on its development texts, from its card."""
    known = json.loads((ROOT / "models" / name / "card.json").read_text(encoding="utf-8"))["perplexity"]
    ways = ("forward", "backward", "mean")
    rows = [(f"`{text}`", f"{of['tokens']:,}", *(f"{of[way]:.1f}" for way in ways)) for text, of in known.items()]
    return pipes(("text", "predictions", *ways), rows)


def commands() -> str:
    """The commands under their headings, each with its summary and a page to read on, and the targets of `make`."""
    parts = []
    for heading, names in HEADINGS.items():
        on = ((name, command(name).page) for name in names)
        rows = [(f"`elmo-bench {name}`", summary(name), f"[{page}]({page}.md)") for name, page in on]
        title = heading if heading == "biLM" else heading.capitalize()
        parts += [f"### {title}", pipes(("command", "what it does", "more"), rows)]
    targets = re.findall(r"^([a-z-]+):.*## (.*)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    rows = [(f"`make {name}`", what) for name, what in targets]
    return "\n\n".join([*parts, "## Targets of make", pipes(("target", "what it does"), rows)])


def sweeps() -> str:
    """The sweeps and their titles."""
    rows = [(f"`{name}`", pages.table(name).title) for name in sorted(pages.sweeps())]
    return pipes(("sweep", "what it compares"), rows)
