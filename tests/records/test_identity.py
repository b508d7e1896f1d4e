"""What makes two runs the same, and what a run is called."""

import gzip
import json
import lzma
import operator
import re
from typing import Any

import pytest
import yaml
from pydantic import create_model

from elmo_bench.configuration import composing, pages, schema
from elmo_bench.configuration.composing import FORMER_ARMS
from elmo_bench.configuration.keys import Keys, fields, inner
from elmo_bench.records.record import label
from elmo_bench.records.settings import Identity
from elmo_bench.system.storage import hashing
from elmo_bench.system.storage.hashing import content_sha256, fingerprint
from elmo_bench.text.source import of_hub
from tests.fakes import cases, for_each, refuses

pytestmark = pytest.mark.slow


def run_id(bench, *changes):
    return Identity(bench.validated(*changes)).run


def arm_and_variant(bench, *changes):
    run = bench.validated(*changes)
    return run.arm, run.variant


def test_places_and_machine_are_no_part_of_a_run(bench, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "toy").mkdir(parents=True)
    for file in (bench.data / "toy").iterdir():
        (elsewhere / "toy" / file.name).write_bytes(file.read_bytes())
    (elsewhere / "w2").write_bytes((bench.folder / "weights").read_bytes())
    same = [
        f"data_root={elsewhere}", f"bilm.weights={elsewhere}/w2", "results_root=r", "cache_root=c", "logger=wandb",
        "trainer.threads=1", "trainer=gpu", "force=true", "debug=true", "bilm.name=other", "fraction=1",
        "trainer.accumulate_grad_batches=1", "trainer.strategy=ddp", "+trainer.log_every_n_steps=1",
        "trainer.devices=[1]", "callbacks=lr_monitor", "logger=tensorboard", "compile=true",
        "trainer.deterministic=true", "+callbacks.mine._target_=pytorch_lightning.callbacks.TQDMProgressBar",
    ]  # fmt: skip
    first = run_id(bench)
    for change in same:
        assert run_id(bench, change) == first, change
    assert run_id(bench, "trainer.devices=[0,1]") == run_id(bench, "trainer.devices=2") != first


@cases("""
    change
    seed=2
    elmo.lambda=0.2
    elmo.where=both
    task.optimizer.lr=0.1
    task.fit.epochs=5
    task.version=2
    fraction=0.5
    bilm.state=carry
    elmo.gamma=false
    task.batch.batch_size=4
    bilm.state=zero
    bilm.cache=false
    trainer.precision=bf16-mixed
    trainer.accumulate_grad_batches=2
    trainer.min_epochs=2
    callbacks=early_stopping
""")
def test_what_can_change_a_result_makes_another_run(bench, change):
    assert run_id(bench, change) != run_id(bench)


def test_what_lies_at_the_places_is_part_of_a_run(bench):
    first, baseline = run_id(bench), run_id(bench, "elmo.where=none")
    (bench.folder / "weights").write_text("4")
    second = run_id(bench)
    assert second != first
    assert run_id(bench, "elmo.where=none") == baseline  # which has no biLM
    with open(bench.data / "toy" / "test.txt", "a") as file:
        file.write("ba/A\n")
    assert run_id(bench) != second
    assert run_id(bench, "elmo.where=none") != baseline


def test_a_group_is_a_run_less_its_seed(bench):
    one, two, other = (
        Identity(bench.validated(*c)) for c in (("seed=1",), ("seed=2",), ("seed=2", "elmo.gamma=false"))
    )
    assert one.group == two.group != other.group
    assert one.run != two.run


BLOCKS = (
    "elmo", "bilm", "vectors", "scale", "task", "task.fit", "task.batch", "task.clip", "task.schedule", "trainer",
    "logger",
)  # fmt: skip


@pytest.mark.parametrize("place", BLOCKS)
def test_a_new_key_with_a_default_changes_no_identity(bench, place):
    """Adds a field to a typed block, as a later version of the code would."""
    block = operator.attrgetter(place)(bench.validated())
    later = create_model("Later", __base__=type(block), later=(int, 7)).model_construct(**dict(block), later=7)
    assert later.identifying() == block.identifying()
    assert later.model_copy(update={"later": 8}).identifying() == block.identifying() | {"later": 8}


def test_another_scales_page_changes_no_identity(bench):
    def id_at(scale):
        return Identity(composing.run_config(["task=ner", f"scale={scale}", "data_root=x"])).run

    first = {scale: id_at(scale) for scale in ("mini", "open")}
    page = bench.conf / "task" / "ner" / "open.yaml"
    page.write_text(page.read_text() + "\nelmo: {dropout: 0.123}\n")
    assert id_at("mini") == first["mini"]
    assert id_at("open") != first["open"]


def test_the_defaults_that_identities_leave_out_are_pinned():
    """Changing one changes which settings an old id stands for: raise `settings.FORMAT`, or keep the default."""
    blocks = {name: getattr(schema, name) for name in PINNED}
    assert {name: pinned(block) for name, block in blocks.items()} == PINNED


def pinned(block: type[Keys]) -> dict[str, Any]:
    """The defaults of a block's keys on which results depend."""
    return {
        name: {} if inner(field.annotation) else "required" if field.is_required() else field.default
        for name, field in fields(block).items()
        if not field.exclude
    }


PINNED = yaml.safe_load("""
ElmoConfig: {where: input, layers: all, gamma: true, lambda: 0.0, layer_norm: false, dropout: 0.5, projection: null,
             words: beside, finetune: none}
LayersConfig: {_target_: required, cache: true}
BilmConfig: {_target_: required, cache: true, options: null, weights: null, state: warm, like: null, seed: 1}
TransformersConfig: {_target_: required, cache: true, path: null, pooling: first}
VectorsConfig: {source: page, text: null, size: null, lower: false, window: 5, negative: 5, sample: 0.001,
                alpha: 0.025, min_count: 3, epochs: 5, seed: 1}
VectorSetConfig: {size: required, cased: true, lookup: null, missing: null, unit: null}
TuningConfig: {epochs: required, lr: required, softmax_lr: required, warmup: required, rows: required,
               steps: required, negatives: required, clip: required, dropout: 0.0, bfloat16: false, seed: 1,
               softmax: {}}
NewSoftmaxConfig: {vocabulary: required, epochs: required, lr: required}
ScaleConfig: {name: required, version: null, seed: 1, sizes: null}
FitConfig: {epochs: required, patience: null, least_updates: 1000}
BatchConfig: {batch_size: required, token_budget: null}
ClipConfig: {value: null, by: norm}
ScheduleConfig: {scheduler: null, interval: epoch}
TaskConfig: {name: required, monitor: required, reader: required, head: required, metric: required,
             optimizer: required, version: 1, words: null, chars: null, average: null, schedule: {}, clip: {},
             batch: {}, fit: {}}
TrainerConfig: {devices: 1, precision: 32-true, tf32: false, limit_batches: null, accumulate_grad_batches: 1,
                min_epochs: null, sync_batchnorm: false}
""")


def test_a_file_has_one_digest_compressed_or_not(tmp_path, file):
    file(b"abc", "a.txt")
    expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    file(gzip.compress(b"abc"), "a.txt.gz")
    file(lzma.compress(b"abc"), "a.txt.xz")
    assert {content_sha256(tmp_path / name) for name in ("a.txt", "a.txt.gz", "a.txt.xz")} == {expected}
    file(gzip.compress(b"abc")[:-9], "a.txt.gz")
    with refuses("damaged"):
        content_sha256(tmp_path / "a.txt.gz")


def test_the_digest_of_a_folder_is_of_its_names_and_contents(tmp_path):
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
    (tmp_path / "one" / "a.txt").write_bytes(b"abc")
    (tmp_path / "two" / "a.txt.xz").write_bytes(lzma.compress(b"abc"))
    first = content_sha256(tmp_path / "one")
    assert content_sha256(tmp_path / "two") == first
    (tmp_path / "one" / "a.txt").rename(tmp_path / "one" / "b.txt")
    assert content_sha256(tmp_path / "one") != first


def test_digests_of_large_files_are_remembered_until_the_file_changes(tmp_path, monkeypatch):
    monkeypatch.setattr("elmo_bench.system.storage.hashing.REMEMBERED", 0)
    large, memory = tmp_path / "large", tmp_path / "cache" / "digests.json"
    large.write_bytes(b"abc")
    first = content_sha256(large, memory)
    assert json.loads(memory.read_text())[str(large)][-1] == first
    large.write_bytes(b"abd")
    second = content_sha256(large, memory)
    assert second != first
    whole = memory.read_bytes()
    for place in range(len(whole)):  # no damage gives another id
        memory.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        hashing._remembered.cache_clear()  # as another process
        assert content_sha256(large, memory) == second


@pytest.mark.parametrize("task", pages.tasks())
def test_what_the_project_makes_itself_is_named_by_its_recipe(task, tmp_path):
    """On a machine that has neither the data nor the biLM nor the vectors, the id is known; nothing is made for it."""
    changes = ("bilm=untrained", "bilm=tuned", "vectors=random") if task == "ner" else ()  # of which no task is other
    for change in ("arm=baseline", "arm=elmo", *changes):
        cfg = composing.compose([f"task={task}", change, f"cache_root={tmp_path}"])
        described = Identity(composing.validated(cfg)).settings
        assert str(tmp_path) not in json.dumps(described)
        assert ("recipe" in described.get("bilm", {})) is ("bilm" in described)
    assert not list(tmp_path.iterdir())


# Arms and variants.


def test_a_variant_is_what_differs_from_the_tasks_page(bench):
    assert arm_and_variant(bench, "seed=4", "trainer.threads=1", "data_root=x") == ("elmo", {})
    assert arm_and_variant(bench, "arm=baseline") == ("baseline", {})
    changes = {"elmo.layers": "last", "task.batch.batch_size": 4}
    assert arm_and_variant(bench, "elmo.layers=last", "task.batch.batch_size=4") == ("elmo", changes)


def test_a_variant_says_what_was_typed_whatever_the_defaults_of_the_keys_are():
    page = ["task=ner", "elmo.dropout=0.5", "elmo.where=both"]  # 0.5 is the key's default, and not the file's
    assert composing.run_config(page).variant == {"elmo.dropout": 0.5, "elmo.where": "both"}
    where = composing.run_config(["task=snli", "elmo.where=input"])  # input is the key's default
    assert where.variant == {"elmo.where": "input"}
    assert label("input", where.variant) == "+ELMo (input)"


@cases(r"""
    typed                                           | changes
    scale=open vectors=random                       | {"vectors": "random"}
    scale=open vectors=random task.words.size=20    | {"task.words.size": 20, "vectors": "random"}
    vectors=senna vectors.sets.senna.unit=true      | {"vectors": "senna", "vectors.sets.senna.unit": true}
    bilm=tuned bilm.parent=open                     | {"bilm": "tuned", "bilm.parent": "open"}
    bilm=tuned bilm.tuning.epochs=9                 | {"bilm": "tuned", "bilm.tuning.epochs": 9}
    vectors=paper                                   | {"vectors": "senna"}
    callbacks=[lr_monitor,early_stopping]           | {"callbacks": "early_stopping"}
    callbacks=early_stopping callbacks.early_stopping.patience=10 \
        | {"callbacks": "early_stopping", "callbacks.early_stopping.patience": 10}
    +callbacks.mine._target_=my.Thing               | {"callbacks.mine._target_": "my.Thing"}
    +task.data.tag_names=[O,B-PER]                  | {"task.data.tag_names": ["O", "B-PER"]}
""")
def test_a_variant_has_what_was_typed_beside_a_choice_of_files(typed, changes):
    assert composing.run_config(["task=ner", *typed.split()]).variant == changes


def test_a_former_arm_is_answered_with_todays_words():
    for arm, now in FORMER_ARMS.items():
        with refuses(re.escape(f"arm={arm} is now {now}")):
            composing.compose([f"arm={arm}"])
        composing.compose(now.split())


@cases("""
    task | scale
    snli | paper
    sst5 | open
    toy  | open
""")
def test_the_baseline_is_one_switch_with_one_id(bench, task, scale):
    """What a task's baseline has otherwise than its model with ELMo stands in its file, whichever way it is chosen."""
    chosen = [f"task={task}", f"scale={scale}", "data_root=x", "vectors=random"]
    runs = [composing.run_config([*chosen, one]) for one in ("arm=baseline", "elmo.where=none")]
    assert runs[0] == runs[1].model_copy(update={"typed": runs[0].typed})
    assert runs[0].variant == {"vectors": "random"}
    assert len({fingerprint(Identity(run).settings) for run in runs}) == 1


def test_a_baseline_of_sst5_has_less_dropout_and_of_snli_no_l2_at_paper():
    found = {}
    for task, key in (("sst5", "embedding_dropout"), ("snli", "l2")):
        for arm in ("baseline", "elmo"):
            cfg = composing.compose([f"task={task}", "scale=paper", f"arm={arm}"])
            found[task, arm] = composing.validated(cfg).task.head[key]
    assert found == {
        ("sst5", "baseline"): 0.25, ("sst5", "elmo"): 0.5, ("snli", "baseline"): 0.0, ("snli", "elmo"): 1e-4,
    }  # fmt: skip
    typed = composing.run_config("task=sst5 scale=paper arm=baseline task.head.embedding_dropout=0.4".split())
    assert typed.task.head["embedding_dropout"] == 0.4


@for_each("task", "ner snli sst5 squad")
def test_the_paper_scale_is_the_hub_s_unless_files_are_named(task):
    def data(*given):
        return composing.run_config([f"task={task}", "scale=paper", *given]).task.data or {}

    assert of_hub(data())
    assert not of_hub(data("task.data.train=mine.jsonl"))
    assert data("task.data.train=mine.jsonl").get("test") is None
    if task != "squad":
        there = data("task.data.folder=/x")
        assert not of_hub(there)
        assert None not in [there[split] for split in ("train", "dev", "test")]


def test_a_run_with_elmo_is_never_a_baseline(bench):
    changes = {"elmo.where": "output", "elmo.gamma": False, "elmo.layers": "last"}
    given = [f"{key}={value}" for key, value in changes.items()]
    assert arm_and_variant(bench, *given) == ("elmo", changes)
    assert arm_and_variant(bench, "elmo.where=none", "elmo.lambda=3") == ("baseline", {})
    assert arm_and_variant(bench, "arm=baseline", "elmo.where=both") == ("baseline", {})


def test_runs_are_called_by_arm_place_and_what_was_typed():
    assert label("none", {}) == "baseline"
    assert label("none", {"vectors": "random"}) == "baseline (random vectors)"
    assert label("both", {"elmo.layers": "last"}) == "+ELMo (both; layers=last)"
    stopping = {"mine": {"_target_": "pytorch_lightning.callbacks.EarlyStopping", "monitor": "dev/f1"}}
    told = "callbacks.mine=EarlyStopping, callbacks.mine.monitor=dev/f1"
    assert label("input", {"callbacks": stopping}) == f"+ELMo (input; {told})"
    assert label("input", {"elmo.where": "input"}) == "+ELMo (input)"
    odd = {"bilm": "tuned", "elmo.gamma": False, "task.words": None, "task.reader.list": "<elsewhere>/list.txt"}
    odd["task.optimizer._target_"] = "torch.optim.SGD"
    mine = {"callbacks": {"mine": {"_target_": "my.Thing", "size": 3}}, "callbacks.other": {"_target_": "my.Other"}}
    assert label("none", mine) == "baseline (callbacks.mine=Thing, callbacks.mine.size=3, callbacks.other=Other)"
    chosen = {"callbacks": "early_stopping", "callbacks.early_stopping.patience": 10}
    assert label("none", chosen) == "baseline (callbacks=early_stopping, callbacks.early_stopping.patience=10)"
    assert label("none", {"task.chars": {"_target_": "a.CharCNN"}}) == "baseline (task.chars=CharCNN)"
    assert label("none", {"scale.sizes": {"ner": 30}}) == "baseline (scale.sizes={ner:30})"
    assert label("input", odd) == (
        "+ELMo (input; biLM tuned, gamma=false, task.words=null, task.reader.list=list.txt, "
        "task.optimizer._target_=SGD)"
    )
