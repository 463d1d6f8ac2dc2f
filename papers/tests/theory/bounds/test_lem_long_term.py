"""LEM's long-term gradients on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import LEM
from anharmonic_papers.theory.bounds.lem_long_term import (
    long_term,
    long_term_order,
    long_term_printed,
)


def network(seed, dt, steps=12, scale=2.0):
    torch.manual_seed(seed)
    layer = LEM(2, 4, dt=dt, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(scale)
    x = torch.randn(steps, 1, 2, dtype=torch.float64)
    return layer, x, torch.randn(1, 4, dtype=torch.float64), 3


@pytest.mark.parametrize("seed", range(3))
def test_minus_holds_and_plus_does_not(seed):
    example = network(seed, 1e-3)
    assert long_term(*example).applies and long_term(*example).holds
    assert long_term_printed(*example).applies and not long_term_printed(*example).holds


@pytest.mark.parametrize(("function", "order"), [(long_term, 2), (long_term_printed, 1)])
def test_the_order_of_the_relative_remainder(function, order):
    off = []
    for dt in (1e-3, 1e-4):
        check = function(*network(0, dt))
        off.append((check.measured / check.bound - 1).abs().max())
    assert float((off[0] / off[1]).log10()) == pytest.approx(order, abs=0.05)


def test_the_remainder_over_the_cube_of_the_step_tends_to_a_constant():
    left = []
    for dt in (1e-3, 1e-4):
        layer, x, target, step = network(0, dt)
        check = long_term(layer, x, target, step)
        z = layer(x[:step])[1].z.detach().abs().max()  # of the order of dt itself
        left.append(float((check.measured - check.bound).abs().max() / (dt**3 * z)))
    assert left[0] == pytest.approx(left[1], rel=0.05)


@pytest.mark.parametrize("seed", range(2))
def test_measured_orders(seed):
    torch.manual_seed(seed)
    layer = LEM(1, 4, dtype=torch.float64)
    fixed, moving = long_term_order(layer, fraction=0.0), long_term_order(layer, fraction=0.2)
    assert float(fixed.measured) == pytest.approx(2, abs=0.05)
    assert float(moving.measured) == pytest.approx(1, abs=0.1)
    assert not fixed.applies and not moving.applies


def test_bad_input():
    layer, x, target, _ = network(0, 1e-3)
    with pytest.raises(ValueError, match="step must be one of 1 to 12"):
        long_term(layer, x, target, 13)
    with pytest.raises(ValueError, match="fraction"):
        long_term_order(layer, fraction=1.0)
    with pytest.raises(ValueError, match="learned gates without a floor"):
        long_term(LEM(2, 4, gate_floor=0.1, dtype=torch.float64), x, target, 3)
