"""LEM's states and its kinship with the LSTM on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import LEM
from anharmonic.nn.stability import StabilityWarning
from anharmonic_papers.theory.bounds.lem_states import envelope, pointwise


def network(seed, dt, scale=3.0, steps=100):
    torch.manual_seed(seed)
    layer = LEM(2, 5, dt=dt, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(scale)
    return layer, 3 * torch.randn(steps, 4, 2, dtype=torch.float64)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dt", [0.01, 0.3, 1.0])
def test_the_pointwise_bound_on_random_networks(seed, dt):
    check = pointwise(*network(seed, dt))
    assert check.applies and check.holds and check.ratio > 0.1


def test_the_bound_is_met_at_saturation():
    # gates and updates open: z_n = 1 - (1 - dt)^n, which comes to 1
    layer, x = network(0, 0.5)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
        layer.bias_l0.fill_(40.0)  # open gates
    check = pointwise(layer, x)
    assert check.holds and check.ratio == pytest.approx(1.0)
    assert float(check.measured[1]) == pytest.approx(0.75)


def test_envelope_by_hand():
    found = envelope(200, 0.02)
    assert float(found[0]) == pytest.approx(1.02 / 1.98**0.5 * 0.02**0.5)
    assert float(found[-1]) == 1.0


def test_large_steps_are_outside_and_leave_the_bound():
    with pytest.warns(StabilityWarning):
        layer, x = network(0, 1.9)
    check = pointwise(layer, x)
    assert not check.applies and not check.holds


def test_other_gates_and_stacks_are_refused():
    x = torch.zeros(3, 1, 2, dtype=torch.float64)
    for words in ({"multiscale": False}, {"gate_floor": 0.5}):
        with pytest.raises(ValueError, match="learned gates without a floor"):
            pointwise(LEM(2, 3, dtype=torch.float64, **words), x)
    with pytest.raises(ValueError, match="one layer in one direction"):
        pointwise(LEM(2, 3, 2, dtype=torch.float64), x)
