"""Inputs that do not start at zero, steps, and functions, beyond the examples."""

import pytest
import torch

from anharmonic_papers.theory.constructions.operators import delay, inverse_sine_up_to
from anharmonic_papers.theory.constructions.oscillators import solve
from anharmonic_papers.theory.constructions.remark_statements import (
    _plane_function,
    _points,
    discretised,
    extension,
    function_error_at,
)
from anharmonic_papers.theory.constructions.signals import wave


def cosine(t):
    return torch.cos(3 * t)[:, None]


def test_without_its_extension_the_start_is_lost():
    network = delay(inverse_sine_up_to(1.5, 0.2), 0.0, 1e-4)
    t, z = solve(network, cosine, dt=0.2 / 60, end=1.5)
    assert float((z - cosine(t)).abs().max()) == pytest.approx(1.0, abs=0.01)
    assert float(extension(cosine, 0.5, 1.5, (0.2,)).measured) < 0.31


def test_a_short_extension_is_a_steep_one():
    check = extension(cosine, 0.1, 1.0, (0.1,))
    assert check.holds and float(check.bound) == pytest.approx(0.5)


def test_steps_that_do_not_resolve_the_largest_frequency_diverge():
    network = delay(inverse_sine_up_to(1.0, 0.2), 0.0, 1e-4)
    assert discretised(network, wave, 1.0, (2e-3, 1e-3)).holds
    assert not discretised(network, wave, 1.0, (1e-2, 5e-3)).holds


def test_functions_to_a_hundredth():
    assert float(function_error_at(_plane_function(), _points(), 0.3)) < 1e-2
