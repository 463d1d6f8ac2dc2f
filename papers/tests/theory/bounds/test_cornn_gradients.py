"""The size of coRNN's gradients on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import CoRNN
from anharmonic_papers.theory.bounds.cornn_gradients import (
    gradient,
    gradient_explicit,
    gradient_explicit_printed,
    gradient_printed,
    unstable_neuron,
)
from anharmonic_papers.theory.statements import STATEMENTS


def network(seed, dt=0.02, scheme="implicit", gamma=1.0, epsilon=1.0, steps=50, scale=1.0):
    torch.manual_seed(seed)
    layer = CoRNN(2, 4, dt=dt, frequency=gamma, damping=epsilon, scheme=scheme, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(scale)
    x = 2 * torch.rand(steps, 1, 2, dtype=torch.float64) - 1
    return layer, x, 3 * torch.randn(steps, 1, 4, dtype=torch.float64)


def test_the_counterexample_has_the_size_that_is_told():
    check = STATEMENTS["cornn-gradient-printed"].example()
    assert round(float(check.measured), 1) == 69.6
    assert float(check.bound) == pytest.approx(16.5)


def test_the_same_neuron_at_r_one_is_harmless():
    layer, x = unstable_neuron("implicit")
    with torch.no_grad():
        layer.weight_hy_l0.fill_(layer.dt)
    check = gradient_printed(layer, x, torch.full_like(x, 10.0), r=1.0)
    assert check.applies and check.holds and round(float(check.measured), 2) == 1.26


def test_the_safe_bounds_contain_the_counterexamples():
    layer, x = unstable_neuron("implicit")
    assert gradient(layer, x, torch.full_like(x, 10.0)).holds
    layer, x = unstable_neuron("explicit")
    assert gradient_explicit(layer, x, torch.full_like(x, 10.0)).holds


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_the_safe_bound_on_random_networks(seed, scale):
    check = gradient(*network(seed, scale=scale))
    assert check.applies and check.holds
    assert scale > 0.1 or check.ratio > 1e-3


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("gamma", "epsilon"), [(1.0, 1.0), (0.2, 6.4), (94.5, 9.5)])
def test_the_safe_bound_of_the_explicit_scheme(seed, gamma, epsilon):
    check = gradient_explicit(*network(seed, 0.01, "explicit", gamma, epsilon, steps=100))
    assert check.applies and check.holds and check.ratio > 0


@pytest.mark.parametrize("seed", range(3))
def test_the_printed_bounds_hold_where_their_proofs_do(seed):
    layer, x, targets = network(seed, 0.02)
    with torch.no_grad():
        layer.weight_hy_l0.mul_(0.02 / layer.weight_hy_l0.abs().sum(1).max())
        layer.weight_hz_l0.mul_(1 / layer.weight_hz_l0.abs().sum(1).max())
    check = gradient_printed(layer, x, targets, r=1.0)
    assert check.applies and check.holds


def test_what_does_not_apply_is_said():
    layer, x, targets = network(0)
    assert not gradient(layer, 2 * x, targets).applies
    assert gradient(layer, torch.cat([x, x]), torch.cat([targets, targets])).applies  # any t_N
    assert not gradient(network(0, scheme="explicit")[0], x, targets).applies
    assert not gradient_printed(layer, x, targets, r=0.4).applies
    assert not gradient_explicit_printed(layer, x, targets, r=0.5).applies  # implicit


def test_stacks_are_refused():
    layer = CoRNN(2, 3, num_layers=2, dtype=torch.float64)
    x, targets = torch.zeros(4, 1, 2).double(), torch.zeros(4, 1, 3).double()
    for check in (gradient, gradient_explicit):
        with pytest.raises(ValueError, match="one layer in one direction"):
            check(layer, x, targets)


@pytest.mark.parametrize(
    ("steps", "dt", "gamma", "epsilon", "told"),
    [(784, 0.042, 2.7, 4.7, 1e9), (1000, 0.034, 1.3, 12.7, 600)],
)
def test_gradients_of_tuned_settings_stay_far_below_the_bound(steps, dt, gamma, epsilon, told):
    check = gradient_explicit(*network(0, dt, "explicit", gamma, epsilon, steps=steps))
    assert check.applies and check.holds
    assert float(check.measured) < 1
    assert float(check.bound) == pytest.approx(told, rel=0.2)
