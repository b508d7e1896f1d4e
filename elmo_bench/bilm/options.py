"""The options.json of a released biLM, typed and checked."""

from __future__ import annotations

from os import PathLike
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, NonNegativeFloat, Strict, model_validator

from elmo_bench.configuration.keys import Keys, valid
from elmo_bench.system.storage import json_text
from elmo_bench.system.storage.files import replacing

MOST = 65_536  # largest size accepted; an options.json that asks for more is damaged
MOST_LAYERS = 100
ACTIVATIONS = ("relu", "tanh")
Size = Annotated[int, Field(ge=1, le=MOST)]
Clip = Annotated[Annotated[float, Field(ge=0, le=MOST)] | None, AfterValidator(lambda limit: limit or None)]
Count = Annotated[int, Field(ge=0, le=10**15)]


class LstmOptions(Keys):
    """The LSTMs of a biLM.

    Attributes:
        use_skip_connections: whether each LSTM layer from the second on adds its input to its output.
        projection_dim: P, width of the token vector and of each direction of each LSTM layer.
        cell_clip: limit on the cells; in bilm-tf, null and 0 mean no limit.
        proj_clip: limit on the projected outputs, likewise.
        dim: C, cells of each LSTM.
    """

    use_skip_connections: bool = False
    projection_dim: Size
    cell_clip: Clip = None
    proj_clip: Clip = None
    dim: Size
    n_layers: Annotated[int, Field(ge=1, le=MOST_LAYERS)] = 2


class CharacterEmbedding(Keys):
    """The width of characters."""

    dim: Size


class CharCnnOptions(Keys):
    """The convolution over the characters of a token.

    Attributes:
        filters: (width, number) of each group of filters.
        n_highway: highway layers on the filters' outputs.
        n_characters: UTF-8 bytes and six marks; 261 during training.
    """

    activation: Literal["relu", "tanh"] = "relu"
    filters: Annotated[list[Annotated[tuple[Size, Size], Strict(False)]], Field(min_length=1, max_length=MOST_LAYERS)]
    n_highway: Annotated[int, Field(ge=0, le=MOST_LAYERS)] = 0
    embedding: CharacterEmbedding
    n_characters: Annotated[Literal[261, 262], AfterValidator(lambda _: 262)] = 262
    max_characters_per_token: Annotated[int, Field(ge=4, le=MOST)] = 50

    @model_validator(mode="after")
    def _check(self) -> Self:
        if max(width for width, _ in self.filters) > self.max_characters_per_token:
            raise ValueError("filters has a width above max_characters_per_token")
        return self

    @property
    def n_filters(self) -> int:
        return sum(number for _, number in self.filters)


class Options(Keys):
    """Sizes of a biLM, by the names of the official options.json (paper, section 3.4 and supplement)."""

    lstm: LstmOptions
    char_cnn: CharCnnOptions

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Options:
        """Reads a file. Raises `UserError` if it is missing or not JSON, or for an unknown, missing or wrong value."""
        return cls.parse(json_text.read(path), path)

    @classmethod
    def parse(cls, data: Any, path: str | PathLike[str] | None = None) -> Options:
        """The options in an official options.json's dict; keys that only training uses are checked, but not kept."""
        whole = valid(ReleasedOptions, data, path=path)
        return cls(lstm=whole.lstm, char_cnn=whole.char_cnn)

    def write(self, path: str | PathLike[str]) -> None:
        """Writes options.json whole or not at all."""
        with replacing(path) as file:
            file.write(json_text.dumps(self.model_dump(mode="json"), indent=2) + "\n")


class ReleasedOptions(Options):
    """Options with the keys that bilm-tf adds (train_elmo.py, training.py) and only its training uses."""

    batch_size: Count = 0
    n_epochs: Count = 0
    n_negative_samples_batch: Count = 0
    n_tokens_vocab: Count = 0
    n_train_tokens: Count = 0
    unroll_steps: Count = 0
    all_clip_norm_val: NonNegativeFloat = 0
    dropout: NonNegativeFloat = 0
    learning_rate: NonNegativeFloat = 0
    bidirectional: Literal[True] = True
    sample_softmax: bool = True
    share_embedding_softmax: Literal[False] = False
