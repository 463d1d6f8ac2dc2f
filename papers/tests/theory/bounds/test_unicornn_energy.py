"""The size of UnICORNN's states on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import UnICORNN
from anharmonic_papers.theory.bounds.unicornn_energy import (
    resonance,
    sensitivity,
    states,
    states_free,
    states_printed,
)

# Largest dt and α of the tuned models (thesis, chapter 3).
TUNED = {
    "psMNIST-128": (0.482, 12.53),
    "psMNIST-256": (0.19, 30.65),
    "noise-padded CIFAR-10": (0.126, 13.0),
    "respiratory rate": (0.011, 9.0),
}


def network(seed, dt, alpha, layers=3, steps=200):
    torch.manual_seed(seed)
    layer = UnICORNN(2, 4, layers, dt=dt, frequency=alpha, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(3)
    return layer, 3 * torch.randn(steps, 2, 2, dtype=torch.float64)


def test_resonance_passes_the_printed_bound_as_told():
    layer, x = resonance(20_000)
    t = 0.01 * torch.arange(1, 20_001, dtype=torch.float64)
    so_far = (layer(x)[0].detach().abs()[:, 0, 0] / (2 * (1 + 8 * t)).sqrt()).cummax(0).values
    ratios = [float(so_far[100 * t - 1]) for t in (20, 60, 200)]
    assert [round(ratio, 2) for ratio in ratios] == [0.69, 1.23, 2.24]


def test_the_printed_bound_holds_for_short_times():
    layer, x = resonance(2000)
    check = states_printed(layer, x)
    assert check.applies and check.holds and check.ratio == pytest.approx(0.69, abs=0.01)


def test_the_safe_bound_contains_the_resonance():
    check = states(*resonance(2000))
    assert check.applies and check.holds and check.ratio > 0.3


def test_one_saturated_step_meets_the_safe_bound():
    # n = 1: z = h, y = h², so (α h⁴ + h²)(1 - h sqrt(α)/2)/h² = (1 + α h²)(1 - h sqrt(α)/2)
    check = states(*resonance(2))
    expected = (1 + 1e-4) * (1 - 0.005)
    # the wave starts with sign(0) = 0, so that the second step is the first push
    assert float(check.measured[1]) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("task", TUNED)
def test_the_safe_bound_at_tuned_settings(task):
    check = states(*network(0, *TUNED[task]))
    assert check.applies and check.holds and check.ratio > 0.001


@pytest.mark.parametrize("seed", range(3))
def test_without_restoring_force(seed):
    check = states_free(*network(seed, 0.0343, 0.0))
    assert check.applies and check.holds and check.ratio > 0.05
    assert not states_printed(*network(seed, 0.0343, 0.0, steps=5)).applies


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.0, 0.5, 10.0])
def test_two_inputs_part_linearly_at_most(seed, alpha):
    layer, x = network(seed, 0.4, alpha)
    check = sensitivity(layer, x, x.flip(0))
    assert check.applies and check.holds and check.ratio > 1e-4
    assert sensitivity(layer, x, x).ratio == 0


def test_an_unstable_step_is_outside():
    layer, x = network(0, 1.0, 1.0, steps=3)
    with torch.no_grad():
        layer.timescale_l1.fill_(20.0)
    layer.frequency = 9.0
    assert not states(layer, x).applies
