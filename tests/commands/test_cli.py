"""The commands as a user types them: one clear line and status 2 for what can be mended, quick answers to the rest."""

import json
import sys
from types import SimpleNamespace

import pytest
import torch

from elmo_bench.commands.run import Reproduce
from elmo_bench.commands.train import Train, check_flags
from elmo_bench.commands.use import Predict
from elmo_bench.configuration import composing
from elmo_bench.running.blocks import check_blocks
from elmo_bench.system import console
from elmo_bench.system.errors import UserError
from elmo_bench.trained.heads import load
from tests.fakes import cases, jsonl, refuses, table

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("bench")]
WRONG = table(r"""
    ["task=nre"] | "task=nre: there is no such task; did you mean ner? choose from "
    ["elmo.wher=input"] | elmo.wher: there is no such key; did you mean where? choose from where,
    ["sed=3"] | sed: there is no such key; did you mean seed?
    ["nonsense"] | nonsense: arguments are written key=value
    ["task=toy'"] | task=toy': the value has a character that Hydra reads as syntax
    ["results_root=/tmp/Zoë"] | results_root=/tmp/Zoë: a value with letters outside ASCII needs
    ["seed=1,2"] | seed=1,2: several values are a sweep, for elmo-bench train -m
    ["-m", "elmo.dropout=interval(0,0.5)"] | interval(...) is for a search: add sweeper=optuna
    ["--scale", "mini"] | unrecognized arguments: --scale
    ["+sweep=table99"] | sweep=table99: there is no such sweep
    ["hydra/sweeper=optuna"] | hydra/sweeper=optuna: type sweeper=optuna
""")
WRONG_TOO = table(r"""
    ["elmo.where=inptu"] | elmo.where=inptu: should be 'none', 'input', 'output' or 'both'; did you mean input?
    ["seed=abc"] | seed=abc: should be a valid integer
    ["+sed=3"] | sed: there is no such key; did you mean seed?
    ["data_root=/no/such"] | /no/such: no such folder
    ["scale=huge"] | scale=huge: there is no such scale; choose from mini, open, paper
    ["vectors=/no/such.txt"] | for a file, vectors=page task.words.path=FILE
    ["task.data.hub=name"] | +task.data.hub=... adds one that the reader takes
    ["task.optimizer.lrr=3"] | task.optimizer.lrr: there is no such key; did you mean lr?
    ["task.optimizer.nesterov=1"] | +task.optimizer.nesterov=... adds one that the class takes
    ["bilm=/no"] | bilm=/no: there is no such bilm; choose from custom,
    ["task.data=train.txt"] | task.data=train.txt: should be a mapping, as {key: value}
    ["logger.wandb.project=x"] | choose the block first, as in logger=wandb
    ["+elmo.foo=1"] | elmo.foo: there is no such key
    ["elmo.layer_norm=batch"] | elmo.layer_norm=batch: should be false, 'paper' or 'token'
    ["elmo.dropout=1.0"] | elmo.dropout=1.0: should be less than 1
    ["bilm=none"] | bilm=none names no options and no weights: give bilm.options=... bilm.weights=..., or arm=baseline
    ["elmo.dropout=much"] | elmo.dropout=much: should be a valid number
    ["task.fit.epochs=null"] | task.fit.epochs=null: should be a valid integer
    ["elmo=3"] | elmo=3: should be a block of keys
    ["+bilm.stat=zero"] | bilm.stat: there is no such key; did you mean state?
    ["scale=paper"] | task=toy has no data for scale=paper; it offers scale=open
    ["data_root=null"] | scale=open needs data_root=FOLDER
    ["task.data.dev=gone.txt"] | toy/gone.txt: no such file
    ["task.data.folder=tyo"] | tyo: no such folder
    ["bilm.weights=null"] | bilm=custom names no weights
    ["trainer.accelerator=tpu"] | trainer.accelerator=tpu: should be 'auto', 'cpu', 'gpu', 'cuda' or 'mps'
    ["trainer.precision=transformer-engine"] | "trainer.precision=transformer-engine: should be '32-true', "
    ["batch_size=4"] | batch_size: there is no such key; did you mean task.batch.batch_size?
    ["bilm.weights=/no/such.hdf5"] | /no/such.hdf5: no such file: the weights of bilm=custom
""")
WRONG_TO_REPRODUCE = [
    (["seeds=0"], "seeds=0: should be greater than or equal to 1"),
    (["seed=3"], "give seeds=N"),
    (["elmo.lamda=3"], "elmo.lamda: there is no such key; did you mean lambda?"),
    (["elmo.where"], "key=value"),
]


def composed() -> None:
    """`train` without its own composition: Hydra composes each choice of files once for all tests."""
    from elmo_bench.running import launch

    launch.train(composing.compose(sys.argv[1:]))


COMPOSED = SimpleNamespace(__name__="train", main=lambda: console.report(composed, Train.again))


@pytest.mark.parametrize(
    "command, arguments, message",
    [
        *((Train, *case) for case in WRONG),
        *((COMPOSED, *case) for case in WRONG_TOO),
        *((Reproduce, *case) for case in WRONG_TO_REPRODUCE),
    ],
    ids=[" ".join(arguments) for arguments, _ in WRONG + WRONG_TOO + WRONG_TO_REPRODUCE],
)
def test_what_a_user_can_mend_ends_in_one_line(refused, bench, monkeypatch, command, arguments, message):
    """And leaves nothing behind where it was typed."""
    (here := bench.folder / "here").mkdir()
    monkeypatch.chdir(here)
    said = refused(command, *bench.overrides(*arguments))
    assert said.startswith("error: ")
    assert message in said
    assert not bench.results.joinpath("runs").exists()
    assert list(here.iterdir()) == []


@cases("""
    argument                   | message
    task.optimizer.lr=-1       | task.optimizer or task.schedule: Invalid learning rate: -1
    elmo.layers=[0.5,0.5]      | elmo.layers=[0.5, 0.5]: 3 weights are needed
    trainer.precision=16-mixed | trainer.precision=16-mixed needs a GPU; bf16-mixed runs on a CPU, too
    fraction=0.1               | fraction=0.1: 4 of 40 sentences give 4 examples, fewer than a batch of 8
""")
@pytest.mark.usefixtures("stand_in")
def test_what_shows_only_when_the_model_is_built_is_one_line_too(call, bench, argument, message):
    status, _, err = call(COMPOSED, *bench.overrides(argument))
    assert status == 2
    *progress, said = err.splitlines()
    assert all(line.startswith("caching") for line in progress)
    assert message in said
    assert not bench.results.joinpath("runs").exists()


OPEN = table(r"""
    +task.reader.sizes=1  | task.reader.sizes: tests.toy.ToyReader has no such argument; choose from data
    +task.head.drop=0     | task.head.drop: tests.toy.ToyHead has no such argument; did you mean dropout?
    +task.metric.f1=true  | task.metric.f1: tests.toy.ToyMetric has no such argument; it takes no arguments
    task.words._target_=elmo_bench.no.such | task.words._target_=elmo_bench.no.such: cannot be imported
    ~task.head.dropout    | task.head: tests.toy.ToyHead: missing a required argument: 'dropout'
    task.schedule={scheduler:{_target_:torch.optim.lr_scheduler.StepLR,_partial_:true,step:3},interval:step} | \
        task.schedule.scheduler.step: torch.optim.lr_scheduler.StepLR has no such argument; did you mean step_size?
    task.average={_target_:pytorch_lightning.callbacks.Timer,hours:3} | \
        task.average.hours: pytorch_lightning.callbacks.Timer has no such argument
""")


@pytest.mark.parametrize("argument, message", OPEN, ids=[argument for argument, _ in OPEN])
@pytest.mark.usefixtures("stand_in")
def test_keys_of_open_blocks_are_arguments_of_what_they_name(refused, bench, monkeypatch, argument, message):
    monkeypatch.setattr("elmo_bench.records.settings.make", None)  # before anything is made or read
    assert message in refused(COMPOSED, *bench.overrides(argument))
    assert not bench.results.joinpath("runs").exists()


@cases("""
    argument              | form
    task.head.hidden=32   | a list, as [a,b]
    task.chars.filters=32 | a mapping, as {key: value}
""")
def test_a_single_number_where_several_are_needed_is_named(argument, form):
    run = composing.run_config(["task=ner", "scale=mini", argument])
    with refuses(f"{argument}: should be {form}"):
        check_blocks(run.task)


def test_debug_shows_the_traceback(call, bench):
    status, _, err = call(COMPOSED, *bench.overrides("data_root=/no/such", "debug=true"))
    assert status == 2
    assert "Traceback" in err
    assert err.splitlines()[-1].startswith("error: /no/such")


@pytest.mark.usefixtures("stand_in")
def test_a_sweep_runs_on_past_a_bad_point(call, bench):
    changes = ("task.fit.epochs=1", "elmo.layers=last,7")
    status, out, err = call(Train, "-m", *bench.overrides(*changes))
    assert status == 2
    assert err.count("error: ") == 1
    assert "elmo.layers=7: the biLM's layers are 0 (tokens) to 2" in err
    assert len(list(bench.results.rglob("runs/open/toy/*.json"))) == 1
    assert "+ELMo (input; layers=last, task.fit.epochs=1), seed 1: dev accuracy" in out


@pytest.mark.parametrize("flags", [[], ["-m", "hydra.sweep.dir=swept"]], ids=["one", "sweep"])
def test_relative_places_are_those_of_the_folder_in_which_it_was_typed(call, bench, stand_in, flags, monkeypatch):
    monkeypatch.chdir(bench.folder)
    (bench.folder / "vectors.txt").write_text("ba 1 2 3 4\nde 1 2 3 4\ngi 1 2 3 4\nko 1 2 3 4\n")
    typed = [text.replace(f"{bench.folder}/", "") for text in bench.overrides("task.fit.epochs=1")]
    typed += ["+task.words.path=vectors.txt"]
    assert not any(str(bench.folder) in text for text in typed)
    status, _, err = call(Train, *flags, *typed, "hydra.job.chdir=true", "hydra.run.dir=swept/one")
    assert status == 0, err
    (record,) = (bench.results / "runs/open/toy").glob("*.json")
    stored = load(str(bench.results / json.loads(record.read_text())["checkpoint"]), task="toy")
    config = stored["hyper_parameters"]["config"]
    assert config["bilm"]["options"] == f"{bench.folder}/options.json"
    assert config["task"]["words"]["path"] == f"{bench.folder}/vectors.txt"
    assert not list((bench.folder / "swept").rglob("*.json"))


def test_places_of_the_environment_and_files_without_a_folder_are_made_absolute(tmp_path, monkeypatch, file):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATA_ROOT", "data")
    file("", "a.conll")
    changes = "task=srl scale=open task.data.train=a.conll task.data.dev=[a.conll,gone]".split()
    cfg = composing.compose([*changes, "cache_root='~/c'"])
    assert (cfg.data_root, cfg.task.data.train) == (f"{tmp_path}/data", f"{tmp_path}/a.conll")
    assert list(cfg.task.data.dev) == [f"{tmp_path}/a.conll", "gone"]
    assert cfg.task.data.test == f"{tmp_path}/data/srl_ewt/test.conll"
    assert cfg.cache_root == "~/c"
    below = composing.compose("task=srl scale=open +task.data.folder=. task.data.train=a.conll".split())
    assert (below.task.data.folder, below.task.data.train) == (str(tmp_path), "a.conll")


# predict


@pytest.fixture(scope="module")
def model(shared_bench):
    """The checkpoint of a run, as the argument of `predict`."""
    record = shared_bench.train("task.fit.epochs=2", "elmo.where=both")
    return f"checkpoint={shared_bench.results / record.checkpoint}"


def lines(path, *rows):
    path.write_text(jsonl(rows))
    return path


@cases(r"""
    bad                        | message
    {                          | not JSON
    "[1]"                      | not a JSON object
    "\n{\"tokens\": [\"ba\"]}" | not JSON
    "{\"words\": [\"a\"]}"     | expected {"tokens": [...]}
""")
def test_a_malformed_line_is_named_and_nothing_is_written(refused, model, tmp_path, bad, message, file):
    source = file('{"tokens": ["ba"]}\n' + bad + "\n", "in.jsonl")
    err = refused(Predict, "task=toy", model, f"input={source}", f"output={tmp_path}/out.jsonl")
    assert f"in.jsonl:2: {message}" in err
    assert not list(tmp_path.glob("*out.jsonl*"))


def test_predict_reads_weights_that_have_moved_and_refuses_other_files(call, shared_bench, model, tmp_path, file):
    source = lines(tmp_path / "in.jsonl", {"tokens": ["ba"]})
    rest = [f"input={source}", f"output={tmp_path}/out.jsonl"]
    file((shared_bench.folder / "weights").read_text(), "moved")
    status, _, err = call(Predict, "task=toy", model, f"bilm.weights={tmp_path}/moved", *rest)
    assert status == 0, err
    for accelerator, message in (("tpu", "should be"), ("mps", "torch finds none on this machine")):
        status, _, err = call(Predict, "task=toy", model, f"trainer.accelerator={accelerator}", *rest)
        assert status == 2 or torch.backends.mps.is_available()
        assert f"trainer.accelerator={accelerator}: {message}" in err or torch.backends.mps.is_available()
    _, _, err = call(Predict, f"checkpoint={source}", *rest)
    assert "in.jsonl: not a checkpoint of elmo_bench" in err
    _, _, err = call(Predict, "checkpoint=/no/such.ckpt", *rest)
    assert "/no/such.ckpt: no such checkpoint" in err


def test_flags_may_stand_between_overrides(monkeypatch):
    monkeypatch.setattr(sys, "argv", "train task=ner -m seed=1,2 --cfg job arm=baseline".split())
    check_flags()
    assert sys.argv == "train task=ner seed=1,2 arm=baseline -m --cfg job".split()


def test_an_error_of_the_code_itself_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["x"])

    def broken():
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        console.report(broken)


def test_an_error_is_shown_once(capsys):
    error = UserError("wrong", "file", 3)
    console.show(error)
    console.show(error)
    assert capsys.readouterr().err == "error: file:3: wrong\n"
