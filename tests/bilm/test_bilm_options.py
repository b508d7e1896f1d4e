"""options.json: read and written as the release does; what is wrong with one ends in one error that names it."""

import json
from pathlib import Path

import pytest

from elmo_bench.bilm.options import Options
from tests.fakes import cases, refuses
from tests.reference_bilm import write_random


@pytest.fixture
def official(tmp_path) -> Path:
    return write_random(tmp_path).options


def error_of(path: Path) -> str:
    """Reading fails in one short line that names the file."""
    with refuses(f"^{path}:") as caught:
        Options.read(path)
    assert len(caught.value.message) < 500
    return str(caught.value)


# Of the release, with keys that only its training used.
RELEASE = """
{"lstm": {"use_skip_connections": true, "projection_dim": 512, "cell_clip": 3, "proj_clip": 3, "dim": 4096,
          "n_layers": 2},
 "char_cnn": {"activation": "relu", "n_highway": 2, "embedding": {"dim": 16}, "n_characters": 262,
              "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
              "max_characters_per_token": 50},
 "dropout": 0.1, "all_clip_norm_val": 10.0}
"""


def test_options_are_read_as_they_were_written(tmp_path):
    release = json.loads(RELEASE)
    options = Options.parse(release)
    assert (options.char_cnn.n_filters, *vars(options.lstm).values()) == (2048, *release["lstm"].values())
    options.write(tmp_path / "options.json")
    assert Options.read(tmp_path / "options.json") == options
    written = json.loads((tmp_path / "options.json").read_text())
    assert written == {key: release[key] for key in ("lstm", "char_cnn")}
    release["char_cnn"]["n_characters"] = 261  # as during training
    assert Options.parse(release) == options


def test_no_clip_is_written_in_two_ways(tmp_path):
    for nothing in (None, 0):
        options = Options.read(write_random(tmp_path, cell_clip=nothing, proj_clip=nothing).options)
        assert (options.lstm.cell_clip, options.lstm.proj_clip) == (None, None)


def write_options(path: Path, content: dict | str | bytes) -> None:
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b"3", b'"lstm"', b"{}", b'{"lstm": {}, "char_cnn": []}', b"\xff\xfe{}",
        b'{"lstm": "\xff"}', b"\x89HDF\r\n\x1a\n", b"[" * 100_000, b'{"lstm": {"dim": ' + b"9" * 5000 + b"}}",
        b'{"lstm": null, "char_cnn": null}',
    ],
    ids=range(14),
)  # fmt: skip
def test_what_are_no_options(official, content):
    write_options(official, content)
    error_of(official)


def test_an_error_in_json_names_its_line(official):
    write_options(official, '{"lstm":\n {"dim": 3,\n  }}')
    with refuses(f"{official}:3: "):
        Options.read(official)


@cases(r"""
    key                               | values
    lstm.dim                          | [0, -1, 2.0, "3", null, true, [], 1000000000]
    lstm.projection_dim               | [0, "3", null, 1000000000]
    lstm.n_layers                     | [0, 2.0, null, 1000000000]
    lstm.cell_clip                    | [-1, "3", true, [3], NaN, Infinity]
    lstm.proj_clip                    | [-0.5, {}, NaN]
    lstm.use_skip_connections         | [1, "yes", null]
    char_cnn.n_highway                | [-1, 1.5, null, 1000000000]
    char_cnn.max_characters_per_token | [0, 3, 2, 1000000000, "50"]
    char_cnn.n_characters             | [0, 256, 263, null]
    char_cnn.activation               | ["selu", null, 3, ["relu"]]
    char_cnn.embedding                | [{}, 4, null, {"dim": 0}]
    char_cnn.filters                  | [[], null, {}, 3, [[1]], [[1, 2, 3]], [[0, 4]], [[1, -4]], [[1, 4.0]], \
        [["1", 4]], [[true, 4]], [[51, 4]], [[1, 1000000000]], [1, 4], [null]]
""")
def test_wrong_options_are_named(official, key, values):
    section, name = key.split(".")
    for value in values:
        options = json.loads(official.read_text())
        options[section][name] = value
        official.write_text(json.dumps(options))
        message = error_of(official)
        named = f"{section}.{name}" in message or f"{section}: {name}" in message
        assert named or "not readable JSON" in message, message


@pytest.mark.parametrize("key, value", [("embedding", {"dim": "x" * 100_000}), ("filters", [[1, 1]] * 1000)])
def test_the_value_in_a_message_is_cut(official, key, value):
    options = json.loads(official.read_text())
    options["char_cnn"][key] = value
    official.write_text(json.dumps(options))
    error_of(official)


def test_missing_options_are_named(official):
    whole = json.loads(official.read_text())
    for section, name in (("lstm", "dim"), ("char_cnn", "filters"), ("char_cnn", "embedding")):
        write_options(official, {key: {k: v for k, v in whole[key].items() if k != name} for key in whole})
        assert f"no value for {section}.{name}" in error_of(official)
        write_options(official, {key: value for key, value in whole.items() if key != section})
        assert f"no value for {section}" in error_of(official)


# Keys that are not of the release, and values that only its training uses.


TRAINING = json.loads("""
{"bidirectional": true, "dropout": 0.1, "all_clip_norm_val": 10.0, "n_epochs": 10, "n_train_tokens": 768648884,
 "batch_size": 128, "n_tokens_vocab": 793471, "unroll_steps": 20, "n_negative_samples_batch": 8192,
 "learning_rate": 0.2, "sample_softmax": true, "share_embedding_softmax": false}
""")


def test_the_options_of_a_training_by_bilm_tf_are_read(official):
    options = json.loads(official.read_text())
    expected = Options.parse(options)
    write_options(official, options | TRAINING)
    assert Options.read(official) == expected


@cases("""
    section   | key                 | nearest
    lstm      | cell_clap           | cell_clip
    lstm      | projection_dims     | projection_dim
    lstm      | use_skip_conections | use_skip_connections
    lstm      | n_layer             | n_layers
    char_cnn  | n_highways          | n_highway
    char_cnn  | activations         | activation
    embedding | dims                | dim
    null      | lstms               | lstm
    null      | char_cn             | char_cnn
    null      | dropuot             | dropout
""")
def test_a_misspelt_option_is_never_ignored(official, section, key, nearest):
    options = json.loads(official.read_text()) | TRAINING
    where = {None: options, "embedding": options["char_cnn"]["embedding"], **options}[section]
    where[key] = where.get(nearest, 1)
    for _ in range(2):  # beside the right one, and in its place
        write_options(official, options)
        assert f"{key}: there is no such key" in (message := error_of(official))
        assert f"did you mean {nearest}?" in message
        where.pop(nearest, None)


@pytest.mark.parametrize("key", TRAINING)
def test_what_only_training_uses_is_checked_too(official, key):
    whole = json.loads(official.read_text())
    wrong = {
        bool: ("true", None, [True]),
        int: (True, 1.5, "1", None, [], -1, 10**400, float("nan")),
        float: (True, "1", None, {"dim": 3}, -0.1, float("nan"), float("inf")),
    }
    for value in wrong[type(TRAINING[key])]:
        write_options(official, json.dumps(whole | TRAINING | {key: value}))
        message = error_of(official)
        assert key in message or "not readable JSON" in message  # NaN, or a number of 400 digits


@cases("""
    key                     | value
    bidirectional           | false
    share_embedding_softmax | true
""")
def test_a_model_that_is_no_character_biLM_is_refused(official, key, value):
    write_options(official, json.loads(official.read_text()) | {key: value})
    assert f"{key}=" in error_of(official)
