"""The solution of oscillator networks against closed forms, and how networks are put together."""

import math
from itertools import pairwise

import pytest
import torch

from anharmonic_papers.theory.oscillator_networks import (
    OscillatorLayer,
    Oscillators,
    before,
    chain,
    extended,
    sine_bank,
    solve,
    steepest,
    time_neuron,
    wave,
    windowed_sine,
)

F64 = torch.float64


def linear(x):
    return x


def one(t):
    return torch.ones_like(t)[:, None]


def ramp(t):
    return t[:, None]


def random_layers(*widths):
    torch.manual_seed(0)
    layers = tuple(
        OscillatorLayer(
            -3 * torch.rand(m, dtype=F64),
            torch.randn(m, below, dtype=F64),
            torch.randn(m, dtype=F64),
        )
        for below, m in pairwise(widths)
    )
    return Oscillators(layers, torch.randn(2, widths[-1], dtype=F64), torch.randn(2, dtype=F64))


@pytest.mark.parametrize(
    "scheme, order, limit", [("runge-kutta-nystrom", 4, 1e-7), ("symplectic-euler", 1, 0.05)]
)
def test_the_order_of_the_schemes_on_a_forced_oscillator(scheme, order, limit):
    """From rest under a constant force: y = (1 - cos ωt)/ω²."""
    omega = torch.tensor([1.0, 3.0], dtype=F64)
    errors = []
    for dt in (0.02, 0.01):
        network = Oscillators((sine_bank(omega, 1.0),), torch.eye(2, dtype=F64), 0 * omega)
        t, z = solve(network, one, dt=dt, end=3.0, scheme=scheme, activation=linear)
        errors.append((z - (1 - torch.cos(omega * t[:, None])) / omega**2).abs().max())
    assert errors[1] < limit
    assert math.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.1)


def test_both_schemes_end_at_the_same_nonlinear_solution():
    network = random_layers(1, 4, 3)
    _, exact = solve(network, lambda t: torch.sin(2 * t)[:, None], dt=0.01, end=2.0)
    _, z = solve(
        network, lambda t: torch.sin(2 * t)[:, None], dt=1e-3, end=2.0, scheme="symplectic-euler"
    )
    torch.testing.assert_close(z[::10], exact, rtol=0, atol=2e-2)
    assert (exact - exact[0]).abs().max() > 0.5


def test_symplectic_euler_by_hand():
    """Velocity first; the second layer sees the new state of the first."""
    (a, b), A, c = network = random_layers(1, 2, 1)
    y1, v1 = torch.zeros(2, dtype=F64), torch.zeros(2, dtype=F64)
    y2, v2 = torch.zeros(1, dtype=F64), torch.zeros(1, dtype=F64)
    dt, found = 0.1, [c]
    for n in range(1, 6):
        v1 = v1 + dt * torch.tanh(a.w * y1 + a.V @ torch.tensor([n * dt], dtype=F64) + a.b)
        y1 = y1 + dt * v1
        v2 = v2 + dt * torch.tanh(b.w * y2 + b.V @ y1 + b.b)
        y2 = y2 + dt * v2
        found.append(A @ y2 + c)
    _, z = solve(network, ramp, dt=dt, end=0.5, scheme="symplectic-euler")
    torch.testing.assert_close(z, torch.stack(found))


def test_a_chain_feeds_one_readout_to_the_next():
    """The time neuron before a free particle: y'' = t²/4 + c, y = t⁴/48 + c t²/2."""
    clock = time_neuron()._replace(c=torch.tensor([0.5], dtype=F64))
    particle = OscillatorLayer(0 * clock.c, torch.ones(1, 1, dtype=F64), 0 * clock.c)
    network = chain(
        clock._replace(layers=(clock.layers[0]._replace(b=clock.c),)),
        Oscillators((particle,), torch.ones(1, 1, dtype=F64), 0 * clock.c),
    )
    t, z = solve(network, ramp, dt=0.01, end=2.0, activation=linear)
    torch.testing.assert_close(z[:, 0], t**4 / 48 + t**2 / 4, rtol=0, atol=1e-9)
    assert network.neurons == 2


def test_unknown_schemes_and_empty_intervals_are_refused():
    with pytest.raises(ValueError, match="scheme must be one of"):
        solve(time_neuron(), ramp, dt=0.1, end=1.0, scheme="euler")
    with pytest.raises(ValueError, match=r"end must be a step of 0\.1 or more after start=0"):
        solve(time_neuron(), ramp, dt=0.1, end=0.0)


def test_the_windowed_sine_in_closed_form():
    """It sees u(t - r) with sin(ωr), so what is recent least."""
    omega = torch.tensor([0.3, 2.0, 50.0], dtype=F64)
    found = windowed_sine(lambda t: torch.ones_like(t)[:, None], omega, 2.0)
    torch.testing.assert_close(found, (1 - torch.cos(2 * omega)) / omega, rtol=0, atol=1e-9)
    found = windowed_sine(lambda t: t[:, None], omega[:2], 2.0)
    expected = (2 * omega[:2] - torch.sin(2 * omega[:2])) / omega[:2] ** 2
    torch.testing.assert_close(found, expected)


def test_the_steepest_slope_of_the_wave():
    assert steepest(wave, 3.0) == pytest.approx(3.3, rel=1e-6)


def test_a_delayed_signal_is_zero_before_it_starts():
    t = torch.tensor([0.0, 0.4, 0.5, 1.0], dtype=F64)
    found = before(lambda t: (1 + t)[:, None, None], 0.5)(t)
    assert found.flatten().tolist() == [0.0, 0.0, 1.0, 1.5]


def test_an_input_is_continued_linearly_to_zero():
    longer = extended(lambda t: torch.cos(t)[:, None], 0.5)
    t = torch.tensor([-0.5, -0.25, 0.0, 1.0], dtype=F64)
    expected = torch.tensor([0.0, 0.5, 1.0], dtype=F64)
    torch.testing.assert_close(longer(t)[:3, 0], expected)
    torch.testing.assert_close(longer(t)[3, 0], torch.cos(t[3]))
