"""The layers torch brings: same numbers as torch, this package's states and messages."""

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
