"""Statements of lem, beyond their examples."""

import pytest
import torch

from anharmonic_papers.theory import lem


def network(scale=1.0, dt=0.005, steps=20, size=5):
    """The layer and inputs of the examples, and a target."""
    return *lem.scaled(size, dt, scale, steps), torch.full((1, size), -3.0, dtype=torch.float64)


@pytest.mark.parametrize("s", [0.5, 4 / 7, 1.0])
def test_growth_with_the_length(s):
    layer, _, _ = network()
    check = lem.lem_step_size(layer, s=s)
    assert float(check.bound) == pytest.approx(2 * (1 - s))
    assert float(check.measured) < float(check.bound) + 0.05
    if s == 1.0:
        assert abs(float(check.measured)) < 0.05  # bounded


def test_eta_is_the_largest_of_four_norms():
    layer, _, _ = network(3.0, 1.0, size=4)
    with torch.no_grad():
        layer.weight_hh_l0.zero_()
        layer.weight_zh_l0.zero_()
        layer.weight_hh_l0[4:8, 0] = 1.0  # a column of ones in W_2
    assert lem.eta(layer) == 1.0 and lem.eta(layer, columns=True) == 4.0


@pytest.mark.parametrize(
    ("function", "order"), [(lem.lem_long_term, 2), (lem.lem_long_term_printed, 1)]
)
def test_the_order_of_the_relative_remainder(function, order):
    off = []
    for dt in (1e-3, 1e-4):
        check = function(*network(2.0, dt, 12), 3)
        off.append((check.measured / check.bound - 1).abs().max())
    assert float((off[0] / off[1]).log10()) == pytest.approx(order, abs=0.05)


def test_the_bound_is_met_at_saturation():
    # gates and updates open: z_n = 1 - (1 - dt)^n, which comes to 1
    layer, x, _ = network(dt=0.5)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.bias_l0.fill_(40.0)  # open gates
    check = lem.lem_states(layer, x)
    assert check.holds and check.ratio == pytest.approx(1.0)
    assert float(check.measured[1]) == pytest.approx(0.75)


def test_envelope_by_hand():
    found = lem.envelope(200, 0.02)
    assert float(found[0]) == pytest.approx(1.02 / 1.98**0.5 * 0.02**0.5)
    assert float(found[-1]) == 1.0


F64 = torch.float64


@pytest.mark.parametrize(
    "case", [*map(lem.two_scales, (0.5, 0.05, 0.005)), lem.three_scales()], ids=len
)
def test_scales_to_the_error_of_the_notes(case):
    """1.6e-9 there, at s = 1e-4 and τ = 0.05 over 200 steps; the order of it for any τ."""
    assert 2e-10 < float(lem.scales_error(*case[:3], scale=1e-4)) < 1e-8
