"""Derivatives against closed forms."""

import torch

from anharmonic_papers.theory.derivatives import derivative, jacobian


def test_jacobian_of_a_matrix_valued_function():
    torch.manual_seed(0)
    a, x = torch.randn(2, 3, 4).double(), torch.randn(4).double()
    found = jacobian(lambda x: (a @ x).sin(), x)
    assert torch.allclose(found, (a @ x).cos()[..., None] * a)
    assert torch.allclose(derivative(lambda x: (a @ x).sin(), x, 2 * x), found @ (2 * x))


def test_what_does_not_depend_on_the_point_has_derivative_zero():
    x = torch.ones(3)
    assert not jacobian(lambda x: torch.ones(2, 2), x).any()
    assert jacobian(lambda x: torch.ones(2, 2), x).shape == (2, 2, 3)
