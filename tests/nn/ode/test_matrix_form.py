"""Neural ODEs in matrix form: skewness, starts, adjoints against backpropagation, Lemma 2.3."""

import math

import pytest
import torch

import anharmonic as ah
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
    ode, z = make(dynamics, matrix_activation=activation), states()
    origin, A = ode.vector_field(torch.zeros_like(z), 0.3), ode.state_matrix(z, 0.3)
    field = origin + torch.einsum("bij,bj->bi", A, z)
    torch.testing.assert_close(ode.vector_field(z, 0.3), field)
    assert torch.equal(origin[0], origin[1])
    assert (A[0] - A[1]).abs().max() > 1e-3  # it depends on the state
    assert (ode.state_matrix(z, 0.9) - A).abs().max() > 1e-3  # and on time
    assert activation == "identity" or A.abs().max() <= math.sqrt(2)


def test_skew_is_the_unrestricted_prediction_antisymmetrised():
    """Lemma 3.1's form, (B - B^T) / sqrt 2 of the same weights."""
    skew, free = make("skew"), make("unrestricted")
    B = free.state_matrix(states(), 0.5)
    torch.testing.assert_close(skew.state_matrix(states(), 0.5), (B - B.mT) / math.sqrt(2))


@every
def test_adjoint_method_equals_backpropagation(dynamics):
    grads = []
    for adjoint in (False, True):
        ode, z = make(dynamics, adjoint=adjoint), states().requires_grad_()
        end, forwards = ode(z), ode.nfe
        end.sin().sum().backward()
        assert not adjoint or ode.nfe == forwards > 0
        grads.append([z.grad, *(p.grad for p in ode.parameters())])
    for steps, equation in zip(*grads, strict=True):
        torch.testing.assert_close(equation, steps, rtol=1e-6, atol=1e-8)


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


# ---- the network for tables ----
@every
def test_prediction_is_decoder_of_solution_of_encoder(dynamics):
    torch.manual_seed(0)
    tight = {"rtol": 1e-9, "atol": 1e-9, "dtype": F64}
    model = ah.NeuralODENetwork(5, 2, hidden_size=4, dynamics=dynamics, width=8, **tight)
    x = states(6, 5)
    out = model(x)
    assert out.shape == (6, 2)
    torch.testing.assert_close(out, model.decoder(model.ode(model.encoder(x))))
    torch.testing.assert_close(model(x[:1]), out[:1], rtol=1e-6, atol=1e-7)  # rows do not mix
    out.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
