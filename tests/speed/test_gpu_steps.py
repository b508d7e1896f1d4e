"""A training step of each task on a device: the same tests on a CPU and, where there is one, on a GPU.

On a CPU the models have the sizes of scale=mini, on a GPU those of scale=paper; rows are those of scale=mini.
"""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.plugins.precision import MixedPrecision
from torch import nn
from torch.utils.data import DataLoader

from elmo_bench.running.module import BenchModule
from elmo_bench.running.ranks import Environment
from elmo_bench.speed import steps as task_steps
from elmo_bench.speed.steps import Case, update
from tests.gpu import measure, steps
from tests.gpu.part import amount, choose
from tests.gpu.steps import loss_of, moved

TASKS = task_steps.tasks("mini")
ROWS = 8  # of a batch
PLACES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]
# How often a GPU may be waited for in a step, copies and averages included: for the mention scores, of which the search
# keeps some spans, and for how far a CRF's scores lie apart.
WAITS = {"coref": 1, "ner": 1, "snli": 0, "squad": 0, "srl": 0, "sst5": 0}

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_tf32")]


@pytest.fixture(scope="module", params=TASKS)
def case_of(request, data) -> Callable[[str], Case]:
    """The largest batch of a task for a place, cut to some rows."""

    @cache
    def make(place: str) -> Case:
        chosen = choose(request.param, torch.device(place), data)
        some = {**chosen, "batches": [rows[:ROWS] for rows in chosen["batches"][:1]]}
        return Case(some, source=task_steps.RandomLayers(amount(place).width))

    return make


def without_dropout(module: BenchModule) -> BenchModule:
    """Still in training mode, which cuDNN needs for gradients."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        elif isinstance(getattr(part, "dropout", None), float):
            part.dropout = 0.0  # type: ignore[assignment]
    return module


def gradients(case: Case, place: str, precision: str = "32-true") -> tuple[float, dict[str, torch.Tensor]]:
    """The loss of a batch without dropout, and the gradient of every parameter."""
    module = without_dropout(case.module(place))
    loss = loss_of(module, moved(module, case.batches[0]), precision)
    loss.backward()
    return loss.item(), {name: p.grad.cpu() for name, p in module.named_parameters() if p.grad is not None}


def error(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> float:
    """The norm of the difference of all gradients, as a share of their norm."""
    assert found.keys() == expected.keys()
    difference = sum(float((found[name] - gradient).double().square().sum()) for name, gradient in expected.items())
    return (difference / sum(float(gradient.double().square().sum()) for gradient in expected.values())) ** 0.5


@pytest.mark.gpu
def test_loss_and_gradients_are_the_cpus(case_of):
    case = case_of("cuda")
    (loss, found), (expected, gradient) = gradients(case, "cuda"), gradients(case, "cpu")
    assert loss == pytest.approx(expected, rel=1e-4)
    assert error(found, gradient) < 1e-3
    assert all(part.any() for part in gradient.values() if part.numel() > 1000)


@pytest.mark.parametrize("place", PLACES)
def test_a_step_in_bf16_is_finite_and_near_that_in_32_bits(case_of, place):
    case = case_of(place)
    (loss, found), (expected, gradient) = gradients(case, place, "bf16-mixed"), gradients(case, place)
    assert loss == pytest.approx(expected, rel=0.03)
    assert all(part.isfinite().all() for part in found.values())
    assert error(found, gradient) < 0.3


@pytest.mark.parametrize(
    "place, precision",
    [("cpu", "16-mixed"), *(pytest.param("cuda", each, marks=pytest.mark.gpu) for each in ("16-mixed", "bf16-mixed"))],
)
@pytest.mark.filterwarnings("ignore:You defined a .validation_step.", "ignore:.isinstance.treespec")  # Lightning's
def test_an_epoch_in_16_bits(case_of, place, precision):
    """By Lightning, with the task's optimizer and clipping."""
    case, losses = case_of(place), []
    module, clip = case.module(), case.task.clip
    before = {name: value.clone() for name, value in module.state_dict().items()}
    scaler = torch.amp.GradScaler(place, init_scale=256.0) if precision == "16-mixed" else None
    trainer = pl.Trainer(
        accelerator=place, max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, gradient_clip_val=clip.value, limit_val_batches=0,
        gradient_clip_algorithm=None if clip.value is None else clip.by,
        plugins=[MixedPrecision(precision, place, scaler), Environment()],
    )  # fmt: skip
    module.on_train_epoch_end = lambda: losses.extend(module._losses)  # without a dev split
    trainer.fit(module, DataLoader(case.batches * 3, batch_size=None, collate_fn=lambda batch: batch))
    assert len(losses) == 3
    assert torch.stack(losses).isfinite().all()
    assert any(not torch.equal(value.cpu(), before[name]) for name, value in module.state_dict().items())


@pytest.mark.parametrize("place", PLACES)
def test_the_same_two_updates_give_the_same_weights(case_of, place):
    case = case_of(place)
    (losses, weights), (again, same) = (trained(case, place) for _ in range(2))
    assert losses == again
    assert all(torch.equal(weight, same[name]) for name, weight in weights.items())


def trained(case: Case, place: str) -> tuple[list[float], dict[str, torch.Tensor]]:
    """Losses and weights of two updates, with dropout and deterministic algorithms."""
    module = case.module(place)
    optimizer, batch = module.configure_optimizers(), moved(module, case.batches[0])
    with deterministic():
        torch.manual_seed(1)
        losses = [update(module, case.task, optimizer, module(batch).loss).item() for _ in range(2)]
    return losses, module.state_dict()


@contextmanager
def deterministic() -> Iterator[None]:
    """Where torch has such an algorithm."""
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    "place, precision",
    [("cpu", "32-true"), *(pytest.param("cuda", each, marks=pytest.mark.gpu) for each in measure.DTYPES)],
)
def test_a_step_waits_for_a_gpu_no_more_often_than_listed(case_of, place, precision):
    case = case_of(place)
    if case.task.name not in WAITS:
        pytest.skip(f"no waits are listed for {case.task.name}")
    assert steps.waits(case, torch.device(place), precision) == WAITS[case.task.name]


@pytest.mark.gpu
def test_answers_are_the_cpus(case_of):
    case, answers = case_of("cuda"), []
    for each in ("cuda", "cpu"):
        module = case.module(each).eval()
        with torch.no_grad():
            answers.append(module.predict_step(moved(module, case.batches[0])))
    alike(*answers)


def alike(found: Any, expected: Any) -> None:
    """Equal, numbers that are not whole to rounding."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-3, abs=1e-6)
    elif isinstance(expected, list | tuple | dict):
        assert len(found) == len(expected)
        pairs = zip(found.items(), expected.items(), strict=True) if isinstance(expected, dict) else None
        for one, other in pairs or zip(found, expected, strict=True):
            alike(one, other)
    else:
        assert found == expected
