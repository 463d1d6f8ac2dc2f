"""What is measured on inputs, against closed forms."""

import pytest
import torch

from anharmonic_papers.theory.signals import before, extended, steepest, wave, windowed_sine

F64 = torch.float64


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
