"""Neural ODEs in matrix form: skewness, starts, adjoints against backpropagation, Lemma 2.3."""

import math

import pytest
import torch

import anharmonic as ah
from anharmonic.diagnostics.adjoint import adjoint_norms
from anharmonic.nn.ode.matrix_form import DYNAMICS

pytest.importorskip("torchdiffeq", reason="solves need the extra 'ode'")
F64 = torch.float64
every = pytest.mark.parametrize("dynamics", DYNAMICS)
matrix_form = pytest.mark.parametrize("dynamics", ["skew", "unrestricted"])


def make(dynamics, d=4, seed=0, scale=5.0, **options):
    """An ODE whose heads are large enough to be seen."""
    torch.manual_seed(seed)
    options = {"width": 6, "rtol": 1e-9, "atol": 1e-11, "dtype": F64, **options}
    ode = ah.NeuralODE(d, dynamics, **options)
    with torch.no_grad():
        ode.head.weight.mul_(scale)
    return ode


def states(batch=3, d=4, seed=1):
    return torch.randn(batch, d, dtype=F64, generator=torch.Generator().manual_seed(seed))


@matrix_form
@pytest.mark.parametrize("activation", ["identity", "tanh"])
def test_vector_field_is_origin_plus_matrix_times_state(dynamics, activation):
    ode = make(dynamics, matrix_activation=activation)
    z = states()
    at_origin = ode.vector_field(torch.zeros_like(z), 0.3)
    A = ode.state_matrix(z, 0.3)
    torch.testing.assert_close(
        ode.vector_field(z, 0.3), at_origin + torch.einsum("bij,bj->bi", A, z)
    )
    assert torch.equal(at_origin[0], at_origin[1])
    assert (A[0] - A[1]).abs().max() > 1e-3  # it depends on the state
    assert (ode.state_matrix(z, 0.9) - A).abs().max() > 1e-3  # and on time
    if activation == "tanh":
        assert A.abs().max() <= math.sqrt(2)


def test_skew_is_exactly_skew_and_unrestricted_is_not():
    A = make("skew").state_matrix(states(), 0.5)
    assert torch.equal(A, -A.mT) and A.abs().max() > 1e-2
    z = states()
    assert torch.einsum("bi,bij,bj->b", z, A, z).abs().max() < 1e-14
    B = make("unrestricted").state_matrix(states(), 0.5)
    assert (B + B.mT).abs().max() > 1e-2


def test_skew_is_the_unrestricted_prediction_antisymmetrised():
    """Lemma 3.1's form, (B - B^T) / sqrt 2 of the same weights."""
    skew, free = make("skew"), make("unrestricted")
    B = free.state_matrix(states(), 0.5)
    torch.testing.assert_close(skew.state_matrix(states(), 0.5), (B - B.mT) / math.sqrt(2))


@matrix_form
@pytest.mark.parametrize(
    "kind, matrix, origin",
    [
        ("regression", lambda d, w: w * math.sqrt(d), lambda d, w: math.sqrt(d * w)),
        ("classification", lambda d, w: math.sqrt(2 * d), lambda d, w: math.sqrt(2 * w)),
    ],
)
def test_heads_start_within_the_documents_bounds(dynamics, kind, matrix, origin):
    d, w = 12, 40
    torch.manual_seed(3)
    ode = ah.NeuralODE(d, dynamics, width=w, normalisation=kind)
    for head, divisor in ((ode.head, matrix(d, w)), (ode.origin_head, origin(d, w))):
        bound = 1 / math.sqrt(w) / divisor
        for parameter in head.parameters():
            assert parameter.abs().max() <= bound * (1 + 1e-6)
        assert head.weight.abs().max() > 0.9 * bound  # many draws come near it
    before = ode.head.weight.clone()
    ode.reset_parameters()
    assert not torch.equal(before, ode.head.weight)
    assert ode.head.weight.abs().max() <= 1 / math.sqrt(w) / matrix(d, w) * (1 + 1e-6)


def test_the_head_of_regular_starts_as_in_torch():
    torch.manual_seed(3)
    ode = ah.NeuralODE(12, "regular", width=40)
    assert 0.9 / math.sqrt(40) < ode.head.weight.abs().max() <= 1 / math.sqrt(40)


@every
def test_adjoint_method_equals_backpropagation(dynamics):
    grads = []
    for adjoint in (False, True):
        ode = make(dynamics, adjoint=adjoint)
        z = states().requires_grad_()
        ode(z).sin().sum().backward()
        grads.append([z.grad, *(p.grad for p in ode.parameters())])
    for steps, equation in zip(*grads, strict=True):
        torch.testing.assert_close(equation, steps, rtol=1e-6, atol=1e-8)


@every
def test_backpropagation_is_the_gradient_of_the_steps_taken(dynamics):
    ode = make(dynamics, d=2, solver="rk4", step_size=0.25)
    torch.autograd.gradcheck(ode, states(2, 2).requires_grad_())


@every
def test_backwards_nfe_does_not_count(dynamics):
    ode = make(dynamics, adjoint=True)
    end = ode(states())
    found = ode.nfe
    end.sum().backward()
    assert ode.nfe == found > 0


@every
def test_solution_converges_with_the_tolerance(dynamics):
    with torch.no_grad():
        exact = make(dynamics, rtol=1e-12, atol=1e-13)(states())
        errors, counts = [], []
        for rtol in (1e-3, 1e-6, 1e-9):
            ode = make(dynamics, rtol=rtol, atol=rtol)
            errors.append(float((ode(states()) - exact).abs().max()))
            counts.append(ode.nfe)
    assert errors[0] < 1e-2 and errors[1] < 1e-5 and errors[2] < 1e-8
    assert counts == sorted(counts) and counts[0] < counts[2]


def constant(ode):
    """Makes A constant in state and time; large, so that a wrong sign shows."""
    with torch.no_grad():
        ode.head.weight.zero_()
        ode.head.bias.copy_(2 * torch.randn(ode.head.bias.shape, dtype=F64))
    return ode


def test_constant_skew_matrix_keeps_the_adjoint_norm():
    """Lemma 2.3: to solver tolerance; a constant matrix that is not skew does not."""
    z = states()
    norms = adjoint_norms(constant(make("skew")), z, lambda end: end.sin().sum())
    torch.testing.assert_close(norms, norms[:1].expand_as(norms), rtol=1e-6, atol=0)
    norms = adjoint_norms(constant(make("unrestricted")), z, lambda end: end.sin().sum())
    assert (norms.amax(0) / norms.amin(0)).max() > 1.5


def test_constant_skew_matrix_without_source_keeps_the_state_norm():
    ode = constant(make("skew", end_time=3.0))
    with torch.no_grad():
        for parameter in ode.origin_head.parameters():
            parameter.zero_()
        path = ode.trajectory(states(), torch.linspace(0, 3, 7))
    norms = path.norm(dim=-1)
    torch.testing.assert_close(norms, norms[:1].expand_as(norms), rtol=1e-6, atol=0)
    exact = torch.linalg.matrix_exp(3 * ode.state_matrix(states(1), 0.0)[0]) @ states().T
    torch.testing.assert_close(path[-1], exact.T, rtol=1e-6, atol=1e-7)


@every
def test_trajectory_batches_and_single_states(dynamics):
    ode = make(dynamics, end_time=0.8)
    z = states()
    with torch.no_grad():
        path = ode.trajectory(z, [0.0, 0.2, 0.8])
        assert torch.equal(path[0], z) and path.shape == (3, 3, 4)
        torch.testing.assert_close(path[-1], ode(z), rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(ode(z[0]), ode(z)[0], rtol=1e-7, atol=1e-9)
        later = ode.trajectory(path[1], [0.2, 0.8])[-1]
    torch.testing.assert_close(later, path[-1], rtol=1e-7, atol=1e-9)


def test_what_no_dynamics_take():
    for words in ({"matrix_activation": "relu"}, {"normalisation": "none"}, {"num_layers": 0}):
        with pytest.raises(ValueError, match=next(iter(words)) + " must be"):
            ah.NeuralODE(4, **words)
    with pytest.raises(ValueError, match="for state_matrix; got 'regular'"):
        ah.NeuralODE(4, "regular").state_matrix(torch.zeros(2, 4), 0.0)


def test_repr_names_what_differs():
    assert repr(ah.NeuralODE(4, width=8, adjoint=True)).startswith("NeuralODE(\n  4, width=8, adj")
