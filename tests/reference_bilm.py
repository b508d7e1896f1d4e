"""The released biLM once more, in plain NumPy: one word, one sentence, one step at a time, in float64.

It shares no line with `elmo_bench.bilm`: it reads the official files itself, encodes every token anew with all its
characters, and knows no batch, no padding and no packing. `write_random` makes such files.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import h5py
import numpy as np

BREAKS = 8  # sentence breaks until the state between sentences stands still

# Arguments of `write_random`: with and without residuals, projection (7 outputs need none of 5 + 2 filters), highways
# and clips.
SIZES: dict[str, dict] = json.loads("""
{"small": {},
 "deep": {"filters": [[1, 3], [5, 4], [7, 6]], "n_highway": 2, "n_layers": 3, "dim": 5, "projection_dim": 8,
          "skip": false},
 "narrow": {"filters": [[2, 5], [3, 2]], "n_layers": 1, "dim": 9, "projection_dim": 7, "max_characters": 12},
 "tanh": {"activation": "tanh", "n_highway": 0, "n_layers": 4, "dim": 4, "projection_dim": 3, "cell_clip": null,
          "proj_clip": 1.0}}
""")


NEAR = 1e-5

PLAIN = [
    "the small dog barked at a passing cart .".split(),
    "rain".split(),
    "nobody had expected the harbour to freeze before the last boat came in , least of all the pilot .".split(),
    "the cart and the dog".split(),
    "a dog barked".split(),
]
STRANGE = [
    ["", "a", "x" * 47, "x" * 48, "x" * 49, "y" * 300],
    ["é" * 30, "aé" * 30, "日本語", "😀" * 20, "naïve"],
    ["\ud800", "x\udfffy", "<S>", "</S>", "<UNK>", "<s>"],
    ["\x00", "a\x00b", " ", "\n", "\xff", "\u2028"],
    [],
    ["<S>"],
]


def near(found, expected, tolerance: float = NEAR) -> None:
    """Equal shapes, and no difference above `tolerance`."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max(initial=0) < tolerance


class Files(NamedTuple):
    """A biLM on disk, in the official format."""

    options: Path
    weights: Path


def write_random(
    folder: Path, *, seed: int = 0, n_layers: int = 2, dim: int = 12, projection_dim: int = 6, skip: bool = True,
    filters: Sequence[Sequence[int]] = ((1, 4), (2, 5), (3, 6)), char_dim: int = 4, n_highway: int = 1,
    max_characters: int = 50, activation: str = "relu", cell_clip: float | None = 0.4, proj_clip: float | None = 0.3,
    scale: float = 0.6,
) -> Files:  # fmt: skip
    """A random biLM whose clips bite. `scale` is the deviation of the weights."""
    folder.mkdir(parents=True, exist_ok=True)
    lstm = {
        "use_skip_connections": skip, "projection_dim": projection_dim, "cell_clip": cell_clip, "proj_clip": proj_clip,
        "dim": dim, "n_layers": n_layers,
    }  # fmt: skip
    cnn = {
        "activation": activation, "filters": [list(pair) for pair in filters], "n_highway": n_highway,
        "embedding": {"dim": char_dim}, "n_characters": 262, "max_characters_per_token": max_characters,
    }  # fmt: skip
    files = Files(folder / "options.json", folder / "weights.hdf5")
    files.options.write_text(json.dumps({"lstm": lstm, "char_cnn": cnn}))
    draw = np.random.default_rng(seed)
    with h5py.File(files.weights, "w") as file:
        for name, shape in shapes(lstm, cnn).items():
            file[name] = draw.normal(0, scale, shape).astype(np.float32)
    return files


def shapes(lstm: dict, cnn: dict) -> dict[str, tuple[int, ...]]:
    """The datasets of the official layout."""
    n, p, c = sum(number for _, number in cnn["filters"]), lstm["projection_dim"], lstm["dim"]
    found: dict[str, tuple[int, ...]] = {"char_embed": (261, cnn["embedding"]["dim"])}
    for i, (width, number) in enumerate(cnn["filters"]):
        found |= {f"CNN/W_cnn_{i}": (1, width, cnn["embedding"]["dim"], number), f"CNN/b_cnn_{i}": (number,)}
    for i in range(cnn["n_highway"]):
        for part in ("carry", "transform"):
            found |= {f"CNN_high_{i}/W_{part}": (n, n), f"CNN_high_{i}/b_{part}": (n,)}
    if n != p:
        found |= {"CNN_proj/W_proj": (n, p), "CNN_proj/b_proj": (p,)}
    for direction in range(2):
        for i in range(lstm["n_layers"]):
            cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{i}/LSTMCell"
            found |= {f"{cell}/W_0": (2 * p, 4 * c), f"{cell}/B": (4 * c,), f"{cell}/W_P_0": (c, p)}
    return found


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


class ReferenceBiLM:
    """Reads official files and computes all layers of one sentence after another."""

    def __init__(self, files: Files):
        options = json.loads(Path(files.options).read_text())
        self.lstm, self.cnn = options["lstm"], options["char_cnn"]
        self.weights: dict[str, np.ndarray] = {}
        with h5py.File(files.weights) as file:
            for name in shapes(self.lstm, self.cnn):
                self.weights[name] = np.asarray(file[name], dtype=np.float64)

    def characters(self, token: str) -> list[int]:
        """Rows of `char_embed`: bytes 0-255, sentence marks 256 257, word marks 258 259, padding 260."""
        length = self.cnn["max_characters_per_token"]
        if token == "<S>":
            inner = [256]
        elif token == "</S>":
            inner = [257]
        else:
            inner = [byte for c in token if not 0xD800 <= ord(c) <= 0xDFFF for byte in c.encode()][: length - 2]
        ids = [258, *inner, 259]
        return ids + [260] * (length - len(ids))

    def token(self, token: str) -> np.ndarray:
        """(P,) token vector: every window of every filter, padding included."""
        w = self.weights
        x = w["char_embed"][self.characters(token)]  # (K, char_dim)
        features = []
        for i, (width, _) in enumerate(self.cnn["filters"]):
            filters = w[f"CNN/W_cnn_{i}"][0]  # (width, char_dim, number)
            windows = [np.einsum("kc,kcn->n", x[k : k + width], filters) for k in range(len(x) - width + 1)]
            features.append(np.max(windows, axis=0) + w[f"CNN/b_cnn_{i}"])
        y = np.concatenate(features)
        y = np.tanh(y) if self.cnn["activation"] == "tanh" else np.maximum(y, 0)
        for i in range(self.cnn["n_highway"]):
            gate = sigmoid(y @ w[f"CNN_high_{i}/W_carry"] + w[f"CNN_high_{i}/b_carry"])
            new = np.maximum(y @ w[f"CNN_high_{i}/W_transform"] + w[f"CNN_high_{i}/b_transform"], 0)
            y = gate * new + (1 - gate) * y
        return y @ w["CNN_proj/W_proj"] + w["CNN_proj/b_proj"] if "CNN_proj/W_proj" in w else y

    def zeros(self) -> list:
        """State before the first sentence: by direction and layer, (h, c)."""
        p, c = self.lstm["projection_dim"], self.lstm["dim"]
        return [[(np.zeros(p), np.zeros(c)) for _ in range(self.lstm["n_layers"])] for _ in range(2)]

    def warm(self) -> list:
        """State after some empty sentences."""
        state = self.zeros()
        for _ in range(BREAKS):
            state = self.sentence([], state)[1]
        return state

    def sentence(self, tokens: Sequence[str], state: list) -> tuple[np.ndarray, list]:
        """(L+1, T, 2P) layers of a sentence that starts from `state`, and the state it ends in."""
        xs = [self.token(token) for token in ("<S>", *tokens, "</S>")]
        halves, ends = [], []
        for direction, backward in enumerate((False, True)):
            inputs, layers, end = xs[::-1] if backward else xs, [xs], []
            for number in range(self.lstm["n_layers"]):
                outputs, last = self.run(inputs, state[direction][number], direction, number)
                if number > 0 and self.lstm["use_skip_connections"]:
                    outputs = [out + x for out, x in zip(outputs, inputs, strict=True)]
                inputs = outputs
                layers.append(outputs[::-1] if backward else outputs)
                end.append(last)
            halves.append(np.array(layers))  # (L+1, T+2, P)
            ends.append(end)
        return np.concatenate(halves, axis=-1)[:, 1:-1], ends

    def check(self, layers: Iterable, sentences: Sequence[Sequence[str]], state: list) -> None:
        """Each sentence, from the same state, must have these layers."""
        for found, sentence in zip(layers, sentences, strict=True):
            near(found, self.sentence(sentence, state)[0])

    def run(self, xs: list[np.ndarray], state: tuple, direction: int, layer: int) -> tuple[list[np.ndarray], tuple]:
        """One LSTM over one sequence."""
        cell = f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"
        w, b, project = (self.weights[f"{cell}/{name}"] for name in ("W_0", "B", "W_P_0"))
        (h, c), outputs = state, []
        for x in xs:
            i, j, f, o = np.split(np.concatenate([x, h]) @ w + b, 4)
            c = sigmoid(f + 1) * c + sigmoid(i) * np.tanh(j)
            c = self.clipped(c, "cell_clip")
            h = self.clipped((sigmoid(o) * np.tanh(c)) @ project, "proj_clip")
            outputs.append(h)
        return outputs, (h, c)

    def clipped(self, x: np.ndarray, option: str) -> np.ndarray:
        bound = self.lstm[option]
        return np.clip(x, -bound, bound) if bound else x
