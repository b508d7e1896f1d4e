"""NER at mini over the hidden states of a tiny BERT: recorded, cached, repeated with the same result, reported."""

import json
from pathlib import Path

import pytest

from elmo_bench.commands.compare import Report
from elmo_bench.configuration import composing
from elmo_bench.identity.settings import settings
from elmo_bench.layers.model_folder import sha256
from elmo_bench.running.launch import train
from elmo_bench.system.errors import UserError
from elmo_bench.trained.prediction import predict
from tests import tiny_bert
from tests.fakes import pages_of

pytest.importorskip("transformers")

SIZES = "{lm:[200,100,100],ner:[60,20,20],srl:[1,1,1],coref:[1,1,1],snli:[3,3,3],squad:[1,1,1],sst:[3,3,3],names:300}"


@pytest.fixture
def arguments(tmp_path, monkeypatch):
    """Of a run whose results lie in a folder of the given name; all runs share data and cached layers."""
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    tiny_bert.write(tmp_path / "bert")
    run = ["task=ner", "scale=mini", f"scale.sizes={SIZES}", "task.fit.epochs=2", "trainer=cpu"]
    source = ["bilm=transformers", f"bilm.path={tmp_path}/bert", "bilm.pooling=mean"]
    return lambda results: [*run, *source, f"cache_root={tmp_path}/cache", f"results_root={tmp_path}/{results}"]


@pytest.mark.slow
def test_a_run_over_hidden_states(arguments, tmp_path, call):
    whole = train(composing.compose(arguments("whole")))
    (cached,) = tmp_path.glob("cache/activations/*/*.bin")
    written = cached.stat().st_mtime_ns
    assert whole.bilm.items() >= {"name": "bert", "sha256": sha256(tmp_path / "bert"), "tuned": False}.items()
    assert [len(weights) for weights in whole.layer_weights["input"]] == [3] * 2
    assert whole.settings["bilm"]["pooling"] == "mean"

    again = train(composing.compose(arguments("again")))
    assert list(tmp_path.glob("cache/activations/*/*.bin")) == [cached]  # the first run's layers served the second
    assert cached.stat().st_mtime_ns == written
    assert (again.run, again.metrics, again.history["loss"]) == (whole.run, whole.metrics, whole.history["loss"])

    status, _, err = call(Report, f"results_root={tmp_path}/whole")
    assert status == 0, err
    lines = pages_of(tmp_path / "whole").splitlines()
    (row,) = [line for line in lines if line.startswith("|") and "| bert |" in line]
    assert f"{whole.metrics['test']['f1']:.2f}" in row
    predictions_follow_the_model(tmp_path, tmp_path / "whole" / whole.checkpoint)


def predictions_follow_the_model(folder: Path, checkpoint: Path) -> None:
    """The model's folder has moved; another model is refused."""
    (folder / "in.jsonl").write_text('{"tokens": ["Greck", "sank", "."]}\n')
    moved, other = (folder / "bert").rename(folder / "moved"), tiny_bert.write(folder / "other", seed=1)
    given = str(checkpoint), str(folder / "in.jsonl"), str(folder / "out.jsonl")
    assert predict(*given, **{"bilm.path": str(moved)})  # pyright: ignore[reportArgumentType] == 1
    assert len(json.loads((folder / "out.jsonl").read_text())["prediction"]["tags"]) == 3
    with pytest.raises(UserError, match="other .*: not the weights that the model was trained with"):
        predict(*given, **{"bilm.path": str(other)})  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_another_model_pooling_or_none_at_all_is_another_run(arguments, tmp_path):
    def bilm(*changes):
        return settings(composing.run_config([*arguments("none"), *changes]))["bilm"]

    other = tiny_bert.write(tmp_path / "other", seed=1)
    blocks = [bilm(), bilm("bilm.pooling=first"), bilm(f"bilm.path={other}")]
    assert all(one not in blocks[:i] for i, one in enumerate(blocks))
    with pytest.raises(UserError, match="names no path: give bilm.path=..."):
        train(composing.compose([*arguments("none")[:-3], "bilm.path=null", *arguments("none")[-2:]]))
    with pytest.raises(UserError, match="no such file: the path of bilm=folder"):
        train(composing.compose([*arguments("none"), "bilm.path=/no/such/folder"]))
