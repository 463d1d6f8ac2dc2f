"""What oscillators conserve, beyond the examples."""

import pytest
import torch

from anharmonic_papers.theory.constructions.hamiltonian_statements import (
    conserved,
    energy,
    random_oscillators,
    undone,
)
from anharmonic_papers.theory.constructions.oscillators import states

F64 = torch.float64


@pytest.mark.parametrize("seed", range(2))
def test_energy_of_random_layers_under_a_constant_input(seed):
    torch.manual_seed(seed)
    network, held = random_oscillators(3, 6), torch.randn(3, dtype=F64)
    check = conserved(network, held, 5.0)
    assert check.applies and check.holds


def test_the_energy_moves_with_the_input_and_the_state_with_the_energy():
    torch.manual_seed(0)
    network = random_oscillators(1, 4)
    times = torch.arange(201, dtype=F64) * 0.01
    walk = list(states(network, lambda t: 3 * t[:, None], times, dt=0.01))
    found = [
        energy(network.layers[0], y[0], v[0], 3 * t[None])
        for (y, v), t in zip(walk, times, strict=True)
    ]
    assert float((found[-1] - found[0]).abs()) > 0.1


def test_the_force_is_minus_the_slope_of_the_energy():
    torch.manual_seed(0)
    layer = random_oscillators(2, 5).layers[0]
    y, below = torch.randn(5, dtype=F64, requires_grad=True), torch.randn(2, dtype=F64)
    H = energy(layer, y, torch.zeros(5, dtype=F64), below)
    (slope,) = torch.autograd.grad(H, y)
    force = torch.tanh(layer.w * y + below @ layer.V.T + layer.b)
    torch.testing.assert_close(-slope, force)


def test_a_deep_network_is_undone():
    torch.manual_seed(1)
    check = undone(random_oscillators(2, 3, 5, 4), lambda t: torch.stack([t, -t], -1), 0.05, 200)
    assert check.holds and len(check.measured) == 3
