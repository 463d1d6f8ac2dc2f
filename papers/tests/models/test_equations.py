"""The rival models and FastGRNN step by step against their printed equations."""

import pytest
import torch

import anharmonic as ah

F64 = torch.float64


def skew(layer):
    """W - W^T, entry by entry from the lower triangle."""
    H = layer.hidden_size
    W = torch.zeros(H, H, dtype=F64)
    entries = iter(layer.weight_skew_l0.tolist())
    for row in range(H):
        for column in range(row):
            W[row, column] = next(entries)
    return W - W.t()


def skew_minus_leak(layer):
    return skew(layer) - layer.diffusion * torch.eye(layer.hidden_size, dtype=F64)


def antisymmetric(layer, h, u, b):
    return h + layer.dt * torch.tanh(skew_minus_leak(layer) @ h + u + b)


def gated_antisymmetric(layer, h, u, b):
    H, Mh = layer.hidden_size, skew_minus_leak(layer) @ h
    z = torch.sigmoid(Mh + u[:H] + b[:H])
    return h + layer.dt * z * torch.tanh(Mh + u[H:] + b[H:])


def exprnn(layer, h, u, b):
    z = torch.linalg.matrix_exp(skew(layer)) @ h + u
    return z.sign() * torch.relu(z.abs() + b)


def fastrnn(layer, h, u, b):
    return 0.2 * torch.tanh(layer.weight_hh_l0 @ h + u + b) + 0.7 * h


def fastgrnn(layer, h, u, b):
    H, shared = layer.hidden_size, layer.weight_hh_l0 @ h + u
    z = torch.sigmoid(shared + b[:H])
    return (0.6 * (1 - z) + 0.1) * torch.tanh(shared + b[H:]) + z * h


def indrnn(layer, h, u, b):
    activation = {"relu": torch.relu, "tanh": torch.tanh}[layer.activation]
    return activation(layer.weight_hh_l0 * h + u + b)


def lipschitz(layer, h, u, b):
    return h + layer.dt * slope(layer, h, u + b)


def lipschitz_midpoint(layer, h, u, b):
    return h + layer.dt * slope(layer, h + layer.dt / 2 * slope(layer, h, u + b), u + b)


def slope(layer, h, push):
    beta, eye = layer.skewness, torch.eye(layer.hidden_size, dtype=F64)
    A, W = (
        (1 - beta) * (M + M.t()) + beta * (M - M.t()) - layer.diffusion * eye
        for M in (layer.weight_linear_l0, layer.weight_hh_l0)
    )
    return A @ h + torch.tanh(W @ h + push)


@pytest.mark.parametrize(
    ("step", "name", "options"),
    [
        (antisymmetric, "AntisymmetricRNN", {"dt": 0.3}),
        (gated_antisymmetric, "GatedAntisymmetricRNN", {"dt": 0.3}),
        (exprnn, "ExpRNN", {}),
        (fastrnn, "FastRNN", {"update_weight": 0.2, "carry_weight": 0.7}),
        (fastgrnn, "FastGRNN", {"gate_scale": 0.6, "gate_shift": 0.1}),
        (indrnn, "IndRNN", {}),
        (indrnn, "IndRNN", {"activation": "tanh"}),
        (lipschitz, "LipschitzRNN", {"dt": 0.3, "skewness": 0.3, "diffusion": 0.2}),
        (lipschitz_midpoint, "LipschitzRNN", {"dt": 0.3, "skewness": 1.0, "scheme": "midpoint"}),
    ],
)
def test_the_printed_equation(step, name, options):
    torch.manual_seed(0)
    layer = getattr(ah, name)(3, 6, **options, dtype=F64)
    for name, weight in layer.named_parameters():
        if name in ("bias_l0", "weight_skew_l0"):
            torch.nn.init.normal_(weight)
    x, h, states = torch.randn(9, 3, dtype=F64), torch.zeros(6, dtype=F64), []
    for x_t in x:
        h = step(layer, h, layer.weight_ih_l0 @ x_t, layer.bias_l0)
        states.append(h)
    torch.testing.assert_close(layer(x)[0], torch.stack(states), rtol=1e-13, atol=1e-14)
