"""Hydra as it comes: its launchers and sweepers, and TAB in a shell."""

import os
import shutil
import subprocess
import sys

import pytest
from omegaconf import OmegaConf

from elmo_bench.records import store
from elmo_bench.system import places
from tests.conftest import PATIENCE, clean_environment

pytestmark = pytest.mark.slow
SHORT = ("arm=baseline", "task.fit.epochs=1")


@pytest.mark.parametrize("asked", [
    ("launcher=joblib",),
    ("-m", "launcher=joblib", "hydra.launcher.n_jobs=1", "seed=1,2"),
], ids=["one run", "one process"])  # fmt: skip
def test_joblib_does_not_end_the_process_that_the_user_started(bench, asked):
    pytest.importorskip("hydra_plugins.hydra_joblib_launcher")
    seeds = 2 if "-m" in asked else 1
    done = bench.command("train", *asked, *bench.overrides(*SHORT))
    assert done.returncode == 0, done.stderr
    assert len(store.read_all(bench.results)) == seeds


def test_optuna_runs_its_trials_and_says_which_is_the_best(bench):
    pytest.importorskip("hydra_plugins.hydra_optuna_sweeper")
    asked = ("-m", "sweeper=optuna", "hydra.sweeper.n_trials=2", "task.head.dropout=interval(0,0.5)")
    done = bench.command("train", *asked, *bench.overrides(*SHORT))
    assert done.returncode == 0, done.stderr
    found = store.read_all(bench.results)
    assert len({record.config["task"]["head"]["dropout"] for record in found}) == 2
    told = OmegaConf.load(bench.results / "work/hydra/optimization_results.yaml")
    scores = {record.config["task"]["head"]["dropout"]: record.metrics["dev"]["accuracy"] for record in found}
    assert told.best_value == pytest.approx(max(scores.values()))
    assert scores[told.best_params["task.head.dropout"]] == max(scores.values())


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash here")
def test_tab_completes_commands_pages_and_keys(tmp_path, file):
    program = file(f'#!/bin/sh\nexec {sys.executable} -P -m elmo_bench "$@"\n', "elmo-bench")
    program.chmod(0o755)
    asked = {"elmo-bench pre": {"predict", "prepare", "pretrain"}, "elmo-bench train task=s": {"task=snli", "task=srl"},
             "elmo-bench predict che": {"checkpoint="}, "elmo-bench train elmo.wh": {"elmo.where="}}  # fmt: skip
    script = "".join(
        f'COMP_LINE="{line}"; COMP_CWORD={len(line.split()) - 1}; COMP_POINT={len(line)}; COMPREPLY=(); '
        f'hydra_bash_completion; echo "${{COMPREPLY[@]}}";\n'
        for line in asked
    )
    install = 'eval "$(elmo-bench train -sc install=bash)"'
    environment = clean_environment() | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", f"{install}\n{script}"], cwd=places.ROOT, env=environment, capture_output=True,
        text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.stderr == ""
    for wanted, line in zip(asked.values(), done.stdout.splitlines(), strict=True):
        assert wanted <= {*line.split()}, line
