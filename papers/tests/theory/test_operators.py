"""Networks that are causal operators, piece by piece."""

import math

import pytest
import torch

from anharmonic_papers.theory.networks import identity, square
from anharmonic_papers.theory.operators import (
    delay,
    function,
    inverse_sine,
    inverse_sine_up_to,
)
from anharmonic_papers.theory.oscillator_networks import before, chain, solve, wave, windowed_sine

F64 = torch.float64
SMALL = 1e-4


def test_what_is_read_is_the_mean_of_the_past():
    """Not u(t-τ) but the bump's mean of u over [t-τ-e, t-τ], and that to five digits."""
    e, tau, t = 0.2, 0.5, 2.0
    inverse = inverse_sine_up_to(2.0, e)
    s = torch.linspace(0, 1, 4001, dtype=F64)[1:-1]
    bump = torch.exp(-1 / (s * (1 - s)))
    mean = bump / bump.sum() @ wave(t - tau - e * s)[:, 0]
    found = inverse.reads(tau) @ windowed_sine(wave, inverse.frequencies, t)
    torch.testing.assert_close(found, mean, rtol=0, atol=1e-5)


def late_wave(t):
    """Starts with slope 0, so that nothing but the lag is seen."""
    return wave(t) * t[:, None] ** 2


@pytest.mark.parametrize(
    "cutoff, lag, error",
    [(40, 0.1, 0.0125), (40, 1e-3, 0.595), (40, 1e-5, 0.636), (120, 1e-3, 0.005)],
)
def test_what_is_cut_off_comes_back_as_the_square_of_the_cut_off(cutoff, lag, error):
    """Beside the lag: bounded as Δ falls, and gone with a larger Λe."""
    e, end = 0.2, 1.5
    n = math.ceil(1.2 * end * cutoff / e / math.pi)
    network = function(identity(1, 1e-2), inverse_sine(e, cutoff / e, n), lag, SMALL)
    t, z = solve(network, late_wave, dt=e / cutoff, end=end)
    found = float((z - before(late_wave, lag + e / 2)(t)).abs().max())
    assert found == pytest.approx(error, rel=0.02)


@pytest.mark.parametrize("scale, low, high", [(1e-2, 0.5, 5.0), (1e-1, 3e-3, 5e-2)])
def test_rounding_is_amplified_by_both_second_differences(scale, low, high):
    """A square in float32: noise of 1/(s Δ)² roundings."""
    inverse = inverse_sine_up_to(1.5, 0.2)
    network = chain(delay(inverse, 0.0, SMALL), function(square(scale), inverse, 0.1, SMALL))
    layers = tuple(type(layer)(*(w.float() for w in layer)) for layer in network.layers)
    single = type(network)(layers, network.A.float(), network.c.float())
    _, exact = solve(network, late_wave, dt=0.005, end=1.5)
    _, rounded = solve(single, late_wave, dt=0.005, end=1.5)
    assert low < float((rounded - exact).abs().max()) < high


def test_operators_are_causal():
    """Two inputs that agree before t = 1 give the same until then, to the last bit."""
    inverse = inverse_sine_up_to(1.5, 0.3)
    network = chain(delay(inverse, 0.0, SMALL), function(square(1e-2), inverse, 0.1, SMALL))
    _, whole = solve(network, wave, dt=0.005, end=1.5)
    _, held = solve(network, lambda t: wave(t.clamp(max=1.0)), dt=0.005, end=1.5)
    assert torch.equal(whole[:200], held[:200])
    assert float((whole[-1] - held[-1]).abs()) > 0.1


def test_sizes_are_checked():
    with pytest.raises(ValueError, match="smoothing must be"):
        inverse_sine(0.0, 10, 10)
    with pytest.raises(ValueError, match="neurons must be"):
        inverse_sine(0.1, 10, 0)
    with pytest.raises(ValueError, match="smoothing must be"):
        inverse_sine_up_to(1.0, 0.5)
