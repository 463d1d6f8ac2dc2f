"""LipschitzRNN: the blend of symmetric and skew, and the order of both schemes."""

import math

import pytest
import torch

import anharmonic as ah

F64 = torch.float64


def make(H=6, **options):
    torch.manual_seed(0)
    return ah.LipschitzRNN(3, H, **options, dtype=F64)


@pytest.mark.parametrize("beta", [0.0, 0.3, 0.75, 1.0])
def test_the_blend_has_the_printed_parts(beta):
    layer = make(skewness=beta, diffusion=0.2)
    for stem in ("weight_linear_l0", "weight_hh_l0"):
        M, A = getattr(layer, stem).detach(), layer.blended(getattr(layer, stem)).detach()
        eye = torch.eye(6, dtype=F64)
        torch.testing.assert_close((A + A.t()) / 2, (1 - beta) * (M + M.t()) - 0.2 * eye)
        torch.testing.assert_close((A - A.t()) / 2, beta * (M - M.t()))
    values = torch.linalg.eigvals(layer.blended(layer.weight_linear_l0))
    if beta == 1:
        assert (values.real + 0.2).abs().max() < 1e-13
    if beta == 0:
        assert values.imag.abs().max() < 1e-13


@pytest.mark.parametrize("hidden", [1, 2, 5, 40])
def test_every_direction_decays_at_first(hidden):
    for seed in range(20):
        torch.manual_seed(seed)
        layer = ah.LipschitzRNN(3, hidden, dtype=F64)
        A = layer.blended(layer.weight_linear_l0).detach()
        assert torch.linalg.eigvalsh((A + A.t()) / 2).max() < -0.05 + 1e-12


def slope(layer, h, x):
    A, W = layer.blended(layer.weight_linear_l0), layer.blended(layer.weight_hh_l0)
    return A @ h + torch.tanh(W @ h + layer.weight_ih_l0 @ x + layer.bias_l0)


def solved(layer, x, time, steps=2000):
    """The classical fourth-order solver, the input held."""
    h, dt = torch.zeros(layer.hidden_size, dtype=F64), time / steps
    for _ in range(steps):
        a = slope(layer, h, x)
        b = slope(layer, h + dt / 2 * a, x)
        c = slope(layer, h + dt / 2 * b, x)
        d = slope(layer, h + dt * c, x)
        h = h + dt / 6 * (a + 2 * b + 2 * c + d)
    return h


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("scheme, order", [("euler", 1), ("midpoint", 2)])
def test_steps_converge_to_the_equation(scheme, order):
    x = torch.tensor([0.5, -1.0, 2.0], dtype=F64)
    with torch.no_grad():
        exact = solved(make(), x, time=2.0)
        errors = [
            (make(dt=2 / n, scheme=scheme)(x.expand(n, 3))[1].h[0] - exact).norm() for n in (40, 80)
        ]
    assert abs(math.log2(errors[0] / errors[1]) - order) < 0.1
