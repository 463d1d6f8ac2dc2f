"""Panels of measured curves against their bounds."""

import pytest
import torch

from anharmonic_papers.report.theory_pictures import has_curve, panels
from anharmonic_papers.theory import all_statements
from anharmonic_papers.theory.statements import Check


def curve(measured, bound, **settings):
    return Check(torch.as_tensor(measured), torch.as_tensor(bound), **settings)


def axis_of(check):
    (axis,) = panels([check]).axes
    return axis


def test_only_curves_are_drawn():
    five = torch.arange(5.0)
    assert has_curve(curve(five, 1.0)) and not has_curve(curve(five[:3], 1.0))
    assert has_curve(curve(five[:3], 1.0, places=five[:3], axis="width m"))
    assert has_curve(curve(torch.stack([five, five]), 1.0, axis="time t"))
    assert not has_curve(curve(five[:2], 1.0, places=five[:2]))
    assert not has_curve(curve(five, 1.0, axis="node i"))
    for matrices in (torch.tensor(1.0), torch.ones(4, 4), torch.ones(100, 8, 8)):
        assert not has_curve(curve(matrices, 1.0))
    assert not has_curve(curve(five * 0, 1e-13))  # an identity up to rounding


def test_both_sides_are_drawn_and_axes_named():
    measured, bound = axis_of(curve(torch.arange(1.0, 11), torch.arange(2.0, 12))).get_lines()
    assert measured.get_ydata().tolist() == list(range(1, 11))
    assert bound.get_ydata().tolist() == list(range(2, 12))
    axis = axis_of(all_statements()["g2-no-gating"].example())
    assert axis.get_title() == "g2-no-gating\nT 8.2.3, corrected"
    assert axis.get_xlabel() == "time t" and axis.get_ylabel() == "S(t) = Σ X_i² (≤ bound)"


def test_axes_fit_the_curves():
    times = torch.cat([torch.zeros(1), torch.logspace(-2, 4, 25)])
    axis = axis_of(curve(1 / (1 + times), 1.0, places=times, axis="time t"))
    assert axis.get_xscale() == "log"
    assert len(axis.get_lines()[0].get_xdata()) == 25  # without time 0
    wavy = 5 + 1e-12 * torch.arange(20.0, dtype=torch.float64).sin()
    axis = axis_of(curve(wavy, 5.0, relation="=="))
    assert axis.get_ylim() == pytest.approx((0, 5.5))  # rounding errors are not blown up
    assert "(= formula)" in axis.get_ylabel()
    falling = torch.logspace(0, -12, 3000, dtype=torch.float64)
    axis = axis_of(curve(falling, falling + 1))
    assert len(axis.get_lines()[0].get_xdata()) == 100
    assert axis.get_yscale() == "log"
    layers = torch.arange(1, 11)
    axis = axis_of(curve(torch.arange(4.0, 14), 20.0, places=layers, axis="layer l"))
    assert all(tick == int(tick) for tick in axis.get_xticks())
