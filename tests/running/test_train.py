"""Runs from configuration to record: skipped, resumed, forced, locked, selected by dev, the same every time."""

import csv
import json
import signal
from contextlib import contextmanager
from types import SimpleNamespace

import pytest
import torch
from pytorch_lightning.plugins.precision import MixedPrecision
from pytorch_lightning.utilities.enums import GradClipAlgorithmType

from elmo_bench.records import items
from elmo_bench.records.store import read
from elmo_bench.running import launch, run
from elmo_bench.running.module import BenchModule
from tests import toy
from tests.fakes import cases, refuses

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("stand_in")]

TIMES = ("seconds", "device_seconds", "preparing", "tokens_per_second", "peak_memory_mib", "finished", "checkpoint",
         "machine", "commit", "dirty")  # fmt: skip
EVERYTHING = (  # all that a checkpoint has to bring back: both places, biLM, averages, schedule, early stopping
    "elmo.where=both",
    "elmo.finetune=joint",
    "task.average={_target_:pytorch_lightning.callbacks.EMAWeightAveraging,decay:0.9}",
    "task.schedule={scheduler:{_target_:torch.optim.lr_scheduler.ReduceLROnPlateau,_partial_:true,mode:max,patience:0},"
    "interval:epoch}",
    "task.fit.patience=3",
)


def result(record):
    """A record without what may differ between two identical runs."""
    kept = json.loads(json.dumps({key: value for key, value in record.plain().items() if key not in TIMES}))
    for column in ("seconds", "training_seconds", "device_seconds"):
        del kept["history"][column]
    return kept


def test_a_run_leaves_a_whole_record(bench):
    record = bench.train("elmo.where=both", "seed=3")
    path = bench.results / "runs" / "open" / "toy" / f"{record.run}.json"
    assert read(path).plain() == json.loads(json.dumps(record.plain()))
    assert (record.task, record.scale, record.seed) == ("toy", "open", 3)
    assert record.config["task"]["elmo"]["where"] == "both"
    assert set(record.metrics) == {"dev", "test"}
    assert 0 < record.metrics["test"]["accuracy"] <= 100
    assert record.epochs == 4
    assert record.updates == 20
    assert 50 < record.peak_memory_mib < 100_000
    assert set(record.layer_weights) == set(record.gamma) == {"input", "output"}
    assert [len(s) for s in record.layer_weights["input"]] == [3] * 4
    assert all(abs(sum(s) - 1) < 1e-5 for s in record.layer_weights["output"])
    assert record.bilm["name"] == "custom"
    assert len(record.bilm["sha256"]) == 64
    assert record.bilm["tuned"] is False
    assert (bench.results / record.checkpoint).is_file()
    assert str(bench.folder) not in path.read_text()  # no place of this machine
    csv = (bench.results / record.checkpoint).with_name("csv") / "version_0" / "metrics.csv"
    header = csv.read_text().splitlines()[0].split(",")
    assert {"dev/accuracy", "test/accuracy", "train/loss", "elmo/input/s0", "elmo/output/gamma"} <= set(header)


def test_a_run_is_the_same_with_a_cache_and_without_with_room_and_without_and_with_damage(bench, monkeypatch):
    def losses(name: str, *changes: str) -> list[float]:
        return bench.train("task.fit.epochs=1", f"results_root={bench.folder}/{name}", *changes).history["loss"]

    cached = losses("cached")
    (data,) = (bench.folder / "cache" / "activations").glob("*/*.bin")
    content = bytearray(data.read_bytes())
    content[::97] = bytes(255 - byte for byte in content[::97])
    data.write_bytes(content)
    assert losses("damaged") == cached
    assert losses("uncached", "bilm.cache=false") == cached
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    assert losses("no room", f"cache_root={bench.folder}/full") == cached
    assert not list((bench.folder / "full").rglob("*.bin"))


def test_a_recorded_run_is_not_run_again_unless_forced(bench, monkeypatch, capsys):
    first = bench.train("task.fit.epochs=1")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launch, "_train", None)
        assert bench.train("task.fit.epochs=1", "trainer.threads=1", "logger=wandb", "debug=true") == first
    assert "not run again" in capsys.readouterr().out
    assert result(bench.train("task.fit.epochs=1", "force=true")) == result(first)
    other = bench.train("task.fit.epochs=1", "seed=2")
    assert (other.run != first.run, other.group) == (True, first.group)
    assert other.layer_weights != first.layer_weights
    monkeypatch.setattr(run, "run_once", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bench.train("task.fit.epochs=1", "force=true")


def test_force_starts_anew_whenever_it_is_typed_and_the_command_without_it_goes_on(bench, capsys, monkeypatch):
    def resumes(*changes: str) -> bool:
        """Whether the run goes on from an earlier epoch; it dies before its record."""
        capsys.readouterr()
        with pytest.MonkeyPatch.context() as dying:
            dying.setattr(run, "make_record", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                bench.train("task.fit.epochs=1", *changes)
        return "resuming after epoch 1" in capsys.readouterr().out

    first = bench.train("task.fit.epochs=1")
    assert [resumes("force=true"), resumes("force=true"), resumes()] == [False, False, True]
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert not resumes("force=true")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")  # Slurm has queued the job again
    assert resumes("force=true")
    monkeypatch.setenv("SLURM_JOB_ID", "8")
    assert not resumes("force=true")
    assert read(first.path).finished == first.finished
    assert result(bench.train("task.fit.epochs=1")) == result(first)
    bench.train("task.fit.epochs=1")
    assert "not run again" in capsys.readouterr().out


@pytest.mark.parametrize("forced", [(), ("force=true",)])
def test_a_record_that_another_process_makes_meanwhile_is_told(bench, capsys, monkeypatch, forced):
    first = bench.train("task.fit.epochs=1")
    if not forced:
        first.path.rename(bench.folder / "aside")

    @contextmanager
    def held(folder, said, wait):
        first.path.write_bytes((bench.folder / "aside" if not forced else first.path).read_bytes())
        yield True

    monkeypatch.setattr(launch, "held", held)
    monkeypatch.setattr(launch, "_train", None)
    capsys.readouterr()
    assert bench.train("task.fit.epochs=1", *forced) == first
    assert "by another process in the meantime" in capsys.readouterr().out


@pytest.mark.parametrize("changes", [EVERYTHING, ("fraction=0.5",)], ids=["everything", "fraction"])
def test_killed_in_mid_epoch_a_run_goes_on_to_the_same_result(bench, changes):
    whole = bench.train(*changes)
    torn = f"results_root={bench.folder}/torn"
    killed = bench.command("train", *bench.overrides(torn, *changes), STOP="2,3")
    assert killed.returncode == -9, killed.stderr
    assert not list((bench.folder / "torn").glob("runs/*"))
    resumed = bench.command("train", *bench.overrides(torn, *changes))
    assert resumed.returncode == 0, resumed.stderr
    assert "resuming after epoch 2" in resumed.stdout
    assert "GPU available" not in resumed.stderr  # what Lightning says when it starts
    (path,), (other,) = (folder.glob("runs/*/*/*.json") for folder in (bench.results, bench.folder / "torn"))
    assert result(read(other)) == result(whole)
    assert items.path_of(other).read_bytes() == items.path_of(path).read_bytes()
    one, two = bench.results / whole.checkpoint, bench.folder / "torn" / whole.checkpoint
    for name in (items.DEV, items.PREDICTIONS):
        assert two.with_name(name).read_bytes() == one.with_name(name).read_bytes()
    weights, others = (torch.load(path, weights_only=True)["state_dict"] for path in (one, two))
    torch.testing.assert_close(weights, others, rtol=0, atol=0)


def test_ctrl_c_ends_in_one_line(bench):
    done = bench.command("train", *bench.overrides(), STOP=f"1,2,{signal.SIGINT:d}")
    assert done.returncode == 130
    assert done.stderr == "interrupted; running the command again resumes from the last completed epoch\n"
    assert list(bench.results.rglob("last.ckpt"))


def test_killed_after_its_last_epoch_a_stopped_run_trains_no_more(bench, monkeypatch):
    """Early stopping ended the training; the process died before its record."""
    changes = ("task.metric._target_=tests.toy.ScriptedMetric", "task.fit.patience=2", "task.fit.epochs=9")
    monkeypatch.setattr(toy.ScriptedMetric, "script", [*[0] * 3, 10, 30, 20, 20, 77])  # three before training
    bench.died(*changes)
    monkeypatch.setattr(toy.ScriptedMetric, "script", [55])  # the test alone
    record = bench.train(*changes)
    assert record.epochs == 4
    assert record.epoch == 2
    assert record.metrics == {"dev": {"accuracy": 30.0}, "test": {"accuracy": 55.0}}


def test_the_best_epoch_on_dev_is_the_one_tested(bench, monkeypatch):
    seen = {}
    original = run.make_record

    def spy(config, described, module, *rest):
        seen.update({name: value.clone() for name, value in module.state_dict().items()})
        return original(config, described, module, *rest)

    monkeypatch.setattr(run, "make_record", spy)
    monkeypatch.setattr(toy.ScriptedMetric, "script", [*[0] * 3, 10, 40, 40, 20, 33])  # three before training
    record = bench.train("task.metric._target_=tests.toy.ScriptedMetric")
    assert (record.epoch, record.epochs, record.selected_updates) == (2, 4, 10)
    assert record.dev_scores[record.history["epoch"].index(record.epoch)] == record.metrics["dev"][record.monitor] == 40
    (logged,) = bench.results.rglob("metrics.csv")
    rows = list(csv.DictReader(logged.open()))
    assert {row["epoch"]: row["dev/accuracy"] for row in rows if row["dev/accuracy"]} == {
        "1": "10.0", "2": "40.0", "3": "40.0", "4": "20.0",
    }  # fmt: skip
    assert [row["epoch"] for row in rows if row["test/accuracy"]] == ["2"]
    scored = items.read(items.path_of(bench.results / "runs" / "open" / "toy" / f"{record.run}.json"))
    assert [scored[split].totals() for split in ("dev", "test")] == [{"accuracy": 40.0}, {"accuracy": 33.0}]
    best = torch.load(bench.results / record.checkpoint, weights_only=True)
    assert len(best["history"]) == 2
    for name, value in best["state_dict"].items():
        torch.testing.assert_close(seen[name], value, rtol=0, atol=0)


def test_checkpoints_hold_plain_containers_and_no_frozen_bilm(bench):
    record = bench.train("task.fit.epochs=1")
    saved = torch.load(bench.results / record.checkpoint, weights_only=True)
    assert saved["hyper_parameters"]["config"]["task"]["name"] == "toy"
    assert saved["bilm_sha256"] == record.bilm["sha256"]
    assert saved["vocabularies"]["labels"] == {"items": ["A", "B"], "special": False}
    assert not any("bilm" in name or "table" in name for name in saved["state_dict"])
    joint = bench.train("task.fit.epochs=1", "elmo.finetune=joint")
    saved = torch.load(bench.results / joint.checkpoint, weights_only=True)
    assert "representation.elmo.bilm.table.weight" in saved["state_dict"]
    assert joint.bilm["tuned"] is True


def test_the_penalty_pulls_the_layer_weights_together(bench):
    def spread(*changes):
        s = bench.train("task.optimizer.lr=0.1", "task.fit.epochs=2", *changes).layer_weights["input"][-1]
        return max(s) - min(s)

    assert spread("elmo.lambda=10") < 0.2 * spread("elmo.lambda=0")


@cases("""
    by    | bound
    norm  | 0.01
    value | 0.001
""")
def test_gradients_are_clipped(bench, monkeypatch, by, bound):
    seen = []

    def look(self, optimizer):
        gradients = [p.grad for p in self.parameters() if p.grad is not None] or [torch.zeros(1)]  # before the first
        seen.append(float(torch.cat([g.flatten() for g in gradients]).norm(float("inf") if by == "value" else 2)))

    monkeypatch.setattr(BenchModule, "on_before_zero_grad", look)
    bench.train(f"task.clip={{value:{bound},by:{by}}}", "task.fit.epochs=1")
    assert seen
    assert all(value <= bound * 1.001 for value in seen)
    assert max(seen) > 0.9 * bound


def test_the_baseline_needs_no_bilm(bench):
    bare = bench.train("elmo.where=none", "bilm=none", "task.fit.epochs=1")
    same = bench.compose("elmo.where=none", "elmo.lambda=0.5", "bilm.weights=/nowhere/at/all", "task.fit.epochs=1")
    assert launch.train(same).run == bare.run
    assert bare.bilm == {"name": None, "sha256": None, "tuned": False}
    assert bare.layer_weights == bare.gamma == {}


def test_malformed_data_end_a_run_before_it_leaves_anything(bench):
    (bench.data / "toy" / "dev.txt").write_text("ba/A\nbroken line\n")
    with refuses(r"dev\.txt:2"):
        bench.train()
    assert not list(bench.results.rglob("*.json"))
    assert not list(bench.results.rglob("*.ckpt"))


@cases("""
    by    | expected
    norm  | [0.6, 0.8]
    value | [1.0, 1.0]
""")
def test_gradients_of_a_fused_optimizer_are_clipped_in_mixed_precision_too(by, expected):
    weights = torch.nn.Parameter(torch.zeros(2))
    weights.grad = torch.tensor([3.0, 4.0])
    optimizer = torch.optim.Adam([weights], fused=True)
    plugin = MixedPrecision("bf16-mixed", "cpu")
    module = SimpleNamespace(trainer=SimpleNamespace(precision_plugin=plugin), _norm=torch.tensor(5.0))
    BenchModule.configure_gradient_clipping(module, optimizer, 1.0, GradClipAlgorithmType(by))  # type: ignore[arg-type]
    assert weights.grad.tolist() == pytest.approx(expected)
