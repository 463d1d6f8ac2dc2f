"""Statements of oscillators, beyond their examples."""

import pytest
import torch

from anharmonic_papers.theory import oscillators
from anharmonic_papers.theory.networks import identity
from anharmonic_papers.theory.operators import delay, function, inverse_sine_up_to
from anharmonic_papers.theory.oscillator_networks import chain, solve
from anharmonic_papers.theory.signals import before, wave

F64 = torch.float64


SMALL = 1e-4


def test_the_error_falls_like_one_over_the_width():
    def build(inverse, lag):
        return chain(delay(inverse, 0.5, SMALL), function(identity(1, 1e-2), inverse, lag, SMALL))

    neurons, errors = oscillators.errors_by_width(
        build, before(wave, 0.5), wave, 1.5, (0.15, 0.075)
    )
    assert neurons.tolist() == [462, 920]
    order = float((errors[1] / errors[0]).log() / (neurons[1] / neurons[0]).log())
    assert order == pytest.approx(-1, abs=0.15)


@pytest.mark.slow
def test_read_earlier_the_delay_is_second_order_down_to_a_thousandth():
    check = oscillators.oscillators_universal_delay_aligned(
        lambda t: wave(t) * t[:, None] ** 2, 0.7, 1.5, (0.2, 0.1, 0.05)
    )
    assert check.measured[1] > 1.3


def cosine(t):
    return torch.cos(3 * t)[:, None]


def test_without_its_extension_the_start_is_lost():
    network = delay(inverse_sine_up_to(1.5, 0.2), 0.0, 1e-4)
    t, z = solve(network, cosine, dt=0.2 / 60, end=1.5)
    assert float((z - cosine(t)).abs().max()) == pytest.approx(1.0, abs=0.01)
    assert (
        float(oscillators.oscillators_input_not_from_zero(cosine, 0.5, 1.5, (0.2,)).measured) < 0.31
    )


def test_a_short_extension_is_a_steep_one():
    check = oscillators.oscillators_input_not_from_zero(cosine, 0.1, 1.0, (0.1,))
    assert check.holds and float(check.bound) == pytest.approx(0.5)


def test_functions_to_a_hundredth():
    assert float(oscillators.function_error_at(*oscillators.plane_function()[:2], 0.3)) < 1e-2


def test_the_readout_without_its_factor_is_right_at_one_only():
    def u(t):
        return torch.sin(t)[:, None]

    seven = torch.tensor([7.0], dtype=F64)
    printed, corrected = (
        float(oscillators.transform_error(u, seven, 2.0, (1e-2,), printed=p)) for p in (True, False)
    )
    exact = float(oscillators.oscillators_sine_transform_linear(u, seven, 2.0).bound) * 7
    assert printed == pytest.approx(abs(exact) * 6 / 7, rel=1e-3)
    assert corrected < 1e-4 * abs(exact)
