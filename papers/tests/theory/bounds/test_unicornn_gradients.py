"""The size of UnICORNN's gradients on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import UnICORNN
from anharmonic_papers.theory.bounds.unicornn_gradients import (
    gradient,
    gradient_deep,
    gradient_printed,
)


def network(seed, layers=1, span=0.05, alpha=1.0, steps=50):
    torch.manual_seed(seed)
    layer = UnICORNN(2, 4, layers, dt=span / steps, frequency=alpha, dtype=torch.float64)
    x = 2 * torch.rand(steps, 1, 2, dtype=torch.float64) - 1
    return layer, x, 2 * torch.randn(steps, 1, 4, dtype=torch.float64)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.1, 1.0, 2.0])
def test_the_bound_of_one_layer(seed, alpha):
    for span in (0.05, 2.0):
        check = gradient(*network(seed, span=span, alpha=alpha))
        assert check.applies and check.holds and check.ratio > 0.02


@pytest.mark.parametrize("layers", [2, 4])
def test_no_violation_by_stacks(layers):
    check = gradient_deep(*network(0, layers))
    assert check.applies and check.holds and check.ratio > 0


def test_long_times_are_outside_for_stacks():
    assert not gradient_deep(*network(0, 2, span=5.0)).applies


def test_a_neuron_without_restoring_force():
    check = gradient(*network(0, span=1.0, alpha=0.0))
    assert check.applies and check.holds


def test_the_time_scale_is_covered():
    """One step: z = -h tanh(b), y = h z, and c moves both."""
    layer, x, targets = network(0, span=3.0, steps=3)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.bias_l0.fill_(20.0)
    # h = 1/2 from dt = 1 and c = 0; for c: b = h/2, a = h (b + Z/2) with Z = h/sqrt(1 - h/2)
    h = 0.5
    z = h / (1 - h / 2) ** 0.5
    by_time_scale, by_bias = h * (h / 2 + z / 2), h * h
    reach = z + float(targets[:1].abs().max())
    expected = reach * max(by_time_scale, by_bias)
    assert float(gradient(layer, x[:1], targets[:1]).bound) == pytest.approx(expected)


def test_the_bound_by_hand():
    layer, x, targets = network(0, span=0.05, alpha=1.0)
    with torch.no_grad():
        layer.weight_hh_l0.fill_(0.5)
        layer.weight_ih_l0.fill_(1.0)  # rows sum to 2
    # β = 4, g = 2, γ = 4, T = 0.05: F = sqrt(2.8), Δ = 2 + sqrt(2.8) + 3 sqrt(2.8)
    root = 2.8**0.5
    reach = float(targets.abs().max()) + root
    expected = 0.05 * 1.4 * 2 * reach * (2 + 4 * root)
    assert float(gradient_printed(layer, x, targets).bound) == pytest.approx(expected)


def test_stacks_are_refused():
    for check in (gradient, gradient_printed):
        with pytest.raises(ValueError, match="one layer in one direction"):
            check(*network(0, 2))
