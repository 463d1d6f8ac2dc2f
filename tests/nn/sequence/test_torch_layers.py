"""The layers torch brings: same numbers as torch, this package's states and messages."""

import math

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

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


@pytest.mark.covering(2)
@pytest.mark.parametrize("options", [{}, {"num_layers": 2}, {"batch_first": True}])
@pytest.mark.parametrize("carried", [False, True])
@pytest.mark.parametrize("name, torch_class", [("RNN", nn.RNN), ("LSTM", nn.LSTM), ("GRU", nn.GRU)])
def test_packed_sequences_give_torch_numbers_and_gradients(name, torch_class, carried, options):
    torch.manual_seed(0)
    ours = getattr(ah, name)(3, 4, **options, dtype=torch.float64)
    theirs = torch_class(3, 4, **options, dtype=torch.float64)
    theirs.load_state_dict(ours.state_dict())
    lengths = torch.tensor([2, 7, 5, 7, 1])
    shape = (options.get("num_layers", 1), 5, 4)
    start = [torch.randn(shape, dtype=torch.float64) for _ in range(2 if name == "LSTM" else 1)]
    found = []
    for layer in (ours, theirs):
        x = torch.linspace(-2, 2, 105, dtype=torch.float64).view(7, 5, 3).requires_grad_()
        packed = pack_padded_sequence(x, lengths, enforce_sorted=False)
        state = None if not carried else tuple(start) if name == "LSTM" else start[0]
        output, last = layer(packed, state)
        last = last if isinstance(last, tuple) else (last,)
        sum(part.square().sum() for part in (output.data, *last)).backward()
        gradients = [x.grad, *(p.grad for p in layer.parameters())]
        found.append([output.data, *last, *gradients])
        assert torch.equal(output.sorted_indices, packed.sorted_indices)
    for a, b in zip(*found, strict=True):
        assert torch.allclose(a, b, atol=1e-12)


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
