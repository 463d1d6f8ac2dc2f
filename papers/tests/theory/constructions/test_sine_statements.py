"""The sine transform's statements beyond their examples."""

import pytest
import torch

from anharmonic_papers.theory.constructions.sine_statements import (
    _transform_error,
    sine_transform_linear,
    sine_transform_printed,
)

F64 = torch.float64


def test_the_linear_oscillator_on_another_input():
    omega = torch.tensor([2.0, 9.0], dtype=F64)
    assert sine_transform_linear(lambda t: torch.exp(-t)[:, None], omega, 2.0).holds


def test_the_readout_without_its_factor_is_right_at_one_only():
    def u(t):
        return torch.sin(t)[:, None]

    assert sine_transform_printed(u, torch.ones(1, dtype=F64), 2.0, (1e-3,)).holds
    seven = torch.tensor([7.0], dtype=F64)
    printed, corrected = (
        float(_transform_error(u, seven, 2.0, (1e-2,), printed=p)) for p in (True, False)
    )
    exact = float(sine_transform_linear(u, seven, 2.0).bound) * 7
    assert printed == pytest.approx(abs(exact) * 6 / 7, rel=1e-3)
    assert corrected < 1e-4 * abs(exact)
