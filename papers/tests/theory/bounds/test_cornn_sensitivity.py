"""coRNN's sensitivity to its inputs on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import CoRNN
from anharmonic_papers.theory.bounds.cornn_sensitivity import (
    sensitivity_continuous,
    sensitivity_implicit,
    sensitivity_implicit_sharp,
    sensitivity_paper,
)
from anharmonic_papers.theory.statements import STATEMENTS


def network(seed, dt, scheme="implicit", epsilon=1.0, steps=200):
    torch.manual_seed(seed)
    layer = CoRNN(2, 5, dt=dt, scheme=scheme, damping=epsilon, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(5)
    x, other = 5 * torch.randn(2, steps, 4, 2, dtype=torch.float64)
    return layer, x, other


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dt", [0.01, 0.3, 1.0])
def test_two_inputs_part_as_the_bounds_allow(seed, dt):
    example = network(seed, dt)
    for function in (sensitivity_implicit, sensitivity_implicit_sharp):
        check = function(*example)
        assert check.applies and check.holds and check.ratio > 0.01


def test_the_counterexample_in_closed_form():
    # dt = 1: z = 1/2, y = 1/2, then z = 1/2, y = 1; the other run is its mirror image
    check = STATEMENTS["cornn-sensitivity-implicit-paper"].example()
    torch.testing.assert_close(check.measured, torch.tensor([2.0, 5.0], dtype=torch.float64))
    assert check.bound.tolist() == [2.0, 4.0]


def test_the_sharp_bound_contains_the_counterexample():
    layer = CoRNN(1, 1, dt=1.0, scheme="implicit", bias=False, dtype=torch.float64)
    with torch.no_grad():
        for name, weight in layer.named_parameters():
            weight.fill_(1.0 if name == "weight_ih_l0" else 0.0)
    x = torch.full((2, 1, 1), 20.0, dtype=torch.float64)
    assert not sensitivity_paper(layer, x, -x).holds
    assert sensitivity_implicit_sharp(layer, x, -x).holds


@pytest.mark.parametrize("dt", [0.05, 0.2])
def test_the_bound_of_the_paper_at_small_steps(dt):
    """The worst forces possible, by the support function of the reachable set, up to t = 20."""
    angles = torch.linspace(0, torch.pi, 721, dtype=torch.float64)
    look = torch.stack([angles.cos(), angles.sin()], dim=1)
    d = 1 / (1 + dt)
    step = torch.tensor([[1 - dt * dt * d, dt * d], [-dt * d, d]], dtype=torch.float64)
    push, reach = torch.tensor([dt * dt * d, dt * d], dtype=torch.float64), 0.0
    for n in range(1, int(20 / dt)):
        reach = reach + (look @ push).abs()
        push = step @ push
        assert 4 * float(reach.max()) ** 2 < 2 * n * dt


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_two_inputs_in_continuous_time(epsilon):
    check = sensitivity_continuous(*network(0, 0.1, "explicit", epsilon, steps=60))
    assert check.applies and check.holds and check.ratio > 0.01


def test_equal_inputs_do_not_part():
    layer, x, _ = network(0, 0.1)
    assert sensitivity_implicit(layer, x, x).ratio == 0.0
