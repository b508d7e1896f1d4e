"""What people type who know Lightning: arguments of its Trainer, callbacks, loggers, a smoke run."""

import inspect
import logging

import pytest
import pytorch_lightning as pl
import torch
from hydra.errors import HydraException

from elmo_bench.configuration import schema
from elmo_bench.configuration.schema import ANSWERS, LIGHTNING, PRECISIONS, TrainerConfig
from elmo_bench.records import store
from elmo_bench.records.settings import Identity
from elmo_bench.running import launch
from elmo_bench.system import console
from elmo_bench.system.errors import UserError
from tests.fakes import cases, for_each, refuses
from tests.running.test_wandb import logged, summary

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("stand_in")]
INDEFINITE = ("arm=baseline",)
GLOBAL = "# @package _global_\n"


class Watching(pl.Callback):
    """It may log what others watch, for all that is known before a training."""

    made = 0

    def __init__(self):
        Watching.made += 1


def typed(bench, *changes: str) -> schema.RunConfig:
    return bench.validated(*INDEFINITE, *changes)


def test_every_argument_of_lightnings_trainer_is_passed_on_or_answered():
    arguments = {*inspect.signature(pl.Trainer).parameters}
    assert arguments - {*TrainerConfig.model_fields} - {*ANSWERS} == set()
    assert {*ANSWERS} - {"gpu"} | {*LIGHTNING} <= arguments
    defaults = {name: inspect.signature(pl.Trainer).parameters[name].default for name in LIGHTNING}
    assert defaults == {name: getattr(TrainerConfig(), name) for name in LIGHTNING}


@cases("""
    change               | told
    trainer.max_epochs=3 | trainer.max_epochs: task.fit.epochs sets it
    +trainer.gradient_clip_val=1 | trainer.gradient_clip_val: task.clip.value sets it
    trainer.strategy=fsdp | trainer.devices=N trains with DDP
    trainer.acumulate_grad_batches=2 | did you mean accumulate_grad_batches?
    trainer.accumulate_grad_batches=x | trainer.accumulate_grad_batches=x: should be a valid integer
    trainer.devices=[1,3] | CUDA_VISIBLE_DEVICES=1,3 and trainer.devices=2
    trainer.devices=auto | trainer.devices=auto: should be a valid integer
    trainer.fast_dev_run=0 | trainer.fast_dev_run=0: a whole number from 1
    trainer.log_every_n_steps=x | trainer.log_every_n_steps=x: should be a valid integer
    trainer.min_epochs=1.5 | trainer.min_epochs=1.5: should be a valid integer
    trainer.benchmark=abc | trainer.benchmark=abc: should be a valid boolean
    trainer.inference_mode=1 | trainer.inference_mode=1: should be a valid boolean
    trainer.sync_batchnorm=maybe | trainer.sync_batchnorm=maybe: should be a valid boolean
    trainer.profiler=nosuch | trainer.profiler=nosuch: should be 'simple', 'advanced' or 'pytorch'
    +trainer.profiler._target_=pytorch_lightning.profilers.SimpleProfiler | should be 'simple'
""")
def test_what_another_key_sets_is_answered_with_that_key(bench, change, told):
    with refuses(told):
        typed(bench, change)


@cases("""
    change        | told
    callbacks=foo | callbacks=foo: there is no such configuration file; choose from early_stopping
    +experiment=example | +experiment=...: leave out the plus, experiment=NAME
    experiment=bare | only if its first line is '# @package _global_'
    debug=fats | debug=fats: there is no such debug; did you mean fast?
    callbacks=null | a configuration file is chosen by its name; callbacks=none and logger=none choose nothing
    +logger.mine._target_=my.Logger | another logger is +logger.more.NAME._target_=CLASS
""")
def test_a_group_is_chosen_by_a_file(bench, change, told):
    (bench.conf / "experiment" / "bare.yaml").write_text("seed: 2\n")
    with pytest.raises((UserError, HydraException, ValueError)) as error:
        typed(bench, change)
    assert told in (console.explain(error.value) or "")


def test_null_is_lightnings_default(bench):
    trainer = typed(bench, *(f"trainer.{name}=null" for name in LIGHTNING)).trainer
    assert trainer == typed(bench).trainer


@pytest.mark.parametrize("short, name", [*PRECISIONS.items()])
def test_a_precision_in_lightnings_older_words_is_the_same_run(bench, short, name):
    one, other = (typed(bench, f"trainer.precision={each}") for each in (short, name))
    assert one.trainer.precision == name
    assert Identity(one).run == Identity(other).run


def test_gradients_accumulate_and_the_schedule_steps_with_the_updates(bench):
    schedule = "+task.schedule.scheduler={_target_: torch.optim.lr_scheduler.StepLR, _partial_: true, step_size: 1}"
    chosen = (*INDEFINITE, "task.fit.epochs=2", schedule, "task.schedule.interval=step")
    one, four = bench.train(*chosen), bench.train(*chosen, "trainer.accumulate_grad_batches=4")
    assert four.variant["trainer.accumulate_grad_batches"] == 4
    assert (one.updates, four.updates) == (10, 4)  # five batches of eight sentences in each of two epochs
    assert four.history["learning_rate"][0] == pytest.approx(0.01 * 0.1**2)
    assert one.history["learning_rate"][0] == pytest.approx(0.01 * 0.1**5)


def test_a_smoke_run_trains_and_scores_and_records_nothing(bench, capsys):
    record = bench.train("trainer.fast_dev_run=true", "logger=wandb")
    assert (record.epochs, record.updates) == (1, 1)
    assert {*record.metrics} == {"dev", "test"}
    said = capsys.readouterr().out
    assert "nothing is recorded" in said
    assert "task.fit.epochs" not in said  # its title has what was typed
    assert list(bench.results.rglob("*")) == []
    assert bench.train("trainer.fast_dev_run=2").updates == 2


@for_each("preset", "fast limit overfit profile mine")
def test_a_debugging_run_records_nothing_whatever_its_file_sets(bench, preset):
    (bench.conf / "debug" / "mine.yaml").write_text(GLOBAL + "task: {fit: {epochs: 1}}\n")
    record = bench.train(f"debug={preset}", "force=true")
    assert list(bench.results.rglob("*")) == []
    assert (record.metrics["dev"] == record.metrics["test"]) is (preset == "overfit")  # the batches that it learns


def test_an_experiment_is_what_its_file_chooses_and_sets(bench):
    chosen = "defaults:\n  - override /callbacks: [early_stopping, lr_monitor]\n"
    keys = "task: {fit: {epochs: 1}}\nelmo: {layers: last}\nseed: 4\n"
    (bench.conf / "experiment" / "mine.yaml").write_text(GLOBAL + chosen + keys)
    typed = ("callbacks=[early_stopping,lr_monitor]", "task.fit.epochs=1", "elmo.layers=last", "seed=4")
    one, other = (bench.validated(*each) for each in (("experiment=mine",), typed))
    assert Identity(one).run == Identity(other).run
    assert one.variant == other.variant == {
        "callbacks": "early_stopping", "elmo.layers": "last", "task.fit.epochs": 1
    }  # fmt: skip
    assert bench.validated("experiment=mine", "elmo.layers=1").variant["elmo.layers"] == 1


def test_a_run_of_few_batches_is_in_no_report(bench, capsys):
    record = bench.train(*INDEFINITE, "trainer.limit_batches=1", "task.fit.epochs=1")
    assert store.read_all(bench.results) == [record]
    assert store.full_runs(store.read_all(bench.results)) == []
    assert "left out: 1 run with trainer.limit_batches" in capsys.readouterr().err


def test_callbacks_and_loggers_are_pages_several_at_once(bench):
    pytest.importorskip("tensorboard")
    chosen = ("task.fit.epochs=6", "callbacks=[early_stopping,lr_monitor]", "callbacks.early_stopping.patience=0",
              "callbacks.early_stopping.min_delta=100", "logger=[csv,tensorboard]",
              "trainer.log_every_n_steps=1")  # fmt: skip
    record = bench.train(*INDEFINITE, *chosen)
    assert record.epochs == 2  # nothing improves by 100 points
    folder = store.work(bench.results, "open", "toy", record.run)
    assert sum(events.stat().st_size for events in (folder / "tensorboard").rglob("events.out.*")) > 0
    (logged,) = (folder / "csv").rglob("metrics.csv")
    assert "lr-Adam" in logged.read_text().splitlines()[0]
    from elmo_bench.trained.prediction import load

    assert load(folder / "best.ckpt", task="toy").task == "toy"  # what it stores names no callback


@cases(r"""
    change                                                     | told
    +callbacks.mine._target_=nosuch.Thing                      | callbacks.mine (nosuch.Thing)
    +callbacks.mine=3                                          | callbacks.mine: a block with _target_=CLASS is needed
    +callbacks.mine._target_=collections.OrderedDict           | pytorch_lightning's Callback is needed
    +logger.more.mine._target_=collections.OrderedDict         | pytorch_lightning's Logger is needed
    +logger.more.mine._target_=pytorch_lightning.loggers.CSVLogger | logger.more.mine
    trainer.devices=[1]         | trainer.devices=[1] names a GPU, but trainer.accelerator is cpu
    trainer.min_epochs=5        | trainer.min_epochs=5: more than task.fit.epochs=4
    task.monitor=nope           | task.monitor=nope: no such metric; choose from accuracy
    STOPPING.monitor=val_loss   | monitor=val_loss: no such metric is logged; choose from dev/accuracy
    STOPPING.monitor=dev/acuracy | did you mean dev/accuracy?
    STOPPING.patience=abc       | callbacks.early_stopping.patience=abc: should be a valid integer
    STOPPING.min_delta=abc      | callbacks.early_stopping.min_delta=abc: should be a valid number
    +callbacks={a: {_target_: pytorch_lightning.callbacks.RichProgressBar}, \
        b: {_target_: pytorch_lightning.callbacks.TQDMProgressBar}} | You added multiple progress bar callbacks
    +callbacks={a: {_target_: pytorch_lightning.callbacks.EarlyStopping, monitor: dev/accuracy}, \
        b: {_target_: pytorch_lightning.callbacks.EarlyStopping, monitor: dev/accuracy}} | \
        more than one stateful callback of type `EarlyStopping`
""")
def test_what_cannot_be_used_is_one_line_before_anything_is_prepared(bench, monkeypatch, change, told):
    monkeypatch.setattr(launch.settings, "make", lambda *_: 1 / 0)
    typed = change.replace("STOPPING", "callbacks=early_stopping|callbacks.early_stopping").split("|")
    with refuses(told):
        bench.train(*INDEFINITE, *typed)


@pytest.mark.parametrize("change", [
    "+callbacks.mine={_target_: pytorch_lightning.callbacks.ModelCheckpoint, monitor: lr-nope}",
    f"+callbacks={{mine: {{_target_: {__name__}.Watching}}, other: {{_target_: pytorch_lightning.callbacks."
    "EarlyStopping, monitor: theirs/score}}",
])  # fmt: skip
def test_a_metric_that_turns_out_not_to_be_logged_is_one_line(bench, change):
    with refuses("callbacks: (ModelCheckpoint|EarlyStopping): .*(lr-nope|theirs/score)"):
        bench.train(*INDEFINITE, "trainer.fast_dev_run=true", change)


@for_each("name", "LearningRateFinder BatchSizeFinder BackboneFinetuning")
def test_a_callback_that_needs_another_module_is_one_line(bench, name):
    with refuses(f"callbacks: {name}: "):
        bench.train(*INDEFINITE, f"+callbacks.mine._target_=pytorch_lightning.callbacks.{name}")


def test_a_typed_callback_is_made_once(bench):
    Watching.made = 0
    bench.train(*INDEFINITE, "task.fit.epochs=1", f"+callbacks.mine._target_={__name__}.Watching")
    assert Watching.made == 1


@for_each("monitor", "train/loss elmo/input/s2 elmo/input/gamma")
def test_what_the_module_logs_can_be_watched(bench, monitor):
    stopping = ("callbacks=early_stopping", f"callbacks.early_stopping.monitor={monitor}")
    assert bench.train("trainer.fast_dev_run=true", *stopping).epochs == 1


def test_a_progress_bar_of_theirs_replaces_ours(bench, capsys):
    bar = "+callbacks.mine._target_=pytorch_lightning.callbacks.TQDMProgressBar"
    bench.train(*INDEFINITE, "trainer.fast_dev_run=true", "trainer.progress=true", bar)
    assert "Epoch 0" in capsys.readouterr().out


def test_the_report_of_a_profiler_and_a_summary_of_the_model_are_shown(bench, caplog, monkeypatch):
    monkeypatch.setattr(logging.getLogger("pytorch_lightning"), "propagate", True)
    summary = "+callbacks.mine._target_=pytorch_lightning.callbacks.ModelSummary"
    bench.train(*INDEFINITE, "trainer.fast_dev_run=true", "trainer.profiler=simple", summary)
    assert "FIT Profiler Report" in caplog.text
    assert "Trainable params" in caplog.text


def test_the_head_is_compiled_and_the_checkpoint_is_as_without(bench, monkeypatch):
    """Its call alone: a compiled module would have other names of its weights."""
    asked, names = [], []
    monkeypatch.setattr(torch, "compile", lambda call, **how: asked.append((call.__name__, how)) or call)
    for compile in ("false", "true"):
        record = bench.train(*INDEFINITE, "task.fit.epochs=1", f"compile={compile}", "force=true")
        names.append((record.run, *torch.load(bench.results / record.checkpoint, weights_only=True)["state_dict"]))
        assert asked == ([("_call_impl", {"dynamic": True})] if compile == "true" else [])
    assert names[0] == names[1]


def test_a_recorded_point_of_a_wandb_sweep_logs_its_metrics_into_the_sweeps_run(bench, monkeypatch):
    import wandb

    record = bench.train(*INDEFINITE, "task.fit.epochs=2")
    monkeypatch.setenv("WANDB_SWEEP_ID", "sweep1")
    monkeypatch.setenv("WANDB_RUN_ID", "point7")
    assert bench.train(*INDEFINITE, "task.fit.epochs=2", "logger=wandb").run == record.run
    (part,) = (store.work(bench.results, "open", "toy", record.run) / "wandb").glob("offline-run-*")
    opening, rows = logged(part)
    assert opening["run_id"] == "point7"
    assert [row["dev/accuracy"] for row in rows] == record.dev_scores
    assert summary(part)["summary"]["dev/accuracy"] == record.metrics["dev"]["accuracy"]
    wandb.teardown()  # it keeps the variables of its first run for all of the process
