"""Averaged weights (an exponential moving average): against sums by hand, and wherever a run uses its weights."""

import pytest
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import EMAWeightAveraging

from elmo_bench.running.callbacks import LIGHTNINGS, averaging
from elmo_bench.running.module import BenchModule

pytestmark = pytest.mark.slow

DECAY = 0.9
AVERAGE = f"task.average={{_target_:pytorch_lightning.callbacks.EMAWeightAveraging,decay:{DECAY}}}"


@pytest.fixture
def watched(monkeypatch):
    """The weights after every update, and those that every validation sees at its first batch."""
    seen: dict[str, list[dict[str, torch.Tensor]]] = {"updates": [], "scored": []}

    def copied(module):
        return {name: value.detach().clone() for name, value in module.state_dict().items()}

    end, step = BenchModule.on_train_batch_end, BenchModule.validation_step

    def after_update(self, *rest):
        seen["updates"].append(copied(self))
        return end(self, *rest)

    def scoring(self, batch, index):
        if index == 0:
            seen["scored"].append(copied(self))
        return step(self, batch, index)

    monkeypatch.setattr(BenchModule, "on_train_batch_end", after_update)
    monkeypatch.setattr(BenchModule, "validation_step", scoring)
    monkeypatch.setattr(BenchModule, "test_step", scoring)
    return seen


def averages(updates: list[dict[str, torch.Tensor]]) -> list[dict[str, torch.Tensor]]:
    """After every update: the weights after the first, then nine parts of the average and one of the new weights."""
    found = [{name: value.double() for name, value in updates[0].items()}]
    for weights in updates[1:]:
        found.append({name: DECAY * found[-1][name] + (1 - DECAY) * value.double() for name, value in weights.items()})
    return found


def same(one, other, exactly: bool = False) -> None:
    assert set(one) == set(other)
    for name in one:
        rtol, atol = (0, 0) if exactly else (1e-5, 1e-6)
        torch.testing.assert_close(one[name].double(), other[name].double(), rtol=rtol, atol=atol)


@pytest.mark.usefixtures("stand_in")
def test_averages_are_scored_kept_tested_and_recorded(bench, watched):
    record = bench.train("elmo.where=both", AVERAGE, "task.fit.epochs=3", "task.optimizer.lr=0.05")
    expected = averages(watched["updates"])  # five updates an epoch
    assert len(expected) == 15
    _, *epochs, tested = watched["scored"]  # the first before training, for the metric
    for epoch, scored in enumerate(epochs):
        same(scored, expected[5 * epoch + 4])
        with pytest.raises(AssertionError):
            same(scored, watched["updates"][5 * epoch + 4])  # not the trained weights
    saved = torch.load(bench.results / record.checkpoint, weights_only=True)
    same(saved["state_dict"], epochs[record.epoch - 1], exactly=True)
    same(tested, saved["state_dict"], exactly=True)
    for place in ("input", "output"):  # the record's layer weights are those of the model that it scores
        w = epochs[-1][f"representation.elmo.mixes.{place}.w"]
        assert record.layer_weights[place][-1] == pytest.approx(w.softmax(0).tolist(), abs=1e-5)


def test_averages_in_a_few_operations_are_lightnings_bit_for_bit():
    torch.manual_seed(0)
    model = pl.LightningModule()
    model.layers = torch.nn.Sequential(torch.nn.Linear(30, 20), torch.nn.BatchNorm1d(20))
    found = []
    ours = averaging({"_target_": LIGHTNINGS, "decay": DECAY}, "cpu")
    for callback in (EMAWeightAveraging("cpu", decay=DECAY), ours):
        callback.setup(None, model, "fit")  # type: ignore[arg-type]
        average = callback._average_model  # type: ignore[attr-defined]
        for seed in range(5):
            torch.manual_seed(seed)
            for parameter in model.parameters():
                torch.nn.init.normal_(parameter)
            average.update_parameters(model)
        found.append(average.state_dict())
    torch.testing.assert_close(*found, rtol=0, atol=0)
    assert found[1]["n_averaged"] == 5
