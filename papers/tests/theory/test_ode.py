"""Statements on neural ODEs, beyond their examples."""

import pytest
import torch
from torch import nn

from anharmonic_papers.theory import ode
from anharmonic_papers.theory.graphs import features
from anharmonic_papers.theory.integrate import rk4

TIMES = torch.linspace(0, 1.5, 11).double()


def vector(d, seed):
    return features(d, 1, seed)[:, 0]


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
    rows = ode.adjoint(field, states, vector(3, 2), TIMES, 10)
    exact = vector(3, 2) @ torch.linalg.matrix_exp(matrix * 1.5)
    assert torch.allclose(rows[0], exact, rtol=1e-6)


def test_the_discrete_adjoint_is_that_of_automatic_differentiation():
    field, h = field_of_network(), 0.2
    start = vector(3, 1).requires_grad_()
    z = start
    for n in range(10):
        z = z + h * field(z, torch.tensor(n * h, dtype=torch.float64))
    (row,) = torch.autograd.grad(z, start, vector(3, 2))
    check = ode.ode_discrete_adjoint(field, vector(3, 1), h, 10, vector(3, 2))
    assert float(row.square().sum()) == pytest.approx(float(check.measured[0]), rel=1e-12)


def fields(d, draws, seed):
    """B_0 + Σ b_k x_k, i.i.d. entries."""
    parts = torch.randn(
        d + 1, draws, d, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )
    return lambda x: parts[0] + torch.einsum("knij,k->nij", parts[1:], x)


def test_the_skew_model_has_the_smaller_symmetric_part():
    # The notes for d = 5: off-diagonal 0.30 in the mean, diagonal up to 0.40.
    drawn = fields(5, 20000, 1)
    check = ode.ode_symmetric_part(drawn, torch.ones(5).double())
    assert check.holds
    ratio = check.measured / check.bound
    diagonal = ratio.diagonal()
    off = (ratio.sum() - diagonal.sum()) / 20
    assert 0.28 < off < 0.40 and 0.30 < diagonal.mean() < 0.48


def test_a_constant_skew_matrix_has_the_best_score():
    matrix, other = ode.skew_part(features(3, 3, 0)), features(3, 3, 1)
    x, times = features(3, 1, 2)[:, 0], torch.linspace(0, 2, 30).double()
    check = ode.ode_skew_trained(
        lambda z, t: matrix @ z, lambda z, t: other @ z, x, times, features(3, 1, 3)[:, 0], 3
    )
    assert check.holds and abs(float(check.measured) - 1) < 1e-3


def test_jacobian_of_a_matrix_valued_function():
    torch.manual_seed(0)
    a, x = torch.randn(2, 3, 4).double(), torch.randn(4).double()
    found = ode.jacobian(lambda x: (a @ x).sin(), x)
    assert torch.allclose(found, (a @ x).cos()[..., None] * a)
    assert torch.allclose(ode.derivative(lambda x: (a @ x).sin(), x, 2 * x), found @ (2 * x))


def test_what_does_not_depend_on_the_point_has_derivative_zero():
    x = torch.ones(3)
    assert not ode.jacobian(lambda x: torch.ones(2, 2), x).any()
    assert ode.jacobian(lambda x: torch.ones(2, 2), x).shape == (2, 2, 3)
