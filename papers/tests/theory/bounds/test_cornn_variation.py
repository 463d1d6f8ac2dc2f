"""coRNN's gradients in continuous time, beyond the examples."""

import pytest
import torch

from anharmonic import CoRNN
from anharmonic_papers.theory.bounds.cornn_energy import flow
from anharmonic_papers.theory.bounds.cornn_variation import gradient_continuous, variation


def network(seed, gamma=1.0, epsilon=1.0, total=None, steps=30):
    torch.manual_seed(seed)
    layer = CoRNN(2, 3, dt=0.1, frequency=gamma, damping=epsilon, dtype=torch.float64)
    if total is not None:
        with torch.no_grad():
            for weight in (layer.weight_hy_l0, layer.weight_hz_l0):
                weight.mul_(total / 2 / weight.abs().sum(1).max())
    return layer, 2 * torch.randn(steps, 1, 2, dtype=torch.float64)


def test_the_variational_system_against_differences_of_solutions():
    layer, x = network(0, gamma=2.0)
    q = variation(layer, x, 4)[-1]
    for i, j in ((0, 1), (2, 2)):
        ends = []
        for sign in (1e-5, -1e-5):
            with torch.no_grad():
                layer.weight_hy_l0[i, j] += sign
                ends.append(torch.stack(flow(layer, x, 4))[:, -1, 0])
                layer.weight_hy_l0[i, j] -= sign
        by_y, by_z = (ends[0] - ends[1]) / 2e-5
        expected = by_y.square().sum() + by_z.square().sum() / 2.0
        assert float(q[i, j]) == pytest.approx(float(expected), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("gamma", "epsilon"), [(1.0, 0.5), (0.3, 2.0), (5.0, 1.0)])
def test_the_safe_bound_on_random_networks(seed, gamma, epsilon):
    check = gradient_continuous(*network(seed, gamma, epsilon, total=epsilon), substeps=2)
    assert check.applies and check.holds and check.ratio > 0


def test_large_weights_are_covered_and_little_damping_is_outside():
    check = gradient_continuous(*network(0, epsilon=0.5, total=6.0))
    assert check.applies and check.holds
    assert not gradient_continuous(*network(0, epsilon=0.4, steps=2)).applies


def test_stacks_are_refused():
    layer = CoRNN(2, 3, num_layers=2, dtype=torch.float64)
    with pytest.raises(ValueError, match="one layer in one direction"):
        gradient_continuous(layer, torch.zeros(4, 1, 2, dtype=torch.float64))
