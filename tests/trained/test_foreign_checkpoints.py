"""A checkpoint of a stranger: no code in it runs, whether it is pickled or named for Hydra to call."""

from __future__ import annotations

import os

import pytest
import torch
from omegaconf import OmegaConf

from elmo_bench.configuration import pages
from elmo_bench.running import unfinished
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.integrity import load_checkpoint
from elmo_bench.trained.checkpoint import load
from elmo_bench.trained.prediction import predict

CALL = {"_target_": "os.mkdir", "path": "made"}


class Trap:
    """Unpickling it makes a folder."""

    def __reduce__(self):
        return os.mkdir, ("made",)


@pytest.fixture
def save(tmp_path, monkeypatch):
    """Writes the checkpoint of a baseline, changed; returns its path."""
    monkeypatch.chdir(tmp_path)

    def write(key, value):
        config = pages.compose(["task=ner", "arm=baseline"])
        OmegaConf.update(config, key, value, force_add=True)
        hyper_parameters = {"config": OmegaConf.to_container(config, resolve=True)}
        saved = {"hyper_parameters": hyper_parameters, "vocabularies": {}, "state_dict": {}, "bilm_sha256": None}
        torch.save(saved, "run.ckpt")
        return "run.ckpt"

    return write


@pytest.mark.parametrize(
    "read", [load, lambda path: unfinished.best(path.parent, None), lambda path: load_checkpoint(path, "train again")]
)
def test_no_pickled_code_runs(tmp_path, monkeypatch, read):
    monkeypatch.chdir(tmp_path)
    torch.save({"hyper_parameters": {}, "state_dict": {"head": Trap()}}, "best.ckpt")
    with pytest.raises(UserError, match=r"best\.ckpt: .*Weights only load failed"):
        read(tmp_path / "best.ckpt")
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("task.reader", CALL), ("task.head.inner", [CALL]), ("task.optimizer._target_", "torch.optim.os.mkdir"),
        ("bilm._target_", "os.mkdir"), ("scale.maker", "this.Poem"), ("task.metric._target_", ["os.mkdir"]),
    ],
)  # fmt: skip
def test_code_that_no_page_names_is_not_called(save, tmp_path, key, value):
    path = save(key, value)
    (tmp_path / "in.jsonl").write_text('{"text": "Ida sang ."}')
    with pytest.raises(UserError, match="no page of conf/ names this code"):
        predict(path, "in.jsonl", "out.jsonl")
    assert sorted(each.name for each in tmp_path.iterdir()) == ["in.jsonl", "run.ckpt"]


def test_what_pages_name_and_people_train_with_is_known(save):
    load(save("task.optimizer._target_", "torch.optim.SGD"))
