"""The options.json of a released biLM, typed and checked."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from os import PathLike
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from elmo_bench.system.errors import UserError
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import replacing
from elmo_bench.system.terminal.console import choices

ACTIVATIONS = ("relu", "tanh")
MOST = 65_536  # largest size accepted; an options.json that asks for more is damaged
MOST_LAYERS = 100
UNREAD: Any = None  # these only the training of bilm-tf uses: they are checked, but not kept
NOT_AS_A_NUMBER = BeforeValidator(lambda given: given if isinstance(given, bool) else repr(given))
Size = Annotated[int, Field(ge=1, le=MOST)]
Layers = Annotated[int, Field(ge=1, le=MOST_LAYERS)]
Clip = Annotated[float | None, Field(ge=0, le=MOST)]  # null and 0 mean no limit, as in bilm-tf
Count = Annotated[int, Field(ge=0, le=10**15)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class _Section(BaseModel):
    """One object of the file. An unknown key is an error, so that a misspelt one is never ignored."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Lstm(_Section):
    dim: Size
    projection_dim: Size
    n_layers: Layers = 2
    cell_clip: Clip = None
    proj_clip: Clip = None
    use_skip_connections: bool = False


class _Embedding(_Section):
    dim: Size


class _CharCnn(_Section):
    embedding: _Embedding
    filters: Annotated[
        list[Annotated[list[Size], Field(min_length=2, max_length=2)]], Field(min_length=1, max_length=MOST_LAYERS)
    ]  # [width, number]
    n_highway: Annotated[int, Field(ge=0, le=MOST_LAYERS)] = 0
    max_characters_per_token: Annotated[int, Field(ge=4, le=MOST)] = 50
    activation: Literal["relu", "tanh"] = "relu"
    n_characters: Literal[261, 262] = 262  # UTF-8 bytes and six marks; 261 during training


class _Official(_Section):
    """The keys of the release's files, and what bilm-tf writes beside them (train_elmo.py, training.py)."""

    lstm: _Lstm
    char_cnn: _CharCnn
    batch_size: Count = UNREAD
    n_epochs: Count = UNREAD
    n_negative_samples_batch: Count = UNREAD
    n_tokens_vocab: Count = UNREAD
    n_train_tokens: Count = UNREAD
    unroll_steps: Count = UNREAD
    all_clip_norm_val: Number = UNREAD
    dropout: Number = UNREAD
    learning_rate: Number = UNREAD
    bidirectional: Annotated[Literal[True], NOT_AS_A_NUMBER] = UNREAD
    sample_softmax: bool = UNREAD
    share_embedding_softmax: Annotated[Literal[False], NOT_AS_A_NUMBER] = UNREAD


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
        """From the nested dict of an official options.json; what only training uses is checked, but not kept."""
        try:
            official = _Official.model_validate(data)
        except ValidationError as error:
            raise UserError(_fault(error), path) from None
        lstm, cnn = official.lstm, official.char_cnn
        if max(width for width, _ in cnn.filters) > cnn.max_characters_per_token:
            raise UserError("option 'filters' has a filter wider than 'max_characters_per_token'", path)
        return cls(
            char_dim=cnn.embedding.dim,
            filters=tuple((width, number) for width, number in cnn.filters),
            n_highway=cnn.n_highway,
            max_characters=cnn.max_characters_per_token,
            activation=cnn.activation,
            n_layers=lstm.n_layers,
            dim=lstm.dim,
            projection_dim=lstm.projection_dim,
            cell_clip=lstm.cell_clip or None,
            proj_clip=lstm.proj_clip or None,
            use_skip_connections=lstm.use_skip_connections,
        )

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


def _fault(error: ValidationError) -> str:
    """What is wrong with the options; a misspelt key rather than the one that it leaves missing."""
    fault = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    *sections, key = [part for part in fault["loc"] if isinstance(part, str)] or ["options"]
    if fault["type"] == "missing":
        return f"the options lack {key!r}; expected the official layout (lstm, char_cnn)"
    if fault["type"] != "extra_forbidden":
        wanted = fault["msg"].replace("Input", "it", 1)
        return f"option {key!r} is {reprlib.repr(fault['input'])}; {wanted}"
    known: Any = _Official
    for section in sections:
        known = known.model_fields[section].annotation
    where = f" in {sections[-1]!r}" if sections else ""
    return f"unknown option {reprlib.repr(key)}{where}; {choices(key[:99], list(known.model_fields))}"
