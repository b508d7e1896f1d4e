"""Configurations of runs that share their choice of files are those that Hydra composes one by one."""

import pytest
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from elmo_bench.configuration import composing, messages
from elmo_bench.configuration.composing import settled
from elmo_bench.records.settings import portable
from elmo_bench.sweeps.request import points
from elmo_bench.system import places
from tests.fakes import cases

pytestmark = pytest.mark.slow

SWEEPS = sorted(path.stem for path in (places.CONF / "sweep").glob("*.yaml"))
KINDS = [
    "task=srl scale=open data_root=x seed=3 seed=4".split(),
    ["arm=baseline", "elmo={where:both,lambda:0.5}", "+task.head={loss:sum}", "trainer=gpu", "trainer.devices=2"],
    "~task.data.dev task.head.hidden=[3,4] elmo.layers=last results_root=${cache_root}/x".split(),
    ["+sweep=table2", "bilm=custom", "bilm.name=mine", "bilm.options=a b", "task.data.train=null"],
    ["hydra.job.chdir=true", "hydra.mode=RUN", "force=true"],
]


def same(one, other):
    for resolve in (False, True):
        ours, theirs = (OmegaConf.to_container(cfg, resolve=resolve) for cfg in (one, other))
        assert ours == theirs
    assert list(one) == list(other)
    for select in ("", "elmo", "task", "task.head", "trainer"):
        ours, theirs = (OmegaConf.select(cfg, select) if select else cfg for cfg in (one, other))
        for ask in (OmegaConf.is_struct, OmegaConf.is_readonly, OmegaConf.get_type):
            assert ask(ours) == ask(theirs)


@pytest.mark.parametrize("sweep", SWEEPS)
def test_a_point_of_every_sweep_is_as_hydra_composes_it(sweep):
    """The last, which differs most: Hydra takes a quarter of a second for each."""
    run = [f"+sweep={sweep}", "data_root=x", *points(sweep, seeds=(1,))[-1]]
    same(composing.compose(run), settled(composing.by_hydra(run), run))


def test_every_kind_of_override():
    for run in KINDS:
        same(composing.compose(run), settled(composing.by_hydra(run), run))


def test_runs_share_nothing_but_their_pages():
    one, other = composing.compose(["seed=1"]), composing.compose(["seed=2"])
    one.task.head.hidden = [7]
    assert other.task.head.hidden != [7]
    assert (one.seed, other.seed) == (1, 2)


@cases("""
    wrong
    sed=1
    task=nerr
    seed=1,2
    task.head.x=1
    +seed=2
    ~none
    tsk@x=1
    a=[
    vectors=3
""")
def test_what_hydra_refuses_is_refused_in_the_same_words(wrong):
    said = []
    for way in (composing.by_hydra, composing.compose):
        with pytest.raises((HydraException, OmegaConfBaseException, ValueError)) as error:
            way([wrong])
        said.append((type(error.value), str(error.value), messages.explain(error.value)))
    assert said[0] == said[1]


def test_pages_are_composed_once_for_all_points_and_again_when_one_changes(bench, monkeypatch):
    composed, by_hydra = [], composing.by_hydra
    monkeypatch.setattr(composing, "by_hydra", lambda *asked: composed.append(asked) or by_hydra(*asked))
    page = bench.conf / "task" / "toy.yaml"
    page.write_text(page.read_text() + "\n")  # no other test has this file
    scales = ("open", "mini")
    runs = [["task=toy", f"scale={scale}", f"seed={seed}", "elmo.lambda=0.1"] for scale in scales for seed in range(20)]
    assert [composing.compose(run).seed for run in runs] == [*range(20), *range(20)]
    assert composed == [(("task=toy", f"scale={scale}"), "train") for scale in scales]
    page.write_text(page.read_text().replace("monitor: accuracy", "monitor: loss"))
    assert composing.compose(runs[0]).task.monitor == "loss"


def test_paths_below_a_relative_root_stay_references_to_it(tmp_path, monkeypatch):
    """A record names them by the root, wherever the command was typed."""
    (tmp_path / "data" / "srl_ewt").mkdir(parents=True)
    (tmp_path / "data" / "srl_ewt" / "test.conll").touch()
    monkeypatch.chdir(tmp_path)
    cfg = composing.compose(["task=srl", "scale=open", "data_root=data"])
    assert cfg.task.data.test == f"{tmp_path}/data/srl_ewt/test.conll"
    assert portable(cfg)["task"]["data"]["test"] == "<data_root>/srl_ewt/test.conll"
