"""FastRNN and FastGRNN: the scalars' ends are known networks."""

import pytest
import torch
from torch import nn

import anharmonic as ah

F64 = torch.float64


def make(name, **options):
    torch.manual_seed(0)
    layer = getattr(ah, name)(3, 5, **options, dtype=F64)
    return layer, torch.randn(7, 2, 3, dtype=F64)


def test_fastrnn_with_alpha_1_and_beta_0_is_an_rnn():
    layer, x = make("FastRNN")
    layer.raw_update_l0.data.fill_(40.0)  # whose sigmoid is 1 to the last bit
    layer.raw_carry_l0.data.fill_(-80.0)
    rnn = nn.RNN(3, 5, dtype=F64)
    with torch.no_grad():
        rnn.weight_ih_l0.copy_(layer.weight_ih_l0)
        rnn.weight_hh_l0.copy_(layer.weight_hh_l0)
        rnn.bias_ih_l0.copy_(layer.bias_l0)
        rnn.bias_hh_l0.zero_()
    torch.testing.assert_close(layer(x)[0], rnn(x)[0], rtol=1e-13, atol=1e-14)


def test_fastgrnn_by_hand_with_shared_matrices():
    layer, x = make("FastGRNN", gate_scale=0.6, gate_shift=0.1)
    V, W, b = layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_l0
    h, hs = torch.zeros(5, dtype=F64), []
    for x_t in x[:, 0]:
        z = torch.sigmoid(W @ h + V @ x_t + b[:5])
        h = (0.6 * (1 - z) + 0.1) * torch.tanh(W @ h + V @ x_t + b[5:]) + z * h
        hs.append(h)
    torch.testing.assert_close(layer(x[:, 0])[0], torch.stack(hs), rtol=1e-13, atol=1e-14)


def test_fastgrnn_with_a_constant_gate_is_fastrnn():
    """A gate of beta at every moment: alpha is zeta (1 - beta) + nu."""
    gated, x = make("FastGRNN", gate_scale=0.6, gate_shift=0.1)
    plain, _ = make("FastRNN", update_weight=0.6 * 0.25 + 0.1, carry_weight=0.75)
    with torch.no_grad():
        for layer in (gated, plain):
            layer.weight_ih_l0.zero_()
            layer.weight_hh_l0.zero_()
        gated.bias_l0[:5] = torch.log(torch.tensor(3.0, dtype=F64))  # sigmoid 0.75
        gated.bias_l0[5:] = plain.bias_l0
    torch.testing.assert_close(gated(x)[0], plain(x)[0], rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(
    "name, options, raw",
    [
        ("FastRNN", {"update_weight": 0.2, "carry_weight": 0.7}, ("raw_update", "raw_carry")),
        ("FastGRNN", {"gate_scale": 0.2, "gate_shift": 0.7}, ("raw_gate_scale", "raw_gate_shift")),
    ],
)
def test_scalars_are_trained_one_pair_per_layer(name, options, raw):
    layer, x = make(name, num_layers=2, **options)
    values = dict(layer.named_parameters())
    layer(x)[0].sum().backward()
    for k in ("_l0", "_l1"):
        for stem, value in zip(raw, (0.2, 0.7), strict=True):
            assert values[stem + k].shape == (1,) and values[stem + k].grad.abs() > 0
            assert abs(torch.sigmoid(values[stem + k]).item() - value) < 1e-15


def test_gradients_without_bias():
    layer, x = make("FastGRNN", bias=False)
    assert "bias_l0" not in dict(layer.named_parameters())

    def run(*weights):
        names = [n for n, _ in layer.named_parameters()]
        values = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(layer, values, (x[:3],))[0]

    assert torch.autograd.gradcheck(run, [p.detach().requires_grad_() for p in layer.parameters()])
