"""Measures one part of the work on a device and returns its figures.

On a GPU at the sizes of scale=paper, with ELMo from the cache; on a CPU the same code at the sizes of scale=mini, which
shows that it runs and nothing about a GPU. A part is a process, so that one that hangs can be ended.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.pretraining.parallel import choose_device
from elmo_bench.speed import bench, measuring
from elmo_bench.speed import steps as task_steps
from elmo_bench.speed.measuring import LARGE, batch_flops, best_product, device_name, in_own_process
from elmo_bench.speed.steps import Case, Chosen, RandomLayers, flops
from elmo_bench.system.storage import json_text
from tests.gpu import measure, steps, whole_runs

Figures = dict[str, Any]
FIRST = "srl", "squad", "coref"


class Amount(NamedTuple):
    """How much is measured."""

    scale: str  # of the models of tasks
    width: int  # of the layers
    product: tuple[int, int, int]  # the best matrix product
    sentences: int  # to encode
    budgets: tuple[int, ...]  # tokens that the biLM computes at once
    batches: int  # of a task, besides the largest
    rounds: int
    pages: tuple[str, ...]  # of conf/pretrain
    updates: int  # of each pretraining; the rate is that of the last fifty
    training: int  # batches of a whole run


PAPER = Amount("paper", 1024, LARGE, 2048, (2048, 16384), 6, 5, ("original", "small"), 150, 200)
REDUCED = Amount("mini", 16, (256, 256, 256), 32, (2048,), 2, 1, ("mini",), 60, 4)


def amount(kind: str) -> Amount:
    """The paper's sizes on a GPU (cuda), reduced ones on a CPU."""
    return PAPER if kind == "cuda" else REDUCED


def names(kind: str, scale: str = "mini") -> list[str]:
    """The parts, for a kind of device and the tasks that have rows of a scale; the slowest tasks first."""
    tasks = sorted(task_steps.tasks(scale), key=lambda task: FIRST.index(task) if task in FIRST else len(FIRST))
    pages, runs = amount(kind).pages, whole_runs.names(kind)
    return [
        *(f"steps.{task}" for task in tasks), "encode", *(f"pretraining.{page}" for page in pages),
        *(f"train.{run}" for run in runs),
    ]  # fmt: skip


def run(part: str, kind: str, rows: Path | None, data: Sequence[str], limit: float | None = None) -> Figures:
    """The figures of a part, measured in another process.

    Args:
        part: its name.
        kind: cpu or cuda.
        rows: folder of rows that were chosen before, <task>.json; None: they are chosen from `data`.
        data: overrides that choose the data.
        limit: seconds.

    Raises:
        subprocess.SubprocessError: the process failed, or did not end within the limit.
    """
    return in_own_process(measured, part, kind, rows and str(rows), list(data), limit=limit)


def choose(task: str, place: torch.device, data: Sequence[str]) -> Chosen:
    """Batches of a task for this device."""
    return task_steps.choose(task, data, amount(place.type).scale, amount(place.type).batches)


def roof(place: torch.device) -> dict[str, float]:
    """The best rate of this device: FLOP a second of a matrix product, by precision."""
    shape = amount(place.type).product
    return {name: best_product(place, dtype, [shape]) for name, dtype in measure.DTYPES.items()}


def measured(part: str, device: str, rows: str | None, data: Sequence[str]) -> Figures:
    """The figures of a part, with the best rates of the device in the same process."""
    place = choose_device(device)
    kind, _, which = part.partition(".")
    figures: Figures = {"device": device_name(place), "roof": (best := roof(place))}
    if kind == "encode":
        return {**figures, "encode": _encode(place, best)}
    if kind == "pretraining":
        updates, compiled = amount(place.type).updates, place.type == "cuda"
        return {**figures, "pretraining": bench.measured_pretraining(which, updates, None, device, compiled)}
    if kind == "train":
        return {**figures, "run": whole_runs.measured(which, place.type, data, amount(place.type).training)}
    chosen = json_text.read(Path(rows) / f"{which}.json") if rows else choose(which, place, data)
    return {**figures, "rows": chosen["rows"], "steps": _steps(chosen, place, best)}


def _encode(place: torch.device, best: dict[str, float]) -> list[Figures]:
    """Words to layers in float32, for every budget of tokens; words are encoded afresh each time.

    With random weights of the release's largest size, on a CPU of its smallest.
    """
    sentences, _ = measuring.read_sentences(None, amount(place.type).sentences)
    tokens, rows = sum(map(len, sentences)), []
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "options.json", Path(folder) / "weights.hdf5"
        torch.manual_seed(0)
        BiLM(measuring.ORIGINAL if place.type == "cuda" else measuring.SMALL).export(*files)
        for budget in amount(place.type).budgets:
            bilm = BiLM.from_files(*files, state="warm", token_budget=budget).to(place)

            def work(bilm: BiLM = bilm) -> None:
                bilm.forget_words()
                for _ in bilm.batches(sentences):
                    pass

            seconds = measure.seconds(work, amount(place.type).rounds)
            share = batch_flops(bilm.options, sentences) / seconds / best["32-true"]
            row = {"token_budget": budget, "tokens_a_second": tokens / seconds, "share_of_bound": share}
            rows.append({**row, "peak_mib": measure.memory(work, place)})
    return rows


def _steps(chosen: Chosen, place: torch.device, best: dict[str, float]) -> list[Figures]:
    """The training steps of a task, a row for each arm of Table 1 and each precision."""
    source, rows = RandomLayers(amount(place.type).width), []
    for arm in ("baseline", "elmo"):
        case = Case(chosen, arm, source)
        work = flops(case, case.batches[1:])
        for precision, rate in best.items():
            row = steps.on_device(case, place, precision, amount(place.type).rounds)
            share = work / len(case.batches[1:]) / row["seconds_a_step"] / rate
            rows.append({**row, "share_of_bound": share})
    return rows
