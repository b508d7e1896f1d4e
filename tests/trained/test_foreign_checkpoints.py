"""A checkpoint of a stranger: nothing in it runs, whether it is pickled, named for Hydra to call, or put in `${}`."""

import math
import os

import pytest
import torch
from omegaconf import OmegaConf

from elmo_bench.commands.use import Predict
from elmo_bench.configuration import composing, schema
from elmo_bench.running import unfinished
from elmo_bench.running.build import build
from elmo_bench.system.errors import UserError
from elmo_bench.system.storage.integrity import load_checkpoint
from elmo_bench.text.vocabulary import Vocabulary
from elmo_bench.trained.heads import load

CALL = {"_target_": "os.mkdir", "path": "made"}
RESOLVED = "${oc.create:{_target_: os.mkdir, path: made}}"
NAMED, EVALUATED = "no file in conf/ names this code there", "${ would be evaluated"
TWICE = {"words": {"items": ["a", "a"], "special": True}}


class Trap:
    """Unpickling it makes a folder."""

    def __reduce__(self):
        return os.mkdir, ("made",)


@pytest.fixture(scope="module")
def whole():
    """What the checkpoint of a small baseline holds that was not trained."""
    sizes = ["task.head.hidden=[4,4]", "task.chars.size=4", "task.words.size=4"]
    config = composing.compose(["task=ner", "arm=baseline", *sizes])
    plain = OmegaConf.to_container(config, resolve=True)
    parts = {
        "words": Vocabulary(["sang"]),
        "chars": Vocabulary("s"),
        "labels": Vocabulary(["O", "S-PER"], special=False),
    }
    reader = type("Reader", (), {"vocabularies": parts})
    run = schema.from_plain(plain)  # type: ignore[arg-type]
    weights = build(run, reader, None).state_dict()  # type: ignore[arg-type]
    vocabularies = {name: each.state() for name, each in parts.items()}
    return {
        "hyper_parameters": {"config": plain},
        "vocabularies": vocabularies,
        "state_dict": dict(weights),
        "bilm_sha256": None,
    }


@pytest.fixture
def predicted(whole, tmp_path, monkeypatch, call):
    """Predicts with the checkpoint, changed; returns exit status and stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text('{"text": "Ida sang ."}')

    def act(changed, *arguments):
        torch.save(changed, "run.ckpt")
        status, _, err = call(Predict, "checkpoint=run.ckpt", "input=in.jsonl", "output=out.jsonl", *arguments)
        assert (tmp_path / "out.jsonl").exists() == (status == 0)
        assert not (tmp_path / "made").exists()
        return status, err

    return act


def configured(whole, key, value):
    """The checkpoint with another value in its configuration."""
    config = OmegaConf.create(whole["hyper_parameters"]["config"])
    OmegaConf.update(config, key, value, force_add=True)
    return {**whole, "hyper_parameters": {"config": OmegaConf.to_container(config)}}


@pytest.mark.parametrize(
    "read", [load, lambda path: unfinished.best(path.parent, None), lambda path: load_checkpoint(path, "train again")]
)
def test_no_pickled_code_runs(tmp_path, monkeypatch, read):
    monkeypatch.chdir(tmp_path)
    torch.save({"hyper_parameters": {}, "state_dict": {"head": Trap()}}, "best.ckpt")
    with pytest.raises(
        UserError, match=r"best\.ckpt: .*\(it holds more than .*: posix\.mkdir, which is not run\)"
    ) as told:
        read(tmp_path / "best.ckpt")
    assert "weights_only" not in str(told.value)
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("key", "value", "why"),
    [
        ("task.reader", CALL, NAMED), ("task.head.inner", [CALL], NAMED), ("task.chars._target_", ["os.mkdir"], NAMED),
        ("task.optimizer._target_", "torch.optim.os.mkdir", NAMED), ("scale.maker", "this.Poem", NAMED),
        ("task.head.inner._target_", "pytorch_lightning.callbacks.ModelCheckpoint", NAMED),
        ("task.reader._target_", "elmo_bench.mini.MiniData", NAMED),  # a file names it, but not there
        ("bilm._target_", "tests.toy.ToyReader", NAMED),
        ("task.head.hidden", RESOLVED, EVALUATED), ("task.paper", {"a": ["${oc.env:HOME}"]}, EVALUATED),
        ("bilm.name", "${page:bilm,../task/ner,task}", EVALUATED), ("task.text", {"${root:x}": 1}, EVALUATED),
        ("task.paper", {1.5: 2}, "plain values under names"),
    ],
)  # fmt: skip
def test_a_configuration_is_data(predicted, whole, key, value, why):
    value = OmegaConf.to_container(OmegaConf.create({"v": value}))["v"]  # type: ignore[index, call-overload]
    status, err = predicted(configured(whole, key, value))
    assert (status, err.count("\n")) == (2, 1)
    assert why in err
    assert key.rpartition(".")[0] in err


@pytest.mark.parametrize("value", ["a" * 9, None])
def test_lists_in_lists_are_bounded_before_they_are_read(predicted, whole, value):
    nested: list = [value]
    for _ in range(40):
        nested = [nested] * (1 if value else 10)
    whole["hyper_parameters"]["config"]["task"]["paper"], kept = nested, None
    status, err = predicted(whole)
    whole["hyper_parameters"]["config"]["task"]["paper"] = kept
    assert (status, err.count("\n")) == (2, 1)
    assert "more than 10000 values, or more than 30 levels" in err


def test_code_of_ones_own_is_run_for_the_task_that_is_typed(bench, tmp_path):
    config = OmegaConf.to_container(bench.compose("arm=baseline"), resolve=True)
    saved = {"hyper_parameters": {"config": config}, "vocabularies": {}, "state_dict": {}, "bilm_sha256": None}
    torch.save(saved, tmp_path / "run.ckpt")
    load(str(tmp_path / "run.ckpt"), task="toy")
    with pytest.raises(UserError, match=NAMED):
        load(str(tmp_path / "run.ckpt"))
    with pytest.raises(UserError, match=NAMED):
        load(str(tmp_path / "run.ckpt"), task="ner")


@pytest.mark.parametrize("optimizer", ["torch.optim.SGD", "torch.optim.Adam"])
def test_what_people_train_with_is_known_and_not_built(predicted, whole, optimizer):
    status, err = predicted(configured(whole, "task.optimizer", {"_target_": optimizer, "lr": "high"}))
    assert status == 0, err


SHAPES = {
    "a list": lambda whole: [1],
    "no configuration": lambda whole: {**whole, "hyper_parameters": None},
    "a task that is a text": lambda whole: configured(whole, "task", "ner"),
    "a task without a reader": lambda whole: configured(whole, "task.reader", None),
    "a precision": lambda whole: configured(whole, "trainer.precision", "double"),
    "no vocabularies": lambda whole: {**whole, "vocabularies": None},
    "words twice": lambda whole: {**whole, "vocabularies": {**whole["vocabularies"], **TWICE}},
    "no vocabulary": lambda whole: {**whole, "vocabularies": {}},
    "a weight that is a number": lambda whole: {**whole, "state_dict": {"a": 1}},
    "another weight": lambda whole: {**whole, "state_dict": {**whole["state_dict"], "a": torch.zeros(1)}},
    "a digest": lambda whole: {**whole, "bilm_sha256": 3},
    **{
        f"weights as {kind}": lambda whole, kind=kind: {
            **whole, "state_dict": {name: each.to(kind) for name, each in whole["state_dict"].items()}
        }
        for kind in (torch.int32, torch.complex64)
    },
    **{
        f"a weight of {value}": lambda whole, value=value: {
            **whole, "state_dict": {name: each.double().fill_(value) for name, each in whole["state_dict"].items()}
        }
        for value in (math.nan, -math.inf, 1e39)
    },
}  # fmt: skip


def test_the_checkpoint_itself_predicts(predicted, whole):
    assert predicted(whole) == (0, "1 prediction in out.jsonl\n")


@pytest.mark.parametrize("changed", SHAPES.values(), ids=SHAPES)
def test_another_shape_is_one_line(predicted, whole, changed):
    status, err = predicted(changed(whole))
    assert (status, err.count("\n")) == (2, 1), err
    assert err.startswith("error: ")


def test_predictions_that_are_not_finite_are_not_written(predicted, whole, monkeypatch):
    from elmo_bench.tagging.head import TaggingHead

    monkeypatch.setattr(
        TaggingHead, "describe", lambda self, found, *_: [{"probability": math.nan}] * len(found), raising=False
    )
    status, err = predicted(whole)
    assert (status, err.count("\n")) == (2, 1)
    assert "not finite, so nothing is written" in err
