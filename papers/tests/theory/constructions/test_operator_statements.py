"""The assembled theorem: errors against width."""

import pytest
import torch

from anharmonic_papers.theory.constructions.networks import identity
from anharmonic_papers.theory.constructions.operator_statements import (
    aligned_delay,
    errors_by_width,
    universal_delay,
    universal_square,
)
from anharmonic_papers.theory.constructions.operators import delay, function
from anharmonic_papers.theory.constructions.oscillators import chain
from anharmonic_papers.theory.constructions.signals import before, wave

SMALL = 1e-4


def test_the_error_falls_like_one_over_the_width():
    def build(inverse, lag):
        return chain(delay(inverse, 0.5, SMALL), function(identity(1, 1e-2), inverse, lag, SMALL))

    neurons, errors = errors_by_width(build, before(wave, 0.5), wave, 1.5, (0.15, 0.075))
    assert neurons.tolist() == [462, 920]
    order = float((errors[1] / errors[0]).log() / (neurons[1] / neurons[0]).log())
    assert order == pytest.approx(-1, abs=0.15)


def test_an_input_that_does_not_start_at_zero_is_outside():
    check = universal_delay(lambda t: torch.cos(t)[:, None], 0.5, 1.5, (0.3,))
    assert not check.applies and not check.holds


def test_the_square_is_a_square():
    """Its error is well below what the network without the square would make."""
    check = universal_square(lambda t: 2 * wave(t) / 3, 1.5, (0.2,))
    assert check.holds and 0.5 < check.ratio < 1


@pytest.mark.slow
def test_read_earlier_the_delay_is_second_order_down_to_a_thousandth():
    check = aligned_delay(lambda t: wave(t) * t[:, None] ** 2, 0.7, 1.5, (0.2, 0.1, 0.05))
    assert check.measured[1] > 1.3
