"""SkewRNN: its recurrence by hand, skewness, warnings."""

import pytest
import torch

import anharmonic as ah

F64 = torch.float64


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


def make(dt=0.1, scale=2.0, **options):
    torch.manual_seed(0)
    layer = ah.SkewRNN(2, 5, dt=dt, dtype=F64, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.mul_(scale)
    return layer


@pytest.mark.parametrize("bias", [True, False])
def test_a_step_is_euler_with_the_state_matrix(bias):
    layer, y, u = make(bias=bias), noise(3, 5), noise(3, 2, seed=1)
    A = layer.state_matrix(y, u)
    source = u @ layer.weight_ih_l0[5:].t() + (layer.bias_l0[5:] if bias else 0.0)
    exact = y + 0.1 * (torch.tanh(source) + torch.einsum("bij,bj->bi", A, y))
    torch.testing.assert_close(layer.step(u, (y[None],))[0], exact, rtol=1e-13, atol=1e-14)


def test_the_matrix_is_exactly_skew_and_depends_on_state_and_input():
    layer, y, u = make(), noise(3, 5), noise(3, 2, seed=1)
    A = layer.state_matrix(y, u)
    assert torch.equal(A, -A.mT)
    assert (layer.state_matrix(2 * y, u) - A).abs().max() > 1e-2
    assert (layer.state_matrix(y, 2 * u) - A).abs().max() > 1e-2
