"""The layers torch brings: same numbers as torch, this package's states and messages."""

import math

import pytest
import torch
from torch import nn

import anharmonic as ah


@pytest.mark.parametrize("name, torch_class", [("RNN", nn.RNN), ("LSTM", nn.LSTM), ("GRU", nn.GRU)])
def test_same_numbers_as_torch(name, torch_class):
    options = {"num_layers": 2, "bidirectional": True}
    torch.manual_seed(0)
    ours = getattr(ah, name)(3, 4, **options)
    torch.manual_seed(0)
    theirs = torch_class(3, 4, **options)
    x = torch.randn(5, 2, 3)
    output, state = ours(x)
    expected, last = theirs(x)
    assert torch.equal(output, expected)
    last = last if isinstance(last, tuple) else (last,)
    assert all(torch.equal(a, b) for a, b in zip(state, last, strict=True))
    assert isinstance(ours, torch_class)


def test_a_bare_tensor_is_a_state_where_there_is_one_variable():
    layer = ah.GRU(3, 4)
    x, h = torch.randn(5, 2, 3), torch.randn(1, 2, 4)
    assert torch.equal(layer(x, h)[0], layer(x, (h,))[0])


def test_chrono_biases():
    torch.manual_seed(0)
    H, longest = 500, 300
    layer = ah.ChronoLSTM(2, H, num_layers=2, chrono_length=longest)
    for k in (0, 1):
        bias = layer.state_dict()[f"bias_ih_l{k}"]
        inputs, forget, rest = bias[:H], bias[H : 2 * H], bias[2 * H :]
        assert torch.equal(inputs, -forget) and not rest.any()
        assert not layer.state_dict()[f"bias_hh_l{k}"].any()
        units = forget.exp()
        assert 1 <= units.min() < 5 and 0.95 * longest < units.max() <= longest - 1 + 1e-3
    assert layer.weight_ih_l0.abs().max() <= 1 / math.sqrt(H)
