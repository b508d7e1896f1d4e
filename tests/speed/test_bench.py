"""What the benchmark counts, what it compares with, and that it runs."""

import json
from typing import Annotated

import pytest
import torch
from rich.console import Console
from torch.utils.flop_counter import FlopCounterMode

from elmo_bench.bilm import BiLM, frozen
from elmo_bench.bilm.frozen import CompiledDirections
from elmo_bench.bilm.options import Options
from elmo_bench.bilm.pretraining.recipe import Recipe
from elmo_bench.commands.command import several
from elmo_bench.configuration.keys import valid
from elmo_bench.speed import PARTS, bench, encode, steps
from elmo_bench.speed.measuring import batch_flops, encoder_flops, in_own_process, lstm_flops, official, read_sentences
from tests.fakes import refuses
from tests.reference_bilm import PLAIN, SIZES, STRANGE, near, write_random

pytestmark = pytest.mark.slow

SHAPES = "elmo_bench.speed.measuring.SHAPES"
OPTIONS = Options.parse(
    {"lstm": {"dim": 2, "projection_dim": 3}, "char_cnn": {"embedding": {"dim": 4}, "filters": [[1, 2], [3, 5]]}}
)


def test_short_and_repeated_words_are_less_work():
    # "ab" is 4 characters with its marks: 4 windows that hold one of them, and one of padding alone
    windows = 5 * 2 * (1 * 4 * 2 + 3 * 4 * 5)
    project = 2 * 7 * 3
    assert encoder_flops(OPTIONS, ["ab"]) == windows + project
    assert encoder_flops(OPTIONS, ["ab", "c" * 46]) - encoder_flops(OPTIONS, ["ab"]) == 2 * (49 * 8 + 48 * 60) + project
    steps = lstm_flops(OPTIONS)
    marks = encoder_flops(OPTIONS, ["<S>", "</S>"])
    assert batch_flops(OPTIONS, [["ab", "ab"], []]) == windows + project + marks + 6 * steps
    assert batch_flops(OPTIONS, []) == 0


@pytest.mark.parametrize("size", SIZES)
def test_the_reference_gives_the_same_layers(size, tmp_path):
    bilm = BiLM.from_files(*write_random(tmp_path, **SIZES[size]), state="zero")
    for batch in (PLAIN, STRANGE, [[]]):
        for a, b in zip(encode.reference(bilm, batch), bilm.encode(batch), strict=True):
            near(a, b)


def test_ways_that_disagree_are_not_compared(tmp_path, monkeypatch):
    bilm = BiLM.from_files(*write_random(tmp_path), state="zero")
    monkeypatch.setattr(encode, "reference", lambda bilm, batch: [layers + 1e-3 for layers in bilm.encode(batch)])
    with pytest.raises(RuntimeError, match="differ"):
        encode.speed("small", bilm, [PLAIN], 1)


def test_sentences_of_the_open_text(data_root):
    sentences, source = read_sentences(data_root, 64)
    assert source == "fiction, web, wiki"
    assert len(sentences) == 64
    assert all(5 <= len(sentence) <= 50 for sentence in sentences)


def test_all_figures_of_a_tiny_plan(monkeypatch, forked):
    monkeypatch.setattr(bench, "ROUNDS", 1)
    monkeypatch.setattr(SHAPES, ((8, 16, 32), (4, 4, 4)))
    monkeypatch.setattr("elmo_bench.speed.measuring.FILTERS", [[1, 4], [3, 8]])
    sizes = {"a": (official(8, 4, 1), 2), "b": (official(12, 6, 2), 1)}
    plan = bench.BenchPlan(sizes, 2, 40, (), tasks=False, growth=2)
    told = []
    measured = json.loads(json.dumps(bench.bench(plan, None, list(PARTS), told.append)))
    assert told == list(PARTS) == list(measured["seconds"])
    rows = {(row["size"], row["way"]): row for row in measured["encode"]}
    for (size, way), row in rows.items():
        reference = rows[size, "reference"]
        assert row["times_reference"] == pytest.approx(row["tokens_a_second"] / reference["tokens_a_second"])
        median_share = row["tokens_a_second"] * row["mflop_a_token"] / row["best_gflops"] / 1e3
        assert row["share_of_bound"] >= 0.999 * median_share > 0
        assert row["difference"] < (0.05 if way == "bf16" else 1e-5)
    assert {("a", "threads: 2, busy"), ("b", "words known"), ("b", "encode")} < set(rows)
    assert len(measured["growth"]) == 5
    assert all(len(row["sizes"]) == len(row["cpu_seconds"]) == 4 for row in measured["growth"])
    assert [row["rows"] for row in measured["memory"]] == [40, 160]
    console = Console(record=True, width=160)
    bench.show(measured, console)
    text = console.export_text()
    assert all(f"{part}: " in text for part in PARTS if measured[part])
    assert "threads: 2, busy" in text


def test_data_that_a_part_lacks_are_one_line(tmp_path, monkeypatch, forked):
    monkeypatch.setattr(bench, "read_sentences", lambda *_: ([], ""))
    plan = bench.BenchPlan({"a": (official(8, 4, 1), 1)})
    with refuses("^steps: .*: no such file"):
        bench.bench(plan, tmp_path, ["steps"], lambda part: None)


def test_parts_are_chosen_by_name():
    assert valid(Annotated[str, several(PARTS)], "growth,encode") == ["encode", "growth"]
    with refuses("there is no part encod; did you mean encode?"):
        valid(Annotated[str, several(PARTS)], "encod")


def test_without_kernels_torch_alone_computes(tmp_path):
    bilm = BiLM.from_files(*write_random(tmp_path), state="zero")
    plain = encode.without_kernels(bilm)
    assert plain._functions(prepared=True)[0].kernels is None  # type: ignore[attr-defined]
    assert (bilm._functions(prepared=True)[0].kernels is None) == (frozen.kernels() is None)  # type: ignore[attr-defined]
    for a, b in zip(plain.encode(PLAIN + STRANGE), bilm.encode(PLAIN + STRANGE), strict=True):
        near(a, b)
    assert isinstance(bilm._frozen[2], CompiledDirections) == (frozen.kernels() is not None)  # type: ignore[index]


def test_a_process_of_its_own_prints_its_figures(tmp_path, forked):
    assert in_own_process(bench.peak_of_corpus, *map(str, write_random(tmp_path)), None, 2) > 50  # MiB


def test_the_memory_of_a_training_step_at_the_papers_sizes(data, forked):
    assert "ner" in steps.tasks("mini")
    found = in_own_process(steps.peak, steps.choose("ner", data))
    assert (found["rows"], found["words"] > 5, found["peak_mib"] > 50) == (12, True, True)  # the file in conf: up to 64


def test_the_work_of_a_pretraining_update_by_hand():
    """Three passes over windows of distinct words, dense layers, steps of the LSTMs and sampled softmax."""
    words = ["<S>", "</S>", "ab", "c" * 46]
    forward = encoder_flops(OPTIONS, words) + 4 * lstm_flops(OPTIONS) + 2 * (2 * 4 * 3 * 3)
    assert bench.update_flops(OPTIONS, words, 4, 3) == 3 * forward


def test_the_products_of_an_lstm_are_counted():
    lstm, x = torch.nn.LSTM(3, 5, batch_first=True), torch.randn(2, 4, 3)
    with torch.no_grad(), FlopCounterMode(display=False, custom_mapping=steps.PRODUCTS) as counted:
        lstm(x)
    assert counted.get_total_flops() == 2 * 8 * 20 * (3 + 5)


def test_training_steps_are_measured(monkeypatch, tmp_path, file):
    monkeypatch.setattr(SHAPES, ((8, 16, 32),))
    sentences = ["Ida B-PER\nsang O\n", "the O\nold O\nferry O\nleft O\nOslo B-LOC\n"] * 3
    file("\n".join(sentences), "a.txt")
    files = [f"task.data.{split}={tmp_path / 'a.txt'}" for split in ("train", "dev", "test")]
    data = ["scale=open", f"data_root={tmp_path}", "task.batch.batch_size=4", *files]
    chosen = steps.choose("ner", data, "open", 2)
    case = steps.Case(chosen, source=steps.RandomLayers(16), data=data)
    found = steps.on_one_core(case)
    assert found["tokens_a_second"] > 0
    assert found["share_of_bound"] > 0
    tokens = sum(len(row["tokens"]) for rows in chosen["batches"] for row in rows)
    assert steps.flops(case, case.batches) == pytest.approx(found["mflop_a_token"] * 1e6 * tokens)


def test_pretraining_is_measured(monkeypatch):
    monkeypatch.setattr(SHAPES, ((8, 16, 32),))
    lstm = {"dim": 8, "projection_dim": 4, "n_layers": 2, "cell_clip": 3, "proj_clip": 3}
    cnn = {"embedding": {"dim": 4}, "filters": [[1, 4], [2, 4]], "max_characters_per_token": 50}
    recipe = Recipe(
        options={"lstm": lstm, "char_cnn": cnn},
        text=[],
        heldout=[],
        vocabulary=50,
        tokens=1,
        rows=4,
        steps=5,
        negatives=8,
    )
    sentences, _ = read_sentences(None, 40)
    found = bench.pretraining_speed(recipe, sentences, 60, torch.device("cpu"), compile=False)
    rate = found["best_gflops"] * 1e9
    assert found["tokens_a_second"] > 0
    assert found["share_of_bound"] == pytest.approx(found["tokens_a_second"] * found["mflop_a_token"] * 1e6 / rate)
