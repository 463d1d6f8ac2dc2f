"""Adjoints of neural ODEs with random fields, beyond the examples."""

import pytest
import torch
from torch import nn

from anharmonic_papers.theory.bounds.graphcon_energy import features
from anharmonic_papers.theory.bounds.ode_adjoints import (
    adjoint,
    adjoint_equation,
    discrete_adjoint,
    discrete_skew,
    skew_adjoint,
    skew_necessary,
    skew_part,
)
from anharmonic_papers.theory.integrate import rk4

TIMES = torch.linspace(0, 1.5, 11).double()


def vector(d, seed):
    return features(d, 1, seed)[:, 0]


def skew_field(d, seed):
    first, second = skew_part(features(d, d, seed)), skew_part(features(d, d, seed + 1))
    return lambda z, t: torch.sin(3 * t) + (first + torch.cos(t) * second) @ z


class Network(nn.Module):
    """A batched module, as the models are."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)).double()

    def forward(self, z, t):
        return self.net(torch.cat([z, t.expand(len(z), 1)], 1))


def field_of_network():
    network = Network()
    return lambda z, t: network(z[None], t)[0]


def test_the_adjoint_of_a_linear_field_is_the_matrix_exponential():
    matrix = features(3, 3, 0)

    def field(z, t):
        return matrix @ z

    states = rk4(field, vector(3, 1), TIMES, 10)
    rows = adjoint(field, states, vector(3, 2), TIMES, 10)
    exact = vector(3, 2) @ torch.linalg.matrix_exp(matrix * 1.5)
    assert torch.allclose(rows[0], exact, rtol=1e-6)


@pytest.mark.parametrize("field", [skew_field(3, 0), field_of_network()])
def test_the_adjoint_equation_agrees_with_automatic_differentiation(field):
    check = adjoint_equation(field, vector(3, 1), TIMES, lambda z: (z**3).sum())
    assert check.applies and check.holds and check.measured.std() > 1e-3


@pytest.mark.parametrize("d", [2, 3, 6])
def test_skew_jacobians_keep_the_adjoint_and_others_do_not(d):
    check = skew_adjoint(skew_field(d, d), vector(d, 1), TIMES, vector(d, 2), steps=10)
    assert check.applies and check.holds
    other = features(d, d, d)
    off = skew_adjoint(lambda z, t: other @ z, vector(d, 1), TIMES, vector(d, 2))
    assert not off.applies and not off.holds


def test_the_rate_of_change_is_that_of_the_symmetric_part():
    check = skew_necessary(field_of_network(), vector(3, 1), TIMES, vector(3, 2))
    assert check.holds and check.measured.abs().max() > 1e-3


@pytest.mark.parametrize("h", [0.01, 0.3])
def test_the_discrete_identities_to_rounding(h):
    check = discrete_adjoint(field_of_network(), vector(3, 1), h, 40, vector(3, 2))
    assert check.holds
    skew = discrete_skew(skew_field(4, 0), vector(4, 1), h, 40, vector(4, 2))
    assert skew.applies and skew.holds
    assert (skew.measured.diff() < 0).all()
    off = discrete_skew(field_of_network(), vector(3, 1), h, 40, vector(3, 2))
    assert not off.applies and not off.holds


def test_the_discrete_adjoint_is_that_of_automatic_differentiation():
    field, h = field_of_network(), 0.2
    start = vector(3, 1).requires_grad_()
    z = start
    for n in range(10):
        z = z + h * field(z, torch.tensor(n * h, dtype=torch.float64))
    (row,) = torch.autograd.grad(z, start, vector(3, 2))
    check = discrete_adjoint(field, vector(3, 1), h, 10, vector(3, 2))
    assert float(row.square().sum()) == pytest.approx(float(check.measured[0]), rel=1e-12)
