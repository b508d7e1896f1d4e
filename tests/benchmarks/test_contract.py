"""Every folder of tasks/ keeps the contract of elmo_bench/task.py, on small generated data."""

import importlib
import json
from functools import cache
from pathlib import Path

import pytest
import torch
from datasets import DatasetDict
from hydra.utils import instantiate

from elmo_bench.configuration import composing, pages
from elmo_bench.records import settings
from elmo_bench.records.missing import check_files
from elmo_bench.running.build import build
from elmo_bench.system import places
from elmo_bench.task import Batch, Tokens
from elmo_bench.text.part import Part
from elmo_bench.text.vocabulary import Vocabulary
from tests.fakes import FakeBiLM, for_each

FOLDERS = sorted(path.parent.name for path in (places.ROOT / "tasks").glob("*/reader.py"))
SIZES = "{lm:[300,50,50],ner:[40,12,12],srl:[30,10,10],coref:[6,4,3],snli:[60,20,20],squad:[8,4,4],sst:[60,20,20]}"
CONSTANTS = {  # a softmax does not see what it adds to every score
    "head.spans.attention.bias", "head.attention.similarity.b", "head.attention.similarity.u", "head.start.bias",
    "head.end.bias",
}  # fmt: skip

pytestmark = [pytest.mark.slow, pytest.mark.parametrize("task", FOLDERS)]


@pytest.fixture(scope="session")
def root(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("mini")


def choices(task: str, root: Path) -> list[str]:
    """A scale that the task offers, with small data: the mini scale's, or else those of the task's own example."""
    scales = pages.scales(task)
    if "mini" in scales:
        return ["scale=mini", f"scale.folder={root}", f"scale.sizes={SIZES}"]
    importlib.import_module(f"tasks.{task}.reader").write_example(root / task)
    return [f"scale={scales[0]}", f"data_root={root / task}"]


@cache
def load(task: str, root: Path):
    """The task's configuration, its reader, and its data; read once."""
    run = composing.validated(
        composing.compose([f"task={task}", *choices(task, root), "elmo.where=none", "elmo.dropout=0", "vectors=random"])
    )
    check_files(run)
    settings.make(run)
    reader = instantiate(run.task.reader)
    return run, reader, reader.load()


@pytest.fixture
def loaded(task, root):
    return load(task, root)


def batch_of(loaded, split="train", size=6) -> Batch:
    _, reader, splits = loaded
    return reader.collate([splits[split][i] for i in range(min(size, len(splits[split])))])


def model(loaded, where="none"):
    run, reader, _ = loaded
    run = run.model_copy(update={"elmo": run.elmo.model_copy(update={"where": where})})
    torch.manual_seed(1)
    return build(run, reader, None if where == "none" else FakeBiLM())


def test_the_folder_holds_what_every_task_holds(task):
    folder = places.ROOT / "tasks" / task
    assert all((folder / name).is_file() for name in "README.md reader.py head.py metric.py".split())
    assert pages.scales(task)
    assert {path.stem for path in pages.page(task).with_suffix("").glob("*.yaml")} <= set(pages.scales(task))
    for part in ("reader", "head", "metric"):
        importlib.import_module(f"tasks.{task}.{part}")


def test_the_reader_gives_three_splits_and_vocabularies_from_training_alone(task, loaded):
    run, reader, splits = loaded
    assert isinstance(splits, DatasetDict)
    assert set(splits) == {"train", "dev", "test"}
    assert all(len(rows) for rows in splits.values())
    assert reader.fields
    assert all(field in splits["dev"].column_names for field in reader.fields)
    assert all(isinstance(vocabulary, Vocabulary) for vocabulary in reader.vocabularies.values())
    assert "words" in reader.vocabularies
    json.dumps(splits["train"][0])


def test_a_part_of_the_training_data_has_vocabularies_of_its_own(task, loaded):
    run, reader, whole = loaded
    sizes = []
    for fraction in (0.3, 0.6):
        other = instantiate(run.task.reader)
        splits = other.load(Part(fraction, seed=2))
        rows = [json.dumps(row, sort_keys=True) for row in splits["train"]]
        everything = [json.dumps(row, sort_keys=True) for row in whole["train"]]
        left = iter(everything)
        assert all(row in left for row in rows)  # in the order of the file; rows may be equal
        assert all(splits[split].to_list() == whole[split].to_list() for split in ("dev", "test"))
        used = {word.lower() if other.lower else word for row in splits["train"] for word in words_in(row, other)}
        assert {*other.vocabularies["words"].items[2:]} <= used
        sizes.append(len(other.vocabularies["words"]))
    assert sizes[0] <= sizes[1] <= len(reader.vocabularies["words"])


def words_in(row, reader):
    values = [value for field in reader.fields for value in row[field]]
    return [word for value in values for word in ([value] if isinstance(value, str) else value)]


def test_batches_are_padded_as_the_contract_says(task, loaded):
    batch = batch_of(loaded)
    assert len(batch.rows) == 6
    assert batch.texts
    for tokens in batch.texts.values():
        assert isinstance(tokens, Tokens)
        assert tokens.mask.dtype == torch.bool
        assert tokens.words.dtype == torch.int64
        assert tokens.words.shape == tokens.mask.shape
        assert tokens.mask.sum(1).tolist() == [len(sentence) for sentence in tokens.sentences]
        assert (tokens.words[~tokens.mask] == 0).all()
        assert tokens.chars is None or tokens.chars.shape[:2] == tokens.mask.shape
    assert batch.labels


@for_each("where", "none input output both")
def test_the_head_learns_wherever_elmo_stands(task, loaded, where):
    module, batch = model(loaded, where), batch_of(loaded)
    module.train()
    loss = module(batch).loss
    assert loss.shape == ()
    assert torch.isfinite(loss)
    loss.backward()
    gradients = {name: p.grad for name, p in module.named_parameters() if p.requires_grad}
    unmoved = {name for name, grad in gradients.items() if grad is None or not grad.any()}
    assert unmoved - CONSTANTS == set()
    expected = {"none": (), "input": ("input",), "output": ("output",), "both": ("input", "output")}[where]
    for place in ("input", "output"):
        assert (f"representation.elmo.mixes.{place}.gamma" in gradients) is (place in expected)


@for_each("where", "none both")
def test_it_trains_and_predicts_in_mixed_precision(task, loaded, where):
    """As with trainer.precision=bf16-mixed: a finite loss in float32, gradients for all parameters, predictions."""
    module, batch = model(loaded, where).train(), batch_of(loaded)
    with torch.autocast("cpu"):
        loss = module(batch).loss
    loss.backward()
    assert loss.dtype == torch.float32
    assert torch.isfinite(loss)
    gradients = {name: p.grad for name, p in module.named_parameters() if p.requires_grad}
    assert [name for name, each in gradients.items() if each is None or not torch.isfinite(each).all()] == []
    with torch.no_grad(), torch.autocast("cpu"):
        predictions = module.eval().predict_step(batch_of(loaded, "dev"))
    assert json.loads(json.dumps(predictions)) == predictions
    assert len(predictions) == len(batch_of(loaded, "dev").rows)


def test_the_loss_of_a_batch_is_the_mean_of_that_of_each_row_alone(loaded):
    """So that neither padding nor the other rows matter."""
    module, batch = model(loaded, "both").eval(), batch_of(loaded)
    with torch.no_grad():
        alone = [module(loaded[1].collate([row])).loss for row in batch.rows]
        torch.testing.assert_close(module(batch).loss, torch.stack(alone).mean(), rtol=1e-4, atol=1e-5)


def test_predictions_are_json_as_of_each_row_alone_and_the_metric_takes_them(task, loaded):
    run, reader, _ = loaded
    module, batch = model(loaded, "input").eval(), batch_of(loaded, "dev")
    with torch.no_grad():
        predictions = module.predict_step(batch)
        assert predictions == [module.predict_step(reader.collate([row]))[0] for row in batch.rows]
    assert json.loads(json.dumps(predictions)) == predictions
    metric = instantiate(run.task.metric)
    metric.update(predictions, batch.rows)
    scores = metric.compute()
    assert run.task.monitor in scores
    assert all(isinstance(value, float) and 0 <= value <= 100 for value in scores.values())


def test_a_batch_has_gold_labels_where_all_rows_have_them(task, loaded):
    _, reader, splits = loaded
    examples = getattr(importlib.import_module(f"tasks.{task}"), "EXAMPLES", None)
    if examples is None:
        pytest.skip(f"{task} has no examples of its input")
    raw = reader.from_text(**examples[0])
    row, features = splits["train"][0], reader.collate([raw]).labels.keys()
    assert reader.collate([row, raw]).labels.keys() == features < reader.collate([row]).labels.keys()


def test_a_reader_with_restored_vocabularies_makes_the_same_batches(task, loaded):
    run, reader, splits = loaded
    other = instantiate(run.task.reader)
    states = json.loads(json.dumps({name: each.state() for name, each in reader.vocabularies.items()}))
    other.vocabularies = {name: Vocabulary.restore(state) for name, state in states.items()}
    rows = [splits["test"][i] for i in range(3)]
    for one, two in zip(reader.collate(rows).texts.values(), other.collate(rows).texts.values(), strict=True):
        assert torch.equal(one.words, two.words)
        assert one.sentences == two.sentences
