"""The state carried on through a text (bilm.state=carry): equal to a reading word by word, stored, and resumed."""

import json
import random

import pytest
import torch
from hydra.errors import HydraException

from elmo_bench.bilm import BiLM
from elmo_bench.configuration import composing
from elmo_bench.layers.bilm import BilmLayers, CarriedLayers, read_text
from elmo_bench.layers.source import frozen_layers
from elmo_bench.running.data import stored_layers
from elmo_bench.running.module import BenchModule
from elmo_bench.system import console
from elmo_bench.text.tokens import sentences
from elmo_bench.trained.prediction import predict
from tests import toy
from tests.fakes import cases, jsonl, refuses
from tests.reference_bilm import ReferenceBiLM, near, write_random

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_random(tmp_path_factory.mktemp("bilm"))


def text(number, seed=1):
    """Distinct sentences of different lengths."""
    draw = random.Random(seed)
    words = "the dog cart rain barked .".split()
    return [[f"s{i}", *draw.choices(words, k=draw.randint(0, 6))] for i in range(number)]


def carry(files):
    return BilmLayers(*files, state="carry")


@cases("""
    number | lengths
    40     | [40]
    100    | [34, 33, 33]
""")
def test_a_text_is_read_in_streams_sentence_after_sentence(files, number, lengths):
    """The reference knows neither streams nor batches: each stream is read by it alone."""
    read, reference = text(number), ReferenceBiLM(files)
    found = {i: layers for (i,), layers in CarriedLayers(carry(files).module, read).batches(read)}
    assert sorted(found) == list(range(number))
    first = 0
    for length in lengths:
        state = reference.zeros()
        for i in range(first, first + length):
            layers, state = reference.sentence(read[i], state)
            near(found[i], layers)
        first += length


def test_a_long_text_has_32_streams(files):
    read = text(1100)
    cold = BiLM.from_files(*files, state="zero").encode(read)
    carried = CarriedLayers(carry(files).module, read)
    begun = sorted(i for (i,), layers in carried.batches(read) if torch.equal(layers, cold[i]))
    assert begun == [35 * k if k < 12 else 34 * k + 12 for k in range(32)]  # 1100 = 12 * 35 + 20 * 34


def test_layers_do_not_depend_on_what_was_read_before(files, tmp_path):
    read, carried = text(70), CarriedLayers(carry(files).module, text(70))
    expected = carried.layers(read)
    carried.module.encode([["something", "else"]])
    some = [read[60], read[3]]
    assert torch.equal(carried.layers(some)[0, :, : len(read[60])], expected[60, :, : len(read[60])])
    with pytest.raises(ValueError, match="not in the text"):
        list(carried.batches([["elsewhere"]]))
    other = CarriedLayers(carry(files).module, read[::-1]).layers(read)
    assert (other - expected).abs().max() > 1e-3  # the order counts


def test_each_split_is_a_text_of_its_own(files, tmp_path):
    rows = [{"tokens": sentence} for sentence in text(50)]
    splits = {"train": rows, "dev": rows[10:] + rows[:2]}
    caches = stored_layers(carry(files), splits, ("tokens",), str(tmp_path))  # type: ignore[arg-type]
    assert len({cache.folder for cache in caches.values()}) == 2
    for split, part in splits.items():
        read = list(sentences([part], ("tokens",)))
        alone = frozen_layers(CarriedLayers(carry(files).module, read), read)
        assert torch.equal(caches[split].layers(read), alone)


def test_parts_of_a_row_follow_one_another_and_repetitions_are_left_out():
    rows = [
        {"question": ["who", "?"], "context": [["one", "."], ["two", "."]]},
        {"question": ["when", "?"], "context": [["one", "."], ["two", "."]]},
        {"question": ["two", "."], "context": [["three"]]},
    ]
    read = [" ".join(sentence) for sentence in sentences([rows], ("question", "context"))]
    assert read == ["who ?", "one .", "two .", "when ?", "three"]


def test_damage_is_mended_and_an_interrupt_goes_on(files, tmp_path, monkeypatch):
    monkeypatch.setattr("elmo_bench.layers.shards.SHARD_BYTES", 2000)
    read = text(70)
    expected = frozen_layers(CarriedLayers(carry(files).module, read), read)
    cache = read_text(carry(files), read, tmp_path)
    shards = sorted(cache.folder.glob("*.npz"))
    assert len(shards) > 3
    for shard in shards[2:]:  # as if killed after the second
        shard.unlink()
    assert torch.equal(read_text(carry(files), read, tmp_path).layers(read), expected)
    damaged = sorted(cache.folder.glob("*.bin"))[1]
    damaged.write_bytes(bytes(255 - byte for byte in damaged.read_bytes()))
    assert torch.equal(read_text(carry(files), read, tmp_path).layers(read), expected)


def test_without_room_it_ends_in_one_line(files, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1000})())
    with refuses(r"^no room for .*; with bilm\.state=carry they must be stored"):
        read_text(carry(files), text(3), tmp_path)


# Whole runs.


def bilm(files):
    return f"bilm.options={files[0]}", f"bilm.weights={files[1]}"


def test_the_three_states_are_three_runs_and_one_that_breaks_off_goes_on_alike(bench, files, monkeypatch):
    runs = {state: bench.train(*bilm(files), f"bilm.state={state}") for state in ("zero", "warm", "carry")}
    assert len({record.run for record in runs.values()}) == 3
    assert len({tuple(record.history["loss"]) for record in runs.values()}) == 3
    assert runs["carry"].variant == {"bilm.state": "carry"}
    torn = f"results_root={bench.folder}/torn"
    with monkeypatch.context() as patch:
        patch.setattr(BenchModule, "training_step", broken_off(BenchModule.training_step))
        with pytest.raises(ZeroDivisionError):
            bench.train(*bilm(files), "bilm.state=carry", torn)
    resumed = bench.train(*bilm(files), "bilm.state=carry", torn)
    for key in ("metrics", "layer_weights", "gamma"):
        assert getattr(resumed, key) == json.loads(json.dumps(getattr(runs["carry"], key)))
    assert resumed.history["loss"] == runs["carry"].history["loss"]


def broken_off(step):
    """A training step that fails in the third epoch."""

    def failing(self, *arguments):
        return step(self, *arguments) if (self.current_epoch, arguments[1]) < (2, 3) else 1 // 0

    return failing


def test_predictions_are_those_of_the_run_where_the_text_is_the_same(bench, files):
    record = bench.train(*bilm(files), "bilm.state=carry", "task.fit.epochs=1")
    rows = toy.read(bench.data / "toy" / "test.txt")
    (bench.folder / "in.jsonl").write_text(jsonl({"tokens": row["tokens"]} for row in rows))
    output = bench.folder / "out.jsonl"
    predict(str(bench.results / record.checkpoint), str(bench.folder / "in.jsonl"), str(output), task="toy")
    metric = toy.ToyMetric()
    metric.update([json.loads(line)["prediction"] for line in output.read_text().splitlines()], rows)
    assert metric.compute() == pytest.approx(record.metrics["test"])


def test_what_does_not_go_together_is_refused_in_one_line(bench, files):
    carried = [*bilm(files), "bilm.state=carry"]
    for joint, other in ((["elmo.finetune=joint"], "elmo.finetune=joint"), ([], "bilm.cache=false")):
        with refuses(f"bilm.state=carry and {other}: not both"):
            bench.train(*carried, *joint, "bilm.cache=false")
    assert bench.train(*carried, "elmo.where=none", "task.fit.epochs=1")  # there it is idle


def test_a_hugging_face_model_has_no_such_state(bench):
    with pytest.raises(HydraException) as caught:
        composing.compose(["task=ner", "bilm=transformers", f"bilm.path={bench.folder}", "bilm.state=carry"])
    assert (console.explain(caught.value) or "").startswith("bilm.state: there is no such key")
