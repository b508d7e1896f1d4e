"""Heads that come with the project: what `export_head` writes, and `predict task=NAME` reads."""

import shutil
import sys

import pytest
import pytorch_lightning as pl
import torch

import elmo_bench
from elmo_bench.commands.use import ExportHead, Predict
from elmo_bench.configuration import composing, schema
from elmo_bench.running.data import Data
from elmo_bench.running.module import BenchModule
from elmo_bench.system import places
from elmo_bench.system.storage.hashing import sha256
from elmo_bench.system.storage.json_text import read_sealed
from elmo_bench.trained import heads as shipped
from elmo_bench.trained.heads import load
from elmo_bench.trained.prediction import predict
from tests.fakes import cases, for_each, jsonl, refuses

pytestmark = pytest.mark.slow

SENTENCES = [["ba", "de"], "de gi ko lu ba zz".split(), ["gi", "gi"]]


class Shelf:
    """A finished run of the toy task, and the folder models/ of its biLM and head."""

    def __init__(self, folder, record):
        self.models, self.folder = folder, folder / "heads" / "toy"
        self.record, self.checkpoint = record, folder / "results" / record.checkpoint
        self.input = folder / "in.jsonl"
        self.input.write_text(jsonl({"tokens": words} for words in SENTENCES))
        self.output = folder / "out.jsonl"

    def export(self):
        return shipped.export(self.checkpoint, self.models / "heads")

    def predicted(self, checkpoint=None, **chosen):
        chosen = {"task": "toy"} | (chosen or ({} if checkpoint else {"models_root": str(self.models)}))
        predict(checkpoint, str(self.input), str(self.output), **chosen)  # pyright: ignore[reportArgumentType]
        return self.output.read_text()


@pytest.fixture(scope="module")
def finished(shared_bench):
    """The record of the run."""
    bilm = ["bilm.options=${models_root}/options.json", "bilm.weights=${models_root}/weights"]
    return shared_bench.train("task.fit.epochs=2", "elmo.where=both", f"models_root={shared_bench.folder}", *bilm)


@pytest.fixture
def shelf(shared_bench, finished, tmp_path):
    """A copy of its files, which a test may change."""
    shutil.copytree(shared_bench.results, tmp_path / "results")
    for name in ("options.json", "weights"):
        shutil.copy(shared_bench.folder / name, tmp_path)
    return Shelf(tmp_path, finished)


def test_a_head_predicts_as_its_checkpoint_does(shelf):
    folder = shelf.export()
    full = shelf.predicted(str(shelf.checkpoint), format="json")
    assert len(full.splitlines()) == len(SENTENCES)
    assert shelf.predicted() == full
    kept, whole = (load(str(path), task="toy")["state_dict"] for path in (folder / "head.ckpt", shelf.checkpoint))
    assert kept.keys() == whole.keys()
    assert {each.dtype for each in kept.values()} == {torch.float16}
    assert all(torch.allclose(kept[name].float(), whole[name], rtol=1e-3, atol=1e-6) for name in whole)


def test_a_head_names_its_run_and_holds_no_folder_of_this_machine_and_nothing_for_training(shelf, shared_bench):
    folder = shelf.export()
    assert sorted(path.name for path in folder.iterdir()) == ["card.json", "head.ckpt"]
    saved = load(str(folder / "head.ckpt"), task="toy")
    assert set(saved) == {"hyper_parameters", "state_dict", "vocabularies", "bilm_sha256"}
    assert saved["hyper_parameters"]["config"]["bilm"]["weights"] == "<models_root>/weights"
    assert not any(str(shared_bench.folder).encode() in path.read_bytes() for path in folder.iterdir())
    card = read_sealed(folder / "card.json", "card of a head", "")  # says which run it is
    assert {key: card[key] for key in ("run", "metrics", "bilm")} == {
        key: getattr(shelf.record, key) for key in ("run", "metrics", "bilm")
    }
    assert card["bytes"] == (shelf.folder / "head.ckpt").stat().st_size


def test_nothing_is_composed_to_predict_by_a_head(shelf, monkeypatch):
    """It would be a third of what `predict` itself takes for one line."""
    shelf.export()
    monkeypatch.setattr(composing, "_composed", None)
    assert len(shelf.predicted().splitlines()) == len(SENTENCES)


@for_each("name", "head.ckpt card.json")
def test_a_head_that_is_damaged_or_lacks_its_card_is_refused(shelf, name):
    shelf.export()
    content = bytearray((shelf.folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (shelf.folder / name).write_bytes(content)
    with refuses(f"{name}: .*restore it"):
        shelf.predicted()
    assert not shelf.output.exists()
    (shelf.folder / "card.json").unlink()
    with refuses("not a readable card of a head"):
        shelf.predicted()


@for_each("name", "weights options.json")
def test_the_biLM_of_a_head_is_not_the_output(shelf, name):
    """Nobody has typed its path: the head's configuration names it."""
    shelf.export()
    shelf.output = shelf.models / "link"
    shelf.output.symlink_to(shelf.models / name)
    before = (shelf.models / name).read_bytes()
    with refuses("link: is an input of the command"):
        shelf.predicted()
    assert (shelf.models / name).read_bytes() == before


def test_another_bilm_is_refused(shelf):
    shelf.export()
    (shelf.models / "weights").write_text("4")
    with refuses("not the weights that the model was trained with"):
        shelf.predicted()


@cases("""
    arguments    | message
    ["task=toy"] | no trained head for task=toy; train one (elmo-bench train task=toy scale=open)
    ["task=toi"] | task=toi: there is no such task; did you mean toy?
    ["models_root=a", "checkpoint=a.ckpt"] | checkpoint=... names a complete model: leave out models_root
    [] | missing argument checkpoint=... (of a run), or task=...
""")
def test_predict_says_in_one_line_what_to_give(refused, bench, arguments, message):
    (bench.folder / "in.jsonl").touch()
    rest = [f"input={bench.folder}/in.jsonl", f"output={bench.folder}/out.jsonl"]
    rest += [f"models_root={bench.folder}"] if arguments[:1] == ["task=toy"] else []
    assert message in refused(Predict, *arguments, *rest)


def test_only_the_checkpoint_of_a_recorded_run_is_exported(shelf, tmp_path):
    (copied := tmp_path / "a" / "b" / "c" / "d").mkdir(parents=True)
    shutil.copy(shelf.checkpoint, copied)
    with refuses("its run has no record"):
        shipped.export(copied / "best.ckpt", shelf.models / "heads")
    saved = load(str(shelf.checkpoint), task="toy")
    saved["history"][-1]["dev"] = {"accuracy": 1.0}
    torch.save(saved, shelf.checkpoint)
    with refuses("not the checkpoint of its record"):
        shelf.export()
    assert not shelf.folder.exists()


def test_a_weight_too_large_for_float16_is_named(shelf):
    saved = load(str(shelf.checkpoint), task="toy")
    saved["state_dict"]["head.project.bias"][0] = 1e6
    torch.save(saved, shelf.checkpoint)
    with refuses(r"head\.project\.bias: too large for float16"):
        shelf.export()


def test_the_command_prints_where_the_head_is(shelf, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["export_head", f"checkpoint={shelf.checkpoint}", f"output={shelf.models}/heads"])
    ExportHead.parse(sys.argv[1:]).run()
    assert capsys.readouterr().out == f"{shelf.folder}\n"


HEADS = sorted((places.ROOT / "models" / "heads").glob("*/card.json"))


@pytest.mark.parametrize("card", HEADS, ids=[path.parent.name for path in HEADS])
def test_the_heads_of_the_project_are_whole(card):
    """Also that their biLM, if it is one of the project's, is still there."""
    saved = shipped.read(card.parent.name)
    assert saved["bilm_sha256"] == read_sealed(card, "card", "")["bilm"]["sha256"]
    bilm = saved["hyper_parameters"]["config"]["bilm"]
    assert sha256(bilm["weights"]) == saved["bilm_sha256"]


def test_lightning_loads_a_checkpoint_tests_it_and_trains_it_without_dev(shelf, tmp_path):
    """With a Trainer of the user's own, whose checkpoint is loaded in turn."""
    module = BenchModule.load_from_checkpoint(shelf.checkpoint, weights_only=True, task="toy")
    reader = elmo_bench.load(shelf.checkpoint, task="toy").reader
    splits, run = reader.load(), schema.from_plain(module.hparams["config"])
    options = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = pl.Trainer(max_epochs=1, default_root_dir=tmp_path, **options)
    trainer.test(module, datamodule=Data(run.task.batch, run.seed, reader, splits), verbose=False)
    assert module.tested == pytest.approx(shelf.record.metrics["test"])
    before = module.head.project.weight.clone()
    del splits["dev"]
    trainer.fit(module, datamodule=Data(run.task.batch, run.seed, reader, splits))
    assert module.history[-1]["dev"] == {}
    assert not torch.equal(module.head.project.weight, before)
    (theirs,) = tmp_path.rglob("epoch=0*.ckpt")
    again = BenchModule.load_from_checkpoint(theirs, task="toy")
    assert torch.equal(again.head.project.weight, module.head.project.weight)
