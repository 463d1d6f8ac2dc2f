"""SkewRNN: its recurrence by hand, skewness, Example 2.8, norms, order in dt."""

import itertools
import math

import pytest
import torch

import anharmonic as ah
from anharmonic.diagnostics.gradients import state_gradients

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


def constant_gates(layer):
    """Gates that see neither state nor input: A is constant."""
    with torch.no_grad():
        layer.weight_hh_l0[:5].zero_()
        layer.weight_ih_l0[:5].zero_()
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


def test_example_28_is_an_identity():
    """|a_t|^2 = |a_{t+1}|^2 + h a (J + J^T) a^T + h^2 |a J|^2 with J the Jacobian of f at t."""
    layer, x, h = make(), noise(8, 1, 2), 0.1
    norms = state_gradients(layer, x, lambda y: y.sin().sum()).flip(0)[:, 0]
    states = [torch.zeros(5, dtype=F64)]
    for x_t in x:
        states.append(layer.step(x_t, (states[-1][None, None],))[0][0].detach())
    a = states[-1].cos()
    symmetric = 0.0
    for t in reversed(range(8)):
        step = torch.autograd.functional.jacobian(
            lambda y, t=t: layer.step(x[t], (y[None, None],))[0][0], states[t]
        )
        J = (step - torch.eye(5, dtype=F64)) / h
        before = norms[t + 1] ** 2 + h * a @ (J + J.T) @ a + h**2 * (a @ J).square().sum()
        torch.testing.assert_close(norms[t] ** 2, before, rtol=1e-12, atol=1e-14)
        symmetric = max(symmetric, float((J + J.T).abs().max()))
        a = a @ step
    assert symmetric > 1e-2  # a skew A that depends on the state has no skew Jacobian


def test_constant_gates_make_gradients_grow_by_the_second_order_only():
    """Skew J: |a_t|^2 = |a_{t+1}|^2 + h^2 |a_{t+1} A|^2, exactly."""
    layer, x, h = constant_gates(make()), noise(12, 1, 2), 0.1
    A = layer.state_matrix(torch.zeros(1, 5, dtype=F64), x[0])[0]
    norms = state_gradients(layer, x, lambda y: y[..., 0].sum()).flip(0)[:, 0]
    a = torch.eye(5, dtype=F64)[0]
    for t in reversed(range(12)):
        squared = a.square().sum() + h**2 * (a @ A).square().sum()
        torch.testing.assert_close(norms[t] ** 2, squared, rtol=1e-12, atol=0)
        a = a + h * a @ A
    assert norms[0] > norms[-1]
    bound = (1 + h**2 * torch.linalg.matrix_norm(A, 2) ** 2) ** 6
    assert norms[0] <= norms[-1] * bound


def test_states_without_source_grow_as_stated():
    """|y_n|^2 = |y_{n-1}|^2 + dt^2 |A y|^2, whatever the gates."""
    layer, y = make(), noise(3, 5)
    u = torch.zeros(3, 2, dtype=F64)
    with torch.no_grad():
        layer.bias_l0[5:].zero_()
        for _ in range(5):
            A_y = torch.einsum("bij,bj->bi", layer.state_matrix(y, u), y)
            new, _ = layer.step(u, (y[None],))
            grown = y.square().sum(1) + 0.01 * A_y.square().sum(1)
            torch.testing.assert_close(new.square().sum(1), grown, rtol=1e-13, atol=0)
            y = new


def test_first_order_towards_the_rotation():
    """Constant gates, no source: y(t) = exp(t A) y(0)."""
    errors, end, y = [], 2.0, noise(1, 5)
    for steps in (100, 200, 400):
        layer = constant_gates(make(dt=end / steps))
        with torch.no_grad():
            layer.bias_l0[5:].zero_()
            A = layer.state_matrix(y, torch.zeros(1, 2, dtype=F64))[0]
            _, state = layer(torch.zeros(steps, 1, 2, dtype=F64), (y[None],))
        errors.append(float((state.h[0, 0] - torch.linalg.matrix_exp(end * A) @ y[0]).norm()))
    orders = [math.log2(a / b) for a, b in itertools.pairwise(errors)]
    assert all(0.9 < order < 1.1 for order in orders), (orders, errors)


def test_large_steps_are_warned_of():
    with pytest.warns(ah.StabilityWarning, match="dt must be <= 1; got dt=5; choose a smaller dt"):
        ah.SkewRNN(2, 3, dt=5.0)
    with pytest.warns(ah.StabilityWarning, match="elapsed up to 30"):
        make(dt=0.1)(noise(2, 1, 2), elapsed=torch.full((2, 1), 30.0, dtype=F64))
