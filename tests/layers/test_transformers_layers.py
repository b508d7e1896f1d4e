"""Hidden states of a Hugging Face model as layers: the model's own, pooled to words, from local files alone."""

import json
import shutil
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from elmo_bench.commands.compare import Report
from elmo_bench.configuration import composing
from elmo_bench.configuration.schema import ElmoConfig
from elmo_bench.embedding.representation import Elmo
from elmo_bench.layers import model_folder
from elmo_bench.layers.model_folder import sha256
from elmo_bench.layers.transformers import TransformersLayers
from elmo_bench.nn.packing import budgeted
from elmo_bench.records.settings import Identity
from elmo_bench.running.launch import train
from elmo_bench.task import Tokens
from elmo_bench.trained.prediction import predict
from tests import tiny_bilm
from tests.fakes import for_each, pages_of, refuses

transformers = pytest.importorskip("transformers")

SENTENCES = [["ba", "bakoxyz", "lu"], ["deg"], "ma ne supori Ba é gi".split(), []]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_bilm.write_bert(tmp_path_factory.mktemp("bert"), positions=12)


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """Whoever would open a connection fails."""

    def refuse(*_):
        raise AssertionError("a connection was asked for")

    monkeypatch.setattr("socket.socket.connect", refuse)


@pytest.fixture
def copied(folder, tmp_path) -> Path:
    """A folder to be damaged."""
    return Path(shutil.copytree(folder, tmp_path / "model"))


def directly(folder, sentence) -> tuple[torch.Tensor, list[int | None]]:
    """The model called by itself: hidden states (n_layers, S, W), and the word of each piece."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    inputs = tokenizer(sentence, is_split_into_words=True, return_tensors="pt")
    with torch.no_grad():
        model = transformers.AutoModel.from_pretrained(folder).eval()
        answer = model(**inputs, output_hidden_states=True)
    return torch.cat(answer.hidden_states), inputs.word_ids(0)


@for_each("pooling", "first mean")
def test_layers_are_the_hidden_states_of_the_model_pooled_to_words(folder, pooling):
    source = TransformersLayers(folder, pooling)
    assert (source.n_layers, source.width) == (3, 16)
    for sentence in SENTENCES[:3]:
        states, words = directly(folder, sentence)
        layers = source.layers([sentence])
        assert layers.shape == (1, 3, len(sentence), 16)
        for word in range(len(sentence)):
            places = [place for place, of in enumerate(words) if of == word]
            expected = states[:, places[0]] if pooling == "first" else states[:, places].mean(1)
            torch.testing.assert_close(layers[0, :, word], expected, atol=1e-5, rtol=1e-5)
    assert len([word for word in directly(folder, SENTENCES[0])[1] if word == 1]) > 2  # there is something to pool


@for_each("token_budget", "1 16 4096")
def test_a_sentence_has_the_same_layers_in_any_batch(folder, token_budget):
    """To rounding: the sums of another batch are of another shape."""
    source = TransformersLayers(folder, "mean", token_budget)
    together = source.layers(SENTENCES)
    assert together.shape == (4, 3, 6, 16)
    by_index = {i: layers for batch in source.batches(SENTENCES) for i, layers in split(SENTENCES, *batch)}
    assert sorted(by_index) == [0, 1, 2, 3]
    for i, sentence in enumerate(SENTENCES):
        alone = source.layers([sentence])[0]
        torch.testing.assert_close(together[i, :, : len(sentence)], alone, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(by_index[i], alone, atol=1e-5, rtol=1e-5)
        assert not together[i, :, len(sentence) :].any()
    assert source.layers([]).shape == (0, 3, 0, 16)


def split(sentences, indices, layers):
    return zip(indices, layers.split([len(sentences[i]) for i in indices], dim=1), strict=True)


def test_batches_stay_within_their_budget_padding_included():
    lengths = [3, 50, 7, 7, 1, 3]
    batches = list(budgeted(lengths, 16, padded=True))
    assert sorted(i for batch in batches for i in batch) == [0, 1, 2, 3, 4, 5]
    assert batches[0] == [1]  # too long for any budget: alone
    assert all(len(batch) * max(lengths[i] for i in batch) <= 16 for batch in batches[1:])
    assert len(batches) == 3


@pytest.mark.parametrize("odd", ["", "\u200b", "\x00", "\ud800", "\U0001f600", " ", "[SEP]"])
def test_every_word_gets_a_vector(folder, odd):
    layers = TransformersLayers(folder, "mean").layers([["ba", odd, "lu"]])
    assert layers.shape == (1, 3, 3, 16)
    assert layers.isfinite().all()
    assert layers[0, :, 1].any(dim=-1).all()


def test_a_word_of_no_piece_is_read_as_the_unknown_piece(folder):
    source = TransformersLayers(folder)
    torch.testing.assert_close(source.layers([["ba", "\x00", "lu"]]), source.layers([["ba", "[UNK]", "lu"]]))


def test_a_sentence_beyond_the_positions_is_read_in_windows_cut_between_words(folder):
    """12 positions, two of them for [CLS] and [SEP]."""
    source = TransformersLayers(folder, "mean")
    sentence = ["ba"] * 6 + ["bakoxyzgi"] + ["de", "lu"] * 4  # 6 pieces, then 5, then 8
    windows = [["ba"] * 6, "bakoxyzgi de lu de lu de".split(), ["lu", "de", "lu"]]
    assert [[len(window.starts) for window in each] for each in source.pieces.windows([sentence])] == [[6, 6, 3]]
    expected = torch.cat([source.layers([window])[0] for window in windows], dim=1)
    torch.testing.assert_close(source.layers([sentence, ["ba"]])[0], expected, atol=1e-5, rtol=1e-5)


def test_a_word_that_no_window_holds_loses_its_last_pieces(folder):
    source = TransformersLayers(folder, "mean")
    long, cut = "x" * 40, "x" * 10
    torch.testing.assert_close(source.layers([["ba", long, "lu"]])[:, :, 1], source.layers([[cut]])[:, :, 0])


def test_the_digest_follows_configuration_weights_and_tokenizer_alone(copied):
    before = model_folder.sha256(copied)
    assert TransformersLayers(copied).sha256 == before
    (copied / "README.md").write_text("A card.")
    (copied / "pytorch_model.bin").write_text("never read")
    assert model_folder.sha256(copied) == before
    digests = {before}
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        kept = (copied / name).read_bytes()
        (copied / name).write_bytes(kept + b" ")
        digests.add(model_folder.sha256(copied))
        (copied / name).write_bytes(kept)
    assert len(digests) == 4


def test_joint_training_reaches_the_model(folder):
    words = torch.tensor([[1, 1, 1]])
    tokens = Tokens(words, None, SENTENCES[:1], words > 0)
    model = Elmo(TransformersLayers(folder), ElmoConfig(finetune="joint", dropout=0.0))
    model(tokens)["input"].square().sum().backward()
    trained = dict(model.named_parameters())
    assert trained["bilm.encoder.layer.0.attention.self.query.weight"].grad.abs().sum() > 0
    assert "bilm.encoder.layer.0.attention.self.query.weight" in model.state_dict()


def save(model, folder: Path) -> Path:
    tiny_bilm.write_bert(folder)
    (folder / "model.safetensors").unlink()
    model.save_pretrained(folder)
    return folder


def test_of_an_encoder_decoder_the_encoder_is_used(tmp_path):
    sizes = {"vocab_size": 300, "d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2}
    model = transformers.T5Model(transformers.T5Config(**sizes)).eval()
    source = TransformersLayers(save(model, tmp_path / "t5"))
    assert (source.n_layers, source.width) == (3, 16)
    ids = torch.tensor([source.pieces.windows([["ba", "lu"]])[0][0].ids])
    with torch.no_grad():
        states = torch.cat(model.encoder(ids, output_hidden_states=True).hidden_states)
    torch.testing.assert_close(source.layers([["ba", "lu"]])[0], states[:, 1:3])


def byte_level(folder: Path, marks: bool) -> int:
    """A byte-level BPE tokenizer, with RoBERTa's special tokens or without any; returns its size."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    special = "<s> <pad> </s> <unk> <mask>".split() if marks else []
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=280, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(["ba lu ba lu de ba"] * 9, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    merges = [tuple(pair) for pair in model["merges"]]
    if marks:
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
        made = transformers.RobertaTokenizer(vocab=model["vocab"], merges=merges)
    else:
        made = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer)
    made.save_pretrained(folder)
    return len(made)


SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}


def test_roberta_reads_words_as_behind_a_space_and_all_of_its_positions(tmp_path):
    """Its first position stands behind the padding index: 22 hold 20 pieces."""
    size = byte_level(tmp_path, marks=True)
    config = transformers.RobertaConfig(vocab_size=size, max_position_embeddings=22, pad_token_id=1, **SIZES)
    transformers.RobertaModel(config).save_pretrained(tmp_path)
    source = TransformersLayers(tmp_path)
    (window,) = source.pieces.windows([["ba", "lu"]])[0]
    assert source.pieces.tokenizer.convert_ids_to_tokens(window.ids) == "<s> Ġba Ġlu </s>".split()
    assert source.pieces.room == 18
    assert source.layers([["ba"] * 50, ["", "lu"]]).isfinite().all()


def test_gpt_2_has_no_special_tokens_and_no_padding(tmp_path):
    size = byte_level(tmp_path, marks=False)
    config = transformers.GPT2Config(vocab_size=size, n_positions=16, n_embd=16, n_layer=2, n_head=2)
    model = transformers.GPT2Model(config).eval()
    model.save_pretrained(tmp_path)
    source = TransformersLayers(tmp_path)
    sentences = [["ba", "lu"], ["de", "xyz", "", "lu", "ba"] * 9]
    layers = source.layers(sentences)
    ids = torch.tensor([source.pieces.windows(sentences)[0][0].ids])
    with torch.no_grad():
        states = torch.cat(model(ids, output_hidden_states=True).hidden_states)
    torch.testing.assert_close(layers[0, :, :2], states, atol=1e-5, rtol=1e-5)
    assert layers[1].abs().sum((0, 2)).all()


def remove(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


def change(name, content):
    return lambda folder: (folder / name).write_text(content)


def change_weights(action):
    def change(folder):
        weights = load_file(folder / "model.safetensors")
        action(weights)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    return change


lose_a_weight = change_weights(lambda weights: weights.pop("encoder.layer.0.output.dense.weight"))
spoil_a_weight = change_weights(lambda weights: weights["encoder.layer.0.output.dense.bias"][3].fill_(float("nan")))


def more_pieces_than_embeddings(folder):
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.add_tokens(["wholly", "new"])
    tokenizer.save_pretrained(folder)


def remote_code(folder):
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "own", "auto_map": {"AutoConfig": "own.Config", "AutoModel": "own.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "own.py").write_text("raise SystemExit('run')")


INDEX = '{"weight_map": {"a": "model-00001-of-00001.safetensors"}}'


@pytest.mark.parametrize(
    "damage, message",
    [
        (shutil.rmtree, "no such folder; bilm.path=FOLDER"),
        (remove("config.json"), "not the folder of a Hugging Face model: it has no config.json"),
        (remove("model.safetensors"), "pickled weights are never read"),
        (lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"), "pickled weights are never read"),
        (lambda f: (f / "model.safetensors").rename(f / "x") and change(model_folder.INDEX, INDEX)(f), "names model-"),
        (lambda f: (f / "model.safetensors").rename(f / "x") and change(model_folder.INDEX, "[]")(f), "damaged index"),
        (remove("tokenizer.json", "tokenizer_config.json"), "has no tokenizer"),
        (change("config.json", "{}"), "not a model that transformers can load"),
        (change("config.json", "no JSON"), "not a model that transformers can load"),
        (change("config.json", '{"attn_implementation" : "some/kernel"}'), "names code that is not in the folder"),
        (change("config.json", r'{"attn\u005fx": 1}'), "names code that is not in the folder"),
        (change("model.safetensors", "x" * 100), "not a model that transformers can load"),
        (change("tokenizer.json", "{}"), "not a tokenizer that transformers can load"),
        (lose_a_weight, "the weights lack 'encoder.layer.0.output.dense.weight'"),
        (spoil_a_weight, "'encoder.layer.0.output.dense.bias' contains values that are not finite"),
        (more_pieces_than_embeddings, "the tokenizer has 279 pieces, the model 277"),
        (remote_code, "not a model that transformers can load"),
    ],
)
def test_a_folder_without_a_whole_model_ends_in_one_line(copied, damage, message):
    damage(copied)
    with refuses(message, str(copied)):
        TransformersLayers(copied)


def test_an_unknown_pooling_and_a_missing_package_end_in_one_line(folder, monkeypatch):
    with refuses(r"bilm.pooling=last: should be 'first' or 'mean'"):
        TransformersLayers(folder, "last")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with refuses(r"pip install 'elmo_bench\[transformers\]'"):
        TransformersLayers(folder)


def test_a_string_is_no_sentence_of_pieces(folder):
    with pytest.raises(TypeError, match="list of tokens"):
        TransformersLayers(folder).layers(["ba lu"])


# NER at mini over the hidden states: recorded, cached, repeated with the same result, reported.


MINI = "{lm:[200,100,100],ner:[60,20,20],srl:[1,1,1],coref:[1,1,1],snli:[3,3,3],squad:[1,1,1],sst:[3,3,3],names:300}"


@pytest.fixture
def arguments(tmp_path, monkeypatch):
    """Of a run whose results lie in a folder of the given name; all runs share data and cached layers."""
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    tiny_bilm.write_bert(tmp_path / "bert")
    run = ["task=ner", "scale=mini", f"scale.sizes={MINI}", "task.fit.epochs=2", "trainer=cpu"]
    source = ["bilm=transformers", f"bilm.path={tmp_path}/bert", "bilm.pooling=mean"]
    return lambda results: [*run, *source, f"cache_root={tmp_path}/cache", f"results_root={tmp_path}/{results}"]


@pytest.mark.slow
def test_a_run_over_hidden_states(arguments, tmp_path, call):
    whole = train(composing.compose(arguments("whole")))
    (cached,) = tmp_path.glob("cache/activations/*/*.bin")
    written = cached.stat().st_mtime_ns
    assert whole.bilm.items() >= {"name": "bert", "sha256": sha256(tmp_path / "bert"), "tuned": False}.items()
    assert [len(weights) for weights in whole.layer_weights["input"]] == [3] * 2
    assert whole.settings["bilm"]["pooling"] == "mean"

    again = train(composing.compose(arguments("again")))
    assert list(tmp_path.glob("cache/activations/*/*.bin")) == [cached]  # the first run's layers served the second
    assert cached.stat().st_mtime_ns == written
    assert (again.run, again.metrics, again.history["loss"]) == (whole.run, whole.metrics, whole.history["loss"])

    status, _, err = call(Report, f"results_root={tmp_path}/whole")
    assert status == 0, err
    lines = pages_of(tmp_path / "whole").splitlines()
    (row,) = [line for line in lines if line.startswith("|") and "| bert |" in line]
    assert f"{whole.metrics['test']['f1']:.2f}" in row
    predictions_follow_the_model(tmp_path, tmp_path / "whole" / whole.checkpoint)


def predictions_follow_the_model(folder: Path, checkpoint: Path) -> None:
    """The model's folder has moved; another model is refused."""
    (folder / "in.jsonl").write_text('{"tokens": ["Greck", "sank", "."]}\n')
    moved, other = (folder / "bert").rename(folder / "moved"), tiny_bilm.write_bert(folder / "other", seed=1)
    given = str(checkpoint), str(folder / "in.jsonl"), str(folder / "out.jsonl")
    assert predict(*given, **{"bilm.path": str(moved)}) == 1  # pyright: ignore[reportArgumentType]
    assert len(json.loads((folder / "out.jsonl").read_text())["prediction"]["tags"]) == 3
    with refuses("other .*: not the weights that the model was trained with"):
        predict(*given, **{"bilm.path": str(other)})  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
def test_another_model_pooling_or_none_at_all_is_another_run(arguments, tmp_path):
    def bilm(*changes):
        return Identity(composing.run_config([*arguments("none"), *changes])).settings["bilm"]

    other = tiny_bilm.write_bert(tmp_path / "other", seed=1)
    blocks = [bilm(), bilm("bilm.pooling=first"), bilm(f"bilm.path={other}")]
    assert all(one not in blocks[:i] for i, one in enumerate(blocks))
    with refuses("names no path: give bilm.path=..."):
        train(composing.compose([*arguments("none")[:-3], "bilm.path=null", *arguments("none")[-2:]]))
    with refuses("no such file: the path of bilm=folder"):
        train(composing.compose([*arguments("none"), "bilm.path=/no/such/folder"]))
