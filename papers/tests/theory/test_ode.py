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


def skew_field(d, seed):
    first, second = ode.skew_part(features(d, d, seed)), ode.skew_part(features(d, d, seed + 1))
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
    rows = ode.adjoint(field, states, vector(3, 2), TIMES, 10)
    exact = vector(3, 2) @ torch.linalg.matrix_exp(matrix * 1.5)
    assert torch.allclose(rows[0], exact, rtol=1e-6)


@pytest.mark.parametrize("d", [2, 3, 6])
def test_skew_jacobians_keep_the_adjoint_and_others_do_not(d):
    check = ode.ode_skew_adjoint(skew_field(d, d), vector(d, 1), TIMES, vector(d, 2), steps=10)
    assert check.applies and check.holds
    other = features(d, d, d)
    off = ode.ode_skew_adjoint(lambda z, t: other @ z, vector(d, 1), TIMES, vector(d, 2))
    assert not off.applies and not off.holds


@pytest.mark.parametrize("h", [0.01, 0.3])
def test_the_discrete_identities_to_rounding(h):
    check = ode.ode_discrete_adjoint(field_of_network(), vector(3, 1), h, 40, vector(3, 2))
    assert check.holds
    skew = ode.ode_discrete_skew(skew_field(4, 0), vector(4, 1), h, 40, vector(4, 2))
    assert skew.applies and skew.holds
    assert (skew.measured.diff() < 0).all()
    off = ode.ode_discrete_skew(field_of_network(), vector(3, 1), h, 40, vector(3, 2))
    assert not off.applies and not off.holds


def test_the_discrete_adjoint_is_that_of_automatic_differentiation():
    field, h = field_of_network(), 0.2
    start = vector(3, 1).requires_grad_()
    z = start
    for n in range(10):
        z = z + h * field(z, torch.tensor(n * h, dtype=torch.float64))
    (row,) = torch.autograd.grad(z, start, vector(3, 2))
    check = ode.ode_discrete_adjoint(field, vector(3, 1), h, 10, vector(3, 2))
    assert float(row.square().sum()) == pytest.approx(float(check.measured[0]), rel=1e-12)


def network(d, seed, out):
    first, second = features(2 * d, d, seed), features(out, 2 * d, seed + 1)
    return lambda x: second @ torch.sin(first @ x + 0.2)


def changing_skew_field(d, seed):
    inner = network(d, seed, d * d)
    return lambda x: ode.skew_part(inner(x).reshape(d, d))


def point(d):
    return features(d, 1, 8)[:, 0]


@pytest.mark.parametrize("d", [2, 3, 5])
def test_skew_fields_have_skew_means_and_generators(d):
    mean = ode.ode_skew_mean(changing_skew_field(d, d), point(d))
    assert mean.applies and mean.holds
    check = ode.ode_skew_generator(changing_skew_field(d, d), point(d))
    assert check.applies and check.holds
    assert (check.measured - check.bound).abs().max() < 1e-12
    printed = ode.ode_skew_generator_printed(changing_skew_field(d, d), point(d))
    assert printed.applies and not printed.holds
    inner = network(d, 0, d * d)
    assert not ode.ode_skew_mean(lambda x: inner(x).reshape(d, d), point(d)).applies


def test_the_proofs_generator_is_right_for_constant_fields():
    constant = ode.skew_part(features(3, 3, 0))
    assert ode.ode_skew_generator_printed(lambda x: constant + 0 * x.sum(), point(3)).holds


@pytest.mark.parametrize("d", [2, 3, 5])
def test_no_changing_skew_field_is_a_jacobian(d):
    check = ode.ode_skew_no_jacobian(changing_skew_field(d, d), point(d))
    assert check.applies and check.holds
    constant = ode.skew_part(features(d, d, 0))
    assert not ode.ode_skew_no_jacobian(lambda x: constant, point(d)).applies


def test_the_example_misses_by_one():
    def example(x):
        zero = 0 * x[0]
        return torch.stack([torch.stack([zero, x[0]]), torch.stack([-x[0], zero])])

    assert ode.ode_skew_no_jacobian(example, point(2)).measured == 1


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_only_zero_is_antisymmetric_and_symmetric(d):
    check = ode.ode_skew_affine(d)
    assert check.holds and check.measured == d**3


def test_skew_affine_needs_a_dimension():
    with pytest.raises(ValueError, match="d must be"):
        ode.ode_skew_affine(0)


def test_fields_with_skew_jacobians_are_affine_and_others_are_outside():
    matrix = ode.skew_part(features(5, 5, 0))
    check = ode.ode_skew_affine_field(lambda x: matrix @ x - 2, features(7, 5, 1))
    assert check.applies and check.holds
    # A(z)z with a changing skew A has a symmetric part in its Jacobian.
    field = changing_skew_field(5, 0)
    off = ode.ode_skew_affine_field(lambda x: field(x) @ x, features(7, 5, 1))
    assert not off.applies and not off.holds


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


def test_few_draws_do_not_decide():
    assert not ode.ode_symmetric_part(fields(5, 10, 0), torch.ones(5).double()).holds


def test_a_skew_field_against_itself_without_factor_holds_nowhere():
    drawn = fields(3, 2000, 0)
    check = ode.ode_symmetric_part(lambda x: ode.skew_part(drawn(x)), torch.ones(3).double())
    assert not check.holds  # B_ij = -B_ji are not independent: √2 B against B


def test_orthogonal_steps_have_skew_limits():
    generator = ode.skew_part(features(5, 5, 0))
    for h in (0.5, 0.05):
        check = ode.ode_orthogonal_limit(torch.linalg.matrix_exp(h * generator), h)
        assert check.applies and check.holds
        assert check.measured.abs().max() < 20 * h
    off = ode.ode_orthogonal_limit(torch.eye(5).double() + 0.05 * generator, 0.05)
    assert not off.applies and not off.holds


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
