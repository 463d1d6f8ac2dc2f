"""Statements of oscillators, beyond their examples."""

import pytest
import torch

from anharmonic_papers.theory import oscillators
from anharmonic_papers.theory.networks import identity
from anharmonic_papers.theory.operators import delay, function
from anharmonic_papers.theory.oscillator_networks import before, chain, wave

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
