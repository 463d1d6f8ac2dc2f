"""IndRNN: an RNN with a diagonal matrix, and the bound on its memory."""

import pytest
import torch
from torch import nn

import anharmonic as ah

F64 = torch.float64


def make(**options):
    torch.manual_seed(0)
    return ah.IndRNN(3, 5, **options, dtype=F64)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_it_is_an_rnn_with_a_diagonal_matrix(activation):
    layer = make(activation=activation, num_layers=2)
    rnn = nn.RNN(3, 5, num_layers=2, nonlinearity=activation, dtype=F64)
    with torch.no_grad():
        for k in ("_l0", "_l1"):
            nn.init.normal_(getattr(layer, "bias" + k))
            getattr(rnn, "weight_ih" + k).copy_(getattr(layer, "weight_ih" + k))
            getattr(rnn, "weight_hh" + k).copy_(torch.diag(getattr(layer, "weight_hh" + k)))
            getattr(rnn, "bias_ih" + k).copy_(getattr(layer, "bias" + k))
            getattr(rnn, "bias_hh" + k).zero_()
    x = torch.randn(7, 2, 3, dtype=F64)
    torch.testing.assert_close(layer(x)[0], rnn(x)[0], rtol=1e-13, atol=1e-14)


def test_the_bound_holds_and_an_unbounded_layer_has_none():
    x = torch.zeros(10, 3, dtype=F64)
    h = torch.ones(1, 5, dtype=F64)
    for longest, end in ((10, 2.0), (None, 3.0**10)):
        layer = make(longest_dependency=longest, bias=False)
        layer.weight_hh_l0.data.fill_(3.0)
        output, _ = layer(x, (h,))
        torch.testing.assert_close(output[-1], torch.full((5,), end, dtype=F64))


def test_first_weights_of_the_last_layer_remember_and_those_below_mix():
    torch.manual_seed(0)
    layer = ah.IndRNN(3, 400, 2, bidirectional=True, longest_dependency=7, dtype=F64)
    bound = 2 ** (1 / 7)
    for suffix, low in (
        ("_l0", 0),
        ("_l0_reverse", 0),
        ("_l1", 1 / bound),
        ("_l1_reverse", 1 / bound),
    ):
        w = getattr(layer, "weight_hh" + suffix)
        assert low <= w.min() < low + 0.02 and bound - 0.02 < w.max() <= bound
    plain = ah.IndRNN(3, 400, dtype=F64).weight_hh_l0
    assert 0 <= plain.min() < 0.02 and 0.98 < plain.max() <= 1
