"""FastRNN and FastGRNN: their equations, and scalars that are trained."""

import pytest
import torch

import anharmonic as ah

F64 = torch.float64


def make(name, **options):
    torch.manual_seed(0)
    layer = getattr(ah, name)(3, 5, **options, dtype=F64)
    return layer, torch.randn(7, 2, 3, dtype=F64)


def test_fastrnn_by_hand():
    layer, x = make("FastRNN", update_weight=0.2, carry_weight=0.7)
    V, W, b = layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_l0
    h, hs = torch.zeros(5, dtype=F64), []
    for x_t in x[:, 0]:
        h = 0.2 * torch.tanh(W @ h + V @ x_t + b) + 0.7 * h
        hs.append(h)
    torch.testing.assert_close(layer(x[:, 0])[0], torch.stack(hs), rtol=1e-13, atol=1e-14)


def test_fastgrnn_by_hand_with_shared_matrices():
    layer, x = make("FastGRNN", gate_scale=0.6, gate_shift=0.1)
    V, W, b = layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_l0
    h, hs = torch.zeros(5, dtype=F64), []
    for x_t in x[:, 0]:
        z = torch.sigmoid(W @ h + V @ x_t + b[:5])
        h = (0.6 * (1 - z) + 0.1) * torch.tanh(W @ h + V @ x_t + b[5:]) + z * h
        hs.append(h)
    torch.testing.assert_close(layer(x[:, 0])[0], torch.stack(hs), rtol=1e-13, atol=1e-14)


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
