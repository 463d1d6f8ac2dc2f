"""Statements on neural ODEs, beyond their examples."""

import torch

from anharmonic_papers.theory import ode
from anharmonic_papers.theory.graphs import features


def vector(d, seed):
    return features(d, 1, seed)[:, 0]


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
