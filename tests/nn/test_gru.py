"""The biGRU against torch's own GRU, one direction and one sentence at a time."""

import pytest
import torch
from torch import Tensor, nn

from elmo_bench.nn.encoders import BiGRU, both_directions
from tests.fakes import masks, with_gradients

LENGTHS = (7, 1, 5, 7)


def plain(layer: BiGRU, x: Tensor, mask: Tensor) -> Tensor:
    """Every sentence on its own, by torch's GRUs."""
    rows = []
    for sentence, length in zip(x, mask.sum(1).tolist(), strict=True):
        words = sentence[None, :length]
        ahead, back = layer.forward_gru(words)[0], layer.backward_gru(words.flip(1))[0].flip(1)
        rows.append(nn.functional.pad(torch.cat([ahead, back], dim=2)[0], (0, 0, 0, mask.shape[1] - length)))
    return torch.stack(rows)


def outcome(way, layer: BiGRU, x: Tensor, mask: Tensor) -> list[Tensor]:
    """The output, and the gradients of the input and the weights."""
    x = x.clone().requires_grad_()
    return with_gradients(way(x, mask), [x, *layer.parameters()])


@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-12), (torch.float32, 1e-5)])
def test_output_and_gradients_are_those_of_torch(dtype, tolerance):
    torch.manual_seed(0)
    layer = BiGRU(5, 6).to(dtype)
    mask = masks(*LENGTHS)
    x = torch.randn(*mask.shape, 5, dtype=dtype)
    expected = outcome(lambda x, mask: plain(layer, x, mask), layer, x, mask)
    for way in (layer, lambda x, mask: both_directions(layer.forward_gru, layer.backward_gru, x, mask)):  # CPU and GPU
        for found, there in zip(outcome(way, layer, x, mask), expected, strict=True):
            assert (found - there).norm() <= tolerance * there.norm()


def test_the_loop_is_the_same_under_autocast():
    layer, x, mask = BiGRU(3, 4), torch.randn(2, 5, 3), torch.ones(2, 5, dtype=torch.bool)
    with torch.autocast("cpu"):
        found = layer(x, mask)
        assert layer(x.bfloat16(), mask).dtype == torch.float32
    assert torch.equal(found, layer(x, mask))
