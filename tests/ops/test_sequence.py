import torch

from anharmonic.ops import LEMWeights, lem
from anharmonic.ops.sequence import gaps_walked_back, reversed_in_time


def test_reversal_is_its_own_inverse():
    x = torch.randn(6, 3, 2, generator=torch.Generator().manual_seed(0))
    for lengths in (None, torch.tensor([6, 1, 4])):
        assert torch.equal(reversed_in_time(reversed_in_time(x, lengths), lengths), x)


def test_padding_stays():
    x = torch.arange(8.0).reshape(4, 2, 1)
    turned = reversed_in_time(x, torch.tensor([3, 1]))
    assert turned[:, 0, 0].tolist() == [4.0, 2.0, 0.0, 6.0]
    assert turned[:, 1, 0].tolist() == [1.0, 3.0, 5.0, 7.0]


def test_gaps_walked_back():
    gaps = torch.tensor([[1.0, 5.0], [2.0, 6.0], [3.0, 7.0], [4.0, 8.0]])
    assert gaps_walked_back(gaps, None)[:, 0].tolist() == [1, 4, 3, 2]
    ragged = gaps_walked_back(gaps, torch.tensor([3, 1]))
    assert ragged[:, 0].tolist() == [1, 3, 2, 4]
    assert ragged[:, 1].tolist() == [5, 6, 7, 8]


def stack(layers):
    """A bidirectional LEM: what it is called with, and its settings."""
    generator = torch.Generator().manual_seed(0)

    def some(*shape):
        return torch.randn(shape, generator=generator)

    weights = [
        LEMWeights(some(12, 2 if k < 2 else 6), some(9, 3), some(3, 3), some(12))
        for k in range(2 * layers)
    ]
    state = some(2 * layers, 4, 3), some(2 * layers, 4, 3)
    return some(5, 4, 2), weights, *state, {"dt": 0.5, "bidirectional": True}


def test_masks_scale_every_layer_but_the_top_one():
    x, weights, y0, z0, settings = stack(2)
    masked, *_ = lem(x, weights, y0, z0, masks=[torch.zeros(4, 6)], **settings)
    above, *_ = lem(torch.zeros(5, 4, 6), weights[2:], y0[2:], z0[2:], **settings)
    assert torch.equal(masked, above)
    assert masked.abs().min() > 0


def test_the_last_output_is_where_each_direction_ends():
    x, weights, y0, z0, settings = stack(2)
    every, y, _ = lem(x, weights, y0, z0, **settings)
    last, *_ = lem(x, weights, y0, z0, output="last", **settings)
    assert torch.equal(last, torch.cat([every[-1, :, :3], every[0, :, 3:]], dim=1))
    assert torch.equal(last, torch.cat([y[2], y[3]], dim=1))
