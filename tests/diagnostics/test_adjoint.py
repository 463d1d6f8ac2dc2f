"""The adjoint over time: its equation, backpropagation at inner times, the score, layers."""

import pytest
import torch

import anharmonic as ah
from anharmonic.diagnostics.adjoint import adjoint_norms, adjoint_score, network_adjoint_norms
from anharmonic.nn import model_class
from anharmonic.nn.ode.matrix_form import DYNAMICS

F64 = torch.float64


def make(dynamics, **options):
    options = {"width": 6, "rtol": 1e-9, "atol": 1e-11, "dtype": F64, **options}
    ode = ah.NeuralODE(4, dynamics, **options)
    with torch.no_grad():
        ode.head.weight.mul_(5)
    return ode


def loss(end):
    return (end.sin() * torch.arange(1, 5)).sum()


@pytest.mark.covering
@pytest.mark.parametrize("dynamics", DYNAMICS)
@pytest.mark.parametrize("adjoint", [False, True])
def test_norms_are_those_of_backpropagation(dynamics, adjoint):
    pytest.importorskip("torchdiffeq")
    ode, z = make(dynamics, end_time=0.9, adjoint=adjoint), torch.randn(3, 4, dtype=F64)
    norms = adjoint_norms(ode, z, loss, points=4)
    times = torch.linspace(0, 0.9, 4, dtype=F64).tolist()
    with torch.no_grad():
        path = ode.trajectory(z, times)
    for k, time in enumerate(times):
        inner = path[k].clone().requires_grad_()
        end = ode.trajectory(inner, [time, 0.9])[-1] if k < 3 else inner
        (a,) = torch.autograd.grad(loss(end), inner)
        torch.testing.assert_close(norms[k], a.norm(dim=1), rtol=1e-6 if k < 3 else 1e-12, atol=0)
    assert (norms.amax(0) / norms.amin(0)).max() > 1.001


def test_small_gradients_are_measured_as_well():
    pytest.importorskip("torchdiffeq")
    ode, z = make("unrestricted", rtol=1e-6, atol=1e-8), torch.randn(2, 4, dtype=F64)
    norms = adjoint_norms(ode, z, loss, points=3)
    small = adjoint_norms(ode, z, lambda end: 1e-12 * loss(end), points=3)
    torch.testing.assert_close(small * 1e12, norms, rtol=1e-9, atol=0)


def test_score_of_known_norms():
    # Steady, from 1 to 101 (5 and 95 % are 6 and 96), and none.
    norms = torch.stack([torch.full((101,), 3.0), torch.arange(1.0, 102.0), torch.zeros(101)], 1)
    expected = torch.tensor([1.0, 16.0, 1.0], dtype=F64)
    torch.testing.assert_close(adjoint_score(norms), expected)


def test_of_a_network_are_those_of_its_ode():
    pytest.importorskip("torchdiffeq")
    network = model_class("NeuralODE")(3, 2, hidden_size=4).double()
    x = torch.randn(5, 3, dtype=F64)
    norms = network_adjoint_norms(network, x, lambda o: o[:, 0].sum(), points=4)
    end = network.ode(network.encoder(x)).detach().requires_grad_()
    network.decoder(end)[:, 0].sum().backward()
    torch.testing.assert_close(norms[-1], end.grad.norm(dim=-1))
    assert norms.shape == (4, 5)
