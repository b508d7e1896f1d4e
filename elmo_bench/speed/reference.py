"""A reference implementation of the biLM: straight from the paper, without any optimisation.

Every token of the padded batch is encoded separately, with all its characters; every step of the LSTMs computes every
row, whether its sentence has ended or not. The results are those of `BiLM`.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from elmo_bench.bilm import BiLM
from elmo_bench.bilm.characters import SENTENCE_BEGIN, SENTENCE_END, character_table
from elmo_bench.bilm.lstm import FORGET_BIAS, ProjectedLSTM


@torch.no_grad()
def encode(bilm: BiLM, sentences: Sequence[Sequence[str]]) -> list[Tensor]:
    """The same as `BiLM.encode` with state "zero": (L+1, tokens, 2P) for each sentence."""
    lengths = torch.tensor([len(sentence) + 2 for sentence in sentences])
    steps = int(lengths.max())
    rows = [[SENTENCE_BEGIN, *s, SENTENCE_END, *[""] * (steps - len(s) - 2)] for s in sentences]
    table = character_table([word for row in rows for word in row], bilm.options.max_characters)
    token = bilm.encoder(torch.from_numpy(table).long()).unflatten(0, (len(rows), steps))  # (B, T, P)
    forward = _direction(bilm, 0, token)
    turned = _turn(lengths, steps)[:, :, None].expand_as(token)
    backward = [layer.gather(1, turned) for layer in _direction(bilm, 1, token.gather(1, turned))]
    layers = [torch.cat(pair, dim=-1) for pair in zip([token, *forward], [token, *backward], strict=True)]
    stacked = torch.stack(layers)  # (L+1, B, T, 2P)
    return [stacked[:, row, 1 : length - 1] for row, length in enumerate(lengths.tolist())]


def _turn(lengths: Tensor, steps: int) -> Tensor:
    """(B, T) indices that reverse each sequence and leave its padding in place; their own inverse."""
    places = torch.arange(steps)[None]  # (1, T)
    return torch.where(places < lengths[:, None], lengths[:, None] - 1 - places, places)


def _direction(bilm: BiLM, direction: int, x: Tensor) -> list[Tensor]:
    """(B, T, P) -> the same for every layer."""
    outputs = []
    for number, layer in enumerate(bilm.directions[direction]):  # type: ignore[arg-type]
        out = _lstm(layer, x)
        x = out + x if number and bilm.options.use_skip_connections else out
        outputs.append(x)
    return outputs


def _lstm(layer: ProjectedLSTM, x: Tensor) -> Tensor:
    cell_clip, proj_clip = layer.clips
    h, c = x.new_zeros(len(x), layer.projection.shape[0]), x.new_zeros(len(x), layer.projection.shape[1])
    outputs = []
    for step in x.unbind(1):  # (B, P)
        i, j, f, o = (F.linear(step, layer.input, layer.bias) + F.linear(h, layer.recurrent)).chunk(4, dim=-1)
        c = torch.sigmoid(f + FORGET_BIAS) * c + torch.sigmoid(i) * torch.tanh(j)
        c = c.clamp(-cell_clip, cell_clip)
        h = F.linear(torch.sigmoid(o) * torch.tanh(c), layer.projection).clamp(-proj_clip, proj_clip)
        outputs.append(h)
    return torch.stack(outputs, dim=1)
