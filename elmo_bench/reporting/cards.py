"""The card of a trained head, README.md beside it: usage, data, scores with intervals, limits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from elmo_bench.configuration import pages
from elmo_bench.records import store
from elmo_bench.records.record import Record
from elmo_bench.reporting.gains import ranges
from elmo_bench.reporting.intervals import Arm, of_arm, spread
from elmo_bench.reporting.section import pipes
from elmo_bench.sources import pages as sources
from elmo_bench.system.storage import json_text

SCORES = ("split", "metric", "of", "score", "95 % interval", "over")
CARD = """---
{front}
---

# {title}: a trained head of elmo_bench

The model of {title} in "Deep contextualized word representations" (Peters et al. 2018), trained at scale {scale} with
`{settings}` and seed {seed} (run `{run}`).

## How to use it

```python
import elmo_bench

model = elmo_bench.load("{name}")
model.predict([row])
```

A row is {input}, for example `{example}`. Its `prediction` has {output}.

## Data

{data}

It contains the words of its vocabulary, but no sentence of the data.

## Scores

{scores}

In percent. The interval covers the choice of test examples and, with several seeds, of the seed.

## Limits

- {note}
- Its answers may be much worse on text that differs from its data. It is made for experiments and cannot compete with
  today's models.
- It needs the biLM `{source}`, sha256 {sha256}; any other is refused.
- Weights are rounded to {weights}; the scores were measured before rounding.
"""


def card(folder: Path, name: str, package: Any, *results: Path) -> str:
    """The card of a head.

    Args:
        folder: the folder of the head and its card.json.
        name: the argument of `elmo_bench.load`.
        package: the package of its task, with `PREDICT` and `EXAMPLES`.
        results: folders of results; the first with the record of its run gives the intervals.
    """
    from huggingface_hub import EvalResult, ModelCardData

    known = json_text.read(folder / "card.json")
    task, scale, metrics = known["task"], known["scale"], known["metrics"]
    metric, title = pages.written("task", task, "monitor"), pages.written("task", task, "title") or task
    paths = (store.place(root, scale, task, known["run"]) for root in results)
    record = next((store.read(path) for path in paths if path.is_file()), None)
    data = _data(record, scale, task)
    note = record.config["scale"]["note"] if record else pages.written("scale", scale, "note", "")
    licence = re.match(r"CC (BY[\w-]*) (\d\.\d)", data[0][1])
    front = ModelCardData(
        language="en", library_name="elmo_bench", tags=["elmo", task], model_name=f"{task}, scale {scale}",
        license=f"cc-{'-'.join(licence.groups())}".lower() if licence else "other",
        eval_results=[EvalResult(task_type=task, dataset_type=scale, dataset_name=data[0][0], dataset_split="test",
                                 metric_type=metric, metric_value=round(metrics["test"][metric], 2))],
    )  # fmt: skip
    said, examples = getattr(package, "PREDICT", {}), getattr(package, "EXAMPLES", [{"text": "Ida sang in Oslo."}])
    return CARD.format(
        **known | known["bilm"] | {"name": name},
        settings=", ".join(f"{key}={value}" for key, value in ({"arm": known["arm"]} | known["variant"]).items()),
        title=title,
        front=front.to_yaml(),
        example=json_text.dumps(examples[0], ensure_ascii=False),
        input=said.get("input", "a JSON object"),
        output=said.get("output", "the answer"),
        data="\n".join(f"- {title}. Licence: {licence}." for title, licence in data),
        scores=pipes(SCORES, [*_scores(metrics, record, metric)]),
        note=" ".join(note.removeprefix(f"{scale}: ").split()),
        source=known["bilm"]["name"] or "none",
    )


def _data(record: Record | None, scale: str, task: str) -> list[tuple[str, str]]:
    """The titles and licences of a run's training data; without its record, of its scale's data."""
    data: Mapping[str, Any] = {} if record is None else record.config["task"].get("data") or {}
    names, own = {str(name).removeprefix("<data_root>/") for name in data.values()}, (record and record.own_data) or {}
    known = sources.load().values()
    of_scale = [page for page in known if record is None and task in page.tasks and scale in page.scales]
    found = [page for page in known if names.intersection(page.targets)] or of_scale
    files = [(f"own data, {name}", "its owner's") for name in own.values()]
    return [(page.title, page.licence) for page in found] or files or [("generated text", "that of elmo_bench")]


def _scores(metrics: Mapping[str, Mapping[str, float]], record: Record | None, monitor: str) -> Iterator[Sequence[str]]:
    """The rows of the table: this model's, and the means of all recorded runs with its settings."""
    one, there = [], []
    if record is not None and record.path:
        one, there = [record], store.read_all(record.path.parents[3], record.scale, record.task)
    for split, scores in metrics.items():
        yield split, monitor, "this model", f"{scores[monitor]:.2f}", *_interval(one, split, monitor)
    alike = [each for each in there if each.group == one[0].group]
    if len(alike) > 1:
        mean, seeds = fmean(each.metrics["test"][monitor] for each in alike), ranges([each.seed for each in alike])
        yield "test", monitor, f"mean of seeds {seeds}", f"{mean:.2f}", *_interval(alike, "test", monitor)


def _interval(runs: Sequence[Record], split: str, metric: str) -> tuple[str, str]:
    """The interval of the mean score of some runs, and what it covers; empty if unknown."""
    if not (known := of_arm(runs, split, metric)) or len(known[0].table) < 2:
        return "", ""
    arm = Arm.of([each.value for each in known], known)
    if (found := spread(arm)) is None:
        return "", ""
    low, high = found.around(float(arm.scores.mean()))
    return f"[{low:.2f}, {high:.2f}]", f"{len(known[0].table):,} {known[0].unit}"
