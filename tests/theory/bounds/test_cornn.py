"""coRNN's statements on random networks, beyond their examples."""

import pytest
import torch

from anharmonic import CoRNN
from anharmonic.theory.bounds.cornn import energy_explicit


@pytest.mark.parametrize("seed", range(5))
def test_explicit_energy_on_random_networks(seed):
    torch.manual_seed(seed)
    gamma, epsilon = float(10 ** torch.empty(()).uniform_(-1, 1)), 0.6 + 5 * float(torch.rand(()))
    dt = 0.99 * (2 * epsilon - 1) / (gamma + epsilon**2)
    layer = CoRNN(2, 5, dt=dt, frequency=gamma, damping=epsilon, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(5)
    check = energy_explicit(layer, 5 * torch.randn(300, 4, 2, dtype=torch.float64))
    assert check.applies and check.holds
    assert check.ratio > 0.01  # the bound is not met for want of motion


def test_stacks_are_refused():
    layer = CoRNN(2, 3, num_layers=2, dtype=torch.float64)
    with pytest.raises(ValueError, match="one layer in one direction"):
        energy_explicit(layer, torch.zeros(4, 1, 2, dtype=torch.float64))
