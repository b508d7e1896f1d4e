"""The command that does all that needs a GPU, here on a CPU."""

import json
from pathlib import Path

import pytest
import torch

from elmo_bench.speed.steps import Case
from tests.command import anew
from tests.conftest import ROOT, clean_environment
from tests.gpu import __main__ as gpu
from tests.gpu import measure, part, run, standin, steps, tables
from tests.gpu.run import Work

pytestmark = pytest.mark.slow

CPU = torch.device("cpu")
# What the machines with GPUs that we know of do not have.
MISSING = "wandb", "gensim", "submitit", "wandb_workspaces"


def row(task: str, arm: str, precision: str, hours: float) -> dict:
    return {
        "task": task, "arm": arm, "precision": precision, "hours": hours, "rows_a_step": 8, "seconds_a_step": 0.5,
        "share_of_bound": 0.1, "waits_a_step": 2, "peak_mib": 100,
    }  # fmt: skip


def test_the_hours_of_a_run_are_those_of_all_its_epochs():
    chosen = {"task": "ner", "scale": "paper", "rows": {"train": 3, "dev": 1}}
    case = Case(chosen)
    found = steps.hours(case, 0.5, 0.25)
    assert (found["train_rows"], found["dev_rows"]) == (14041, 3250)
    assert found["hours"] == pytest.approx(75 * (14041 * 0.5 + 3250 * 0.25) / 3600)


def test_the_stand_in_counts_what_a_gpu_would_be_waited_for():
    place = standin.DEVICE

    def waits(work) -> dict[str, int]:
        with standin.StandIn() as counted:
            x = torch.arange(3.0).pin_memory().to(place, non_blocking=True)
            assert (x.device, x.is_cuda, (x + 1).device) == (place, True, place)
            work(x)
        return dict(+counted.waits)

    assert waits(lambda x: x[x > 0].sum().item()) == {"a mask as index": 1, "item": 1}
    assert waits(lambda x: bool(x.sum() > 0) and x.tolist()) == {"__bool__": 1, "tolist": 1}
    assert waits(lambda x: torch.ones(3).to(place) + torch.tensor([1.0], device=place)) == {"copy to the device": 2}
    assert waits(lambda x: torch.ones(3).pin_memory().to(place)) == {"copy to the device": 1}
    assert waits(lambda x: torch.ones(3).to(place, non_blocking=True)) == {"copy to the device": 1}
    assert waits(lambda x: x.cpu().tolist()) == {"cpu": 1}
    assert waits(lambda x: torch.zeros(3, device=place) + x.new_ones(3) + torch.arange(3, device=place)) == {}
    assert waits(lambda x: x.nonzero().repeat_interleave(torch.ones(2).long().to(place))) == {
        "nonzero": 1, "copy to the device": 1, "repeat_interleave": 1,
    }  # fmt: skip


def test_every_part_has_a_limit_and_the_names_of_tasks_that_offer_the_scale():
    for kind in ("cpu", "cuda"):
        names = run.parts(kind)
        assert {name.partition(".")[0] for name in names} == set(run.LIMITS)
        assert "steps.ner" in names


@pytest.fixture
def work(monkeypatch) -> Work:
    """Two parts that are not really measured; `done` counts how often each is."""
    monkeypatch.setattr(run, "_measured", lambda work, part, limit: {"done": work.data.append(part)})
    return Work(CPU, None, [], ["encode", "steps.ner"])


def test_what_is_done_is_kept_and_what_failed_is_done_again(work, tmp_path, monkeypatch):
    file, told = tmp_path / "gpu.json", []
    monkeypatch.setattr(Work, "key", "same")
    run.run(work._replace(parts=["encode"]), file, 60, told.append)
    found = run.run(work, file, 60, told.append)
    assert work.data == ["encode", "steps.ner"]
    assert [line.partition(":")[0] for line in told] == ["encode", "encode", "steps.ner"]
    assert json.loads(file.read_text()) == found
    found["parts"]["encode"] = {"seconds": 1, "failed": "a reason"}
    file.write_text(json.dumps(found))
    run.run(work, file, 60, told.append)
    assert work.data == ["encode", "steps.ner", "encode"]
    monkeypatch.setattr(Work, "key", "another")
    run.run(work, file, 60, told.append)
    assert len(work.data) == 5


def test_parts_for_which_no_time_is_left_are_left(work, tmp_path):
    told = []
    found = run.run(work, tmp_path / "gpu.json", 0, told.append)
    assert (found["parts"], work.data) == ({}, [])
    assert told == ["encode: no time left", "steps.ner: no time left"]


def test_a_part_that_fails_says_why(tmp_path, forked):
    work = Work(CPU, tmp_path / "nowhere", [], ["steps.ner"])
    found = run.run(work, tmp_path / "gpu.json", 120, lambda line: None)
    assert "nowhere" in found["parts"]["steps.ner"]["failed"]


def test_a_part_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    monkeypatch.setitem(run.LIMITS, "encode", 0.4 / run.SLOWER)
    found = run.run(Work(CPU, None, [], ["encode"]), tmp_path / "gpu.json", 120, lambda line: None)
    assert found["parts"]["encode"]["failed"] == "not done after 0 s"


def test_the_key_changes_with_rows_and_data(tmp_path, file):
    work = Work(CPU, tmp_path, ["scale=mini"], [])
    before = work.key
    assert before == work.key != work._replace(data=["scale=open"]).key
    file("{}", "ner.json")
    assert work.key != before


def test_outcomes_of_tests_are_read_from_their_report(tmp_path):
    (tmp_path / "report.xml").write_text(
        '<testsuites><testsuite><testcase classname="a" name="one"/><testcase classname="a" name="two">'
        '<failure message="assert 1 == 2&#10;more">...</failure></testcase><testcase classname="a" name="three">'
        '<skipped message="needs 2 NVIDIA GPUs"/></testcase></testsuite></testsuites>'
    )
    found = run.outcome(tmp_path / "report.xml")
    assert (found["passed"], found["skipped"], found["reasons"]) == (1, 1, ["needs 2 NVIDIA GPUs"])
    assert found["failed"] == "1 of 3 tests"
    assert found["failures"] == {"a::two": "assert 1 == 2"}


def test_the_page_has_a_table_of_each_kind():
    roof = dict.fromkeys(measure.DTYPES, 5e13)
    taken = [row("ner", "elmo", *each) for each in zip(measure.DTYPES, (2.0, 1.0), strict=True)]
    pretraining = {
        "page": "small", "dtype": "bfloat16", "tokens_a_second": 5, "share_of_bound": 0.5, "peak_mib": 1,
        "hours_of_ten_epochs": 7,
    }  # fmt: skip
    encode = {"token_budget": 2048, "tokens_a_second": 10, "share_of_bound": 0.1, "peak_mib": 2}
    parts = {
        "tests": {"seconds": 3, "passed": 4, "skipped": 1, "failed": "1 of 6 tests", "failures": {"a::b": "why"}},
        "encode": {"seconds": 2, "device": "H", "roof": roof, "encode": [encode]},
        "steps.ner": {"seconds": 2, "device": "H", "roof": roof, "steps": taken},
        "steps.srl": {"seconds": 2, "steps": [row("srl", "baseline", "32-true", 3.0)]},
        "pretraining.small": {"seconds": 2, "device": "H", "roof": roof, "pretraining": pretraining},
    }
    assert len(tables.of_device(parts)) == 5
    page = run.markdown({
        "machine": {"cpu": "C", "gpu": "H", "accelerator": "cuda"}, "versions": {"torch": "2"}, "commit": None,
        "dirty": None, "parts": parts,
    })  # fmt: skip
    assert "`a::b`: why" in page
    assert "| ner | elmo | 32-true | 8.0 | 500.0 | 10.0% | 2 | 100 | 2.00 |" in page
    assert "| 32-true | 25.0 |\n| bf16-mixed | 5.0 |" in page  # five seeds of two hours and three, and of one


def test_a_part_needs_none_of_the_packages_that_such_a_machine_may_lack(data, file):
    call = file(json.dumps(["tests.gpu.part", "measured", ["steps.ner", "cpu", None, data]]), "call.json")
    done = anew(ROOT, "elmo_bench.speed.measuring", [str(call)], clean_environment(), MISSING)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])["steps"]
    assert [(each["arm"], each["precision"]) for each in found] == [
        (arm, precision) for arm in ("baseline", "elmo") for precision in measure.DTYPES
    ]
    assert all(each["seconds_a_step"] > 0 and each["share_of_bound"] > 0 for each in found)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_one_line_says_so(tmp_path):
    done = anew(ROOT, "tests.gpu", [f"results_root={tmp_path}"], clean_environment())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: device=cuda: there is no GPU here")
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_rows_are_chosen_for_a_machine_without_data(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("elmo_bench.speed.steps.tasks", lambda scale: ["ner"])
    gpu.choose(tmp_path / "rows", data)
    chosen = json.loads(Path(tmp_path, "rows", "ner.json").read_text())
    assert (chosen["task"], chosen["scale"], len(chosen["batches"])) == ("ner", "paper", 7)
    assert "ner" in capsys.readouterr().out
    assert [name for name in part.names("cpu") if name.startswith("steps.")] == ["steps.ner"]
