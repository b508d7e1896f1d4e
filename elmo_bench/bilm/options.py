"""The options.json of a released biLM, typed and checked."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import replacing
from elmo_bench.system.terminal.console import choices

ACTIVATIONS = ("relu", "tanh")
MOST = 65_536  # largest size accepted; an options.json that asks for more is damaged
MOST_LAYERS = 100

# The keys of the release's files; any other is an error, so that a misspelt one is never ignored.
LSTM = ("cell_clip", "dim", "n_layers", "proj_clip", "projection_dim", "use_skip_connections")
CHAR_CNN = ("activation", "embedding", "filters", "max_characters_per_token", "n_characters", "n_highway")
# What bilm-tf writes beside them (train_elmo.py, training.py) and only its training uses: whole numbers, other numbers,
# and choices, of which the character biLM has one.
COUNTS = ("batch_size", "n_epochs", "n_negative_samples_batch", "n_tokens_vocab", "n_train_tokens", "unroll_steps")
NUMBERS = ("all_clip_norm_val", "dropout", "learning_rate")
SWITCHES = {"bidirectional": (True,), "sample_softmax": (True, False), "share_embedding_softmax": (False,)}


@dataclass(frozen=True)
class Options:
    """Sizes of a biLM, by the names of the official options.json (paper, section 3.4 and supplement).

    Attributes:
        filters: (width, number) of each group of convolution filters over the characters of a token.
        n_highway: highway layers on the filters' outputs.
        projection_dim: P, width of the token vector and of each direction of each LSTM layer.
        dim: C, cells of each LSTM; `cell_clip` limits them and `proj_clip` the projected outputs (None: no limit).
        use_skip_connections: whether each LSTM layer from the second on adds its input to its output.
    """

    char_dim: int
    filters: tuple[tuple[int, int], ...]
    n_highway: int
    max_characters: int
    activation: str
    n_layers: int
    dim: int
    projection_dim: int
    cell_clip: float | None
    proj_clip: float | None
    use_skip_connections: bool

    @property
    def n_filters(self) -> int:
        return sum(number for _, number in self.filters)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Options:
        """Reads a file. Raises `UserError` if it is missing or not JSON, or for an unknown, missing or wrong value."""
        return cls.parse(json_text.read(path), path)

    @classmethod
    def parse(cls, data: Any, path: str | PathLike[str] | None = None) -> Options:
        """From the nested dict of an official options.json; what only training uses is checked, but not kept.

        Raises:
            UserError: an unknown or missing key, a wrong value.
        """
        whole = _Section(data, path, ("lstm", "char_cnn", *COUNTS, *NUMBERS, *SWITCHES))
        whole.check_training()
        lstm, cnn = whole.section("lstm", LSTM), whole.section("char_cnn", CHAR_CNN)
        options = cls(
            char_dim=cnn.section("embedding", ("dim",)).size("dim"),
            filters=cnn.filters("filters"),
            n_highway=cnn.size("n_highway", 0, least=0, most=MOST_LAYERS),
            max_characters=cnn.size("max_characters_per_token", 50, least=4),
            activation=cnn.get("activation", "relu"),
            n_layers=lstm.size("n_layers", 2, most=MOST_LAYERS),
            dim=lstm.size("dim"),
            projection_dim=lstm.size("projection_dim"),
            cell_clip=lstm.clip("cell_clip"),
            proj_clip=lstm.clip("proj_clip"),
            use_skip_connections=lstm.get("use_skip_connections", False),
        )
        if max(width for width, _ in options.filters) > options.max_characters:
            raise UserError("option 'filters' has a filter wider than 'max_characters_per_token'", path)
        if options.activation not in ACTIVATIONS:
            raise UserError(f"option 'activation' is {options.activation!r}; known: {', '.join(ACTIVATIONS)}", path)
        if cnn.size("n_characters", 262) not in (261, 262):
            raise UserError("option 'n_characters' must be 262 (261 during training): UTF-8 bytes and six marks", path)
        return options

    def as_dict(self) -> dict[str, Any]:
        """The official layout, as written next to exported weights."""
        return {
            "lstm": {
                "use_skip_connections": self.use_skip_connections,
                "projection_dim": self.projection_dim,
                "cell_clip": self.cell_clip,
                "proj_clip": self.proj_clip,
                "dim": self.dim,
                "n_layers": self.n_layers,
            },
            "char_cnn": {
                "activation": self.activation,
                "filters": [list(pair) for pair in self.filters],
                "n_highway": self.n_highway,
                "embedding": {"dim": self.char_dim},
                "n_characters": 262,
                "max_characters_per_token": self.max_characters,
            },
        }

    def write(self, path: str | PathLike[str]) -> None:
        """Writes options.json whole or not at all."""
        with replacing(path) as file:
            file.write(json_text.dumps(self.as_dict(), indent=2) + "\n")


class _Section:
    """One object of the file, with the keys that it may have; an unknown key or an invalid value raises `UserError`."""

    def __init__(self, values: Any, path: str | PathLike[str] | None, known: Sequence[str], name: str | None = None):
        self.values, self.path = values, path
        for key in values if isinstance(values, dict) else ():
            if key not in known:
                where = f" in {name!r}" if name else ""
                raise UserError(f"unknown option {reprlib.repr(key)}{where}; {choices(str(key)[:99], known)}", path)

    def check_training(self) -> None:
        """Checks the values that only training uses."""
        for key in self.values if isinstance(self.values, dict) else ():
            if key in COUNTS:
                self.size(key, least=0, most=10**15)
            elif key in NUMBERS:
                value = self.values[key]
                if type(value) not in (int, float) or not 0 <= value < math.inf:
                    raise self._error(key, value, "it must be a number from 0")
            elif key in SWITCHES and not any(self.values[key] is value for value in SWITCHES[key]):
                wanted = " or ".join(json_text.dumps(value) for value in SWITCHES[key])
                raise self._error(key, self.values[key], f"it must be {wanted}")

    def get(self, key: str, default: Any) -> Any:
        """A value, of the type of the default."""
        value = self._value(key, default)
        if type(value) is not type(default):
            raise self._error(key, value, f"it must be a {type(default).__name__}")
        return value

    def section(self, key: str, known: Sequence[str]) -> _Section:
        return _Section(self._value(key), self.path, known, key)

    def size(self, key: str, default: int | None = None, least: int = 1, most: int = MOST) -> int:
        value = self._value(key, default)
        if type(value) is not int or not least <= value <= most:
            raise self._error(key, value, f"it must be a whole number from {least} to {most}")
        return value

    def clip(self, key: str) -> float | None:
        """A limit, or None; in bilm-tf, null and 0 mean no limit."""
        value = self._value(key, 0)
        if value is None:
            return None
        if type(value) not in (int, float) or not 0 <= value <= MOST:
            raise self._error(key, value, f"it must be a number from 0 to {MOST}, or null")
        return float(value) or None

    def filters(self, key: str) -> tuple[tuple[int, int], ...]:
        value = self._value(key)
        if not isinstance(value, list) or not 0 < len(value) <= MOST_LAYERS:
            raise self._error(key, value, "it must be a list of [width, number]")
        for pair in value:
            whole = isinstance(pair, list) and [type(n) for n in pair] == [int, int]
            if not whole or not 0 < min(pair) <= max(pair) <= MOST:
                raise self._error(key, pair, "each filter must be [width, number]")
        return tuple((width, number) for width, number in value)

    def _value(self, key: str, default: Any = None) -> Any:
        if isinstance(self.values, dict) and key in self.values:
            return self.values[key]
        if isinstance(self.values, dict) and default is not None:
            return default
        raise UserError(f"the options lack {key!r}; expected the official layout (lstm, char_cnn)", self.path)

    def _error(self, key: str, value: Any, wanted: str) -> UserError:
        return UserError(f"option {key!r} is {reprlib.repr(value)}; {wanted}", self.path)
