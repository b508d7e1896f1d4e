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
from elmo_bench.system.storage.integrity import load_checkpoint
from elmo_bench.text.vocabulary import Vocabulary
from elmo_bench.trained.heads import load
from tests.fakes import cases, for_each, refuses

NAMED = "no file in conf/ names this code there"
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


def one_line(done: tuple[int, str]) -> str:
    """What is said where nothing is predicted."""
    status, err = done
    assert (status, err.count("\n"), err[:7]) == (2, 1, "error: "), err
    return err


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
    with refuses(r"best\.ckpt: .*\(it contains more than .*: posix\.mkdir, which is not run\)") as told:
        read(tmp_path / "best.ckpt")
    assert "weights_only" not in str(told.value)
    assert not (tmp_path / "made").exists()


@cases("""
    key                         | value
    task.reader                 | {"_target_": "os.mkdir", "path": "made"}
    task.head.inner             | [{"_target_": "os.mkdir", "path": "made"}]
    task.chars._target_         | ["os.mkdir"]
    task.optimizer._target_     | torch.optim.os.mkdir
    scale.maker                 | this.Poem
    task.head.inner._target_    | pytorch_lightning.callbacks.ModelCheckpoint
    task.reader._target_        | elmo_bench.mini.MiniData
    bilm._target_               | tests.toy.ToyReader
""")
def test_code_that_no_file_names_there_is_not_called(predicted, whole, key, value):
    is_data(predicted, whole, key, value, NAMED)


@cases("""
    key             | value
    task.head.hidden | ${oc.create:{_target_: os.mkdir, path: made}}
    task.paper      | {"a": ["${oc.env:HOME}"]}
    bilm.name       | ${page:bilm,../task/ner,task}
    task.text       | {"${root:x}": 1}
""")
def test_nothing_is_evaluated(predicted, whole, key, value):
    is_data(predicted, whole, key, value, "${ would be evaluated")


def test_names_are_texts(predicted, whole):
    is_data(predicted, whole, "task.paper", {1.5: 2}, "plain values under names")


def is_data(predicted, whole, key, value, why):
    value = OmegaConf.to_container(OmegaConf.create({"v": value}))["v"]  # type: ignore[index, call-overload]
    err = one_line(predicted(configured(whole, key, value)))
    assert why in err
    assert key.rpartition(".")[0] in err


@pytest.mark.parametrize("value", ["a" * 9, None])
def test_lists_in_lists_are_bounded_before_they_are_read(predicted, whole, value):
    nested: list = [value]
    for _ in range(40):
        nested = [nested] * (1 if value else 10)
    whole["hyper_parameters"]["config"]["task"]["paper"], kept = nested, None
    done = predicted(whole)
    whole["hyper_parameters"]["config"]["task"]["paper"] = kept
    assert "more than 10000 values, or more than 30 levels" in one_line(done)


def test_code_of_ones_own_is_run_for_the_task_that_is_typed(bench, tmp_path):
    config = OmegaConf.to_container(bench.compose("arm=baseline"), resolve=True)
    saved = {"hyper_parameters": {"config": config}, "vocabularies": {}, "state_dict": {}, "bilm_sha256": None}
    torch.save(saved, tmp_path / "run.ckpt")
    load(str(tmp_path / "run.ckpt"), task="toy")
    with refuses(NAMED):
        load(str(tmp_path / "run.ckpt"))
    with refuses(NAMED):
        load(str(tmp_path / "run.ckpt"), task="ner")


@for_each("optimizer", "torch.optim.SGD torch.optim.Adam")
def test_what_people_train_with_is_known_and_not_built(predicted, whole, optimizer):
    status, err = predicted(configured(whole, "task.optimizer", {"_target_": optimizer, "lr": "high"}))
    assert status == 0, err


SHAPES = {
    "a list": lambda whole: [1],
    "words twice": lambda whole: {**whole, "vocabularies": {**whole["vocabularies"], **TWICE}},
    "another weight": lambda whole: {**whole, "state_dict": {**whole["state_dict"], "a": torch.zeros(1)}},
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
    one_line(predicted(changed(whole)))


@cases("""
    key               | value
    hyper_parameters  | null
    vocabularies      | null
    vocabularies      | {}
    state_dict        | {"a": 1}
    bilm_sha256       | 3
    task              | ner
    task.reader       | null
    trainer.precision | double
""")
def test_so_is_another_part_and_another_value_of_the_configuration(predicted, whole, key, value):
    one_line(predicted({**whole, key: value} if key in whole else configured(whole, key, value)))


def test_predictions_that_are_not_finite_are_not_written(predicted, whole, monkeypatch):
    from elmo_bench.tagging.head import TaggingHead

    monkeypatch.setattr(
        TaggingHead, "describe", lambda self, found, *_: [{"probability": math.nan}] * len(found), raising=False
    )
    assert "not finite, so nothing is written" in one_line(predicted(whole))
