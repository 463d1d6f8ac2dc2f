"""coRNN's partial gradients on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import CoRNN
from anharmonic_papers.theory.bounds.cornn_gradients import SOURCES, unstable_neuron
from anharmonic_papers.theory.bounds.cornn_partial import (
    partial,
    partial_any_printed,
    partial_printed,
)


def network(seed, scale=1.0, steps=40):
    torch.manual_seed(seed)
    layer = CoRNN(2, 4, dt=0.02, scheme="implicit", dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(scale)
    x = 2 * torch.rand(steps, 1, 2, dtype=torch.float64) - 1
    return layer, x, 3 * torch.randn(1, 4, dtype=torch.float64)


@pytest.mark.parametrize("parameter", SOURCES)
@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_the_safe_bound_at_every_step(parameter, scale):
    check = partial(*network(0, scale), steps=range(1, 41), parameter=parameter)
    assert check.applies and check.holds
    assert check.ratio > (0.05 if scale < 1 else 1e-4)


def test_the_safe_bound_contains_the_counterexample():
    layer, x = unstable_neuron("implicit")
    target = torch.full((1, 1), 10.0, dtype=torch.float64)
    check = partial(layer, x, target, steps=[1, 5000], parameter="bias")
    assert check.applies and check.holds


@pytest.mark.parametrize("parameter", SOURCES)
def test_the_printed_bounds_where_their_proof_holds(parameter):
    layer, x, target = network(0, 0.02)
    for check in (partial_printed, partial_any_printed):
        found = check(layer, x, target, r=0.9, steps=[2, 20, 39], parameter=parameter)
        assert found.applies and found.holds


def test_unknown_parameters_and_stacks_are_refused():
    layer, x, target = network(0)
    with pytest.raises(ValueError, match="parameter must be one of 'weight_hy'"):
        partial(layer, x, target, steps=[1], parameter="weight_hh")
    with pytest.raises(ValueError, match="step must be one of 1 to 40"):
        partial(layer, x, target, steps=[41])
    stack = CoRNN(2, 4, num_layers=2, dtype=torch.float64)
    with pytest.raises(ValueError, match="one layer in one direction"):
        partial(stack, x, target, steps=[1])
