"""The size of LEM's gradients on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import LEM
from anharmonic_papers.theory.bounds.lem_gradients import (
    gradient,
    gradient_printed,
    gradient_wide,
    one_feeds_all,
    partial,
    partial_printed,
    step_size,
)
from anharmonic_papers.theory.bounds.lem_jacobian import eta
from anharmonic_papers.theory.gradients import last_gradient


def network(seed, scale=1.0, dt=0.005, steps=20):
    torch.manual_seed(seed)
    layer = LEM(2, 5, dt=dt, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(scale)
    x = 2 * torch.rand(steps, 1, 2, dtype=torch.float64) - 1
    return layer, x, 3 * torch.randn(1, 5, dtype=torch.float64)


@pytest.mark.parametrize(("m", "told"), [(100, 2.9), (1000, 28.6)])
def test_the_counterexample_has_the_sizes_that_are_told(m, told):
    layer, x, target = one_feeds_all(m)
    fed = last_gradient(layer, x, target)["bias_l0"][2 * m]  # b_z of the unit that feeds
    assert round(abs(float(fed)), 1) == told
    check = gradient_printed(layer, x, target)
    assert check.applies and round(float(check.bound), 1) == 5.6
    assert check.holds == (m == 100)


def test_the_safe_bounds_contain_it():
    layer, x, target = one_feeds_all(400)
    assert gradient_wide(layer, x, target).holds
    assert not gradient(layer, x, target).applies  # by columns η is 400: too large for t_n
    layer.dt = 1e-7
    check = gradient(layer, x, target)
    assert check.applies and check.holds


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [0.1, 0.7])
def test_the_safe_bounds_on_random_networks(seed, scale):
    example = network(seed, scale)
    for function in (gradient, gradient_wide):
        check = function(*example)
        assert check.applies and check.holds and check.ratio > 0.01


@pytest.mark.parametrize("seed", range(3))
def test_partial_gradients_of_recurrent_weights(seed):
    check = partial(*network(seed, 0.5, steps=15), steps=range(1, 16))
    assert check.applies and check.holds and check.ratio > 1e-3


def test_the_bias_misses_the_factor_of_the_state():
    layer, x, target = network(0, 0.1)
    assert not partial_printed(layer, x, target, steps=[1]).holds
    assert eta(layer) < 0.3  # whatever the norms


def test_long_times_are_outside():
    assert not gradient(*network(0, steps=300)).applies
    layer, x, target = network(0, 0.1)
    assert not gradient(layer, 2 * x, target).applies


@pytest.mark.parametrize("s", [0.5, 4 / 7, 1.0])
def test_growth_with_the_length(s):
    layer, _, _ = network(0)
    check = step_size(layer, s=s)
    assert float(check.bound) == pytest.approx(2 * (1 - s))
    assert float(check.measured) < float(check.bound) + 0.05
    if s == 1.0:
        assert abs(float(check.measured)) < 0.05  # bounded


def test_bad_input():
    layer, x, target = network(0)
    with pytest.raises(ValueError, match="step must be one of 1 to 20"):
        partial(layer, x, target, steps=[21])
    with pytest.raises(ValueError, match="s must be"):
        step_size(layer, s=1.5)
    with pytest.raises(ValueError, match="one layer in one direction"):
        gradient(LEM(2, 5, 2, dtype=torch.float64), x, target)
