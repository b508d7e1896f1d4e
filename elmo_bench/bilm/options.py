"""The options.json of a released biLM, checked and typed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from elmo_bench.errors import UserError

ACTIVATIONS = ("relu", "tanh")


@dataclass(frozen=True)
class Options:
    """Sizes of a biLM, by the names of the official options.json (paper, section 3.4 and supplement).

    Attributes:
        filters: (width, number) of each group of convolution filters over the characters of a token.
        n_highway: highway layers on the filters' outputs.
        projection_dim: P, width of the token vector and of each direction of each LSTM layer.
        dim: C, cells of each LSTM; `cell_clip` bounds them and `proj_clip` the projected outputs (None: no bound).
        use_skip_connections: each LSTM layer from the second on adds its input to its output.
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
        """Raises `UserError` where the file is missing, is no JSON, or lacks or misstates a key."""
        try:
            with open(path, encoding="utf-8") as file:
                return cls.parse(json.load(file), path)
        except FileNotFoundError:
            raise UserError("no such options file; give the options.json that came with the weights", path) from None
        except json.JSONDecodeError as error:
            raise UserError(f"not valid JSON ({error.msg})", path, error.lineno) from None
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot be read: {error}", path) from None

    @classmethod
    def parse(cls, data: Any, path: str | PathLike[str] | None = None) -> Options:
        """From the nested dict of an official options.json; keys that only training uses are ignored."""

        def get(section: Any, key: str, kind: Any, default: Any = ...) -> Any:
            value = section.get(key, default) if isinstance(section, dict) else ...
            if value is ...:
                raise UserError(f"the options lack {key!r}; expected the official layout (lstm, char_cnn)", path)
            if value is not None and (not isinstance(value, kind) or (kind is not bool and isinstance(value, bool))):
                raise UserError(
                    f"option {key!r} is {value!r}, which is not {getattr(kind, '__name__', 'a number')}", path
                )
            return value

        def size(section: Any, key: str, default: Any = ..., least: int = 1) -> int:
            value = get(section, key, int, default)
            if value is None or not least <= value <= 1_000_000:
                raise UserError(f"option {key!r} is {value!r}; it must be a whole number of at least {least}", path)
            return value

        def clip(section: Any, key: str) -> float | None:
            value = get(section, key, (int, float), None)
            if value is not None and value < 0:
                raise UserError(f"option {key!r} is negative", path)
            return float(value) if value else None  # bilm-tf takes None and 0 for "no clip"

        lstm, cnn = get(data, "lstm", dict), get(data, "char_cnn", dict)
        filters = get(cnn, "filters", list)
        for pair in filters:
            if not (isinstance(pair, list) and len(pair) == 2 and all(type(n) is int and n > 0 for n in pair)):
                raise UserError(f"option 'filters' holds {pair!r}; expected [width, number]", path)
        options = cls(
            char_dim=size(get(cnn, "embedding", dict), "dim"),
            filters=tuple((width, number) for width, number in filters),
            n_highway=size(cnn, "n_highway", 0, least=0),
            max_characters=size(cnn, "max_characters_per_token", 50, least=4),
            activation=get(cnn, "activation", str, "relu"),
            n_layers=size(lstm, "n_layers", 2),
            dim=size(lstm, "dim"),
            projection_dim=size(lstm, "projection_dim"),
            cell_clip=clip(lstm, "cell_clip"),
            proj_clip=clip(lstm, "proj_clip"),
            use_skip_connections=bool(get(lstm, "use_skip_connections", bool, False)),
        )
        if not options.filters or max(width for width, _ in options.filters) > options.max_characters:
            raise UserError("option 'filters' is empty or has one wider than 'max_characters_per_token'", path)
        if options.activation not in ACTIVATIONS:
            raise UserError(f"option 'activation' is {options.activation!r}; known: {', '.join(ACTIVATIONS)}", path)
        if size(cnn, "n_characters", 262) not in (261, 262):
            raise UserError("option 'n_characters' must be 262 (261 while training): UTF-8 bytes and six marks", path)
        return options

    def as_dict(self) -> dict[str, Any]:
        """The official layout, as written beside exported weights."""
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
        Path(path).write_text(json.dumps(self.as_dict(), indent=2) + "\n", encoding="utf-8")
