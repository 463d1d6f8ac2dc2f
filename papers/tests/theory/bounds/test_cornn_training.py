"""How long gradient descent keeps coRNN's weights small, beyond the examples."""

import pytest
import torch

from anharmonic import CoRNN
from anharmonic_papers.theory.bounds.cornn_training import training, training_printed
from anharmonic_papers.theory.statements import STATEMENTS


def network(seed, dt=0.01):
    torch.manual_seed(seed)
    layer = CoRNN(2, 3, dt=dt, scheme="implicit", dtype=torch.float64)
    steps = round(1 / dt)
    x = 2 * torch.rand(steps, 1, 2, dtype=torch.float64) - 1
    return layer, x, 2 * torch.randn(steps, 1, 3, dtype=torch.float64)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("r", [0.5, 0.8])
def test_the_safe_number_of_steps(seed, r):
    check = training(*network(seed), rate=1e-3, r=r)
    assert check.applies and check.holds
    assert len(check.measured) >= 3


def test_the_safe_number_of_steps_at_r_one():
    check = training(*network(0), rate=1e-6, r=1.0)
    assert check.applies and check.holds


@pytest.mark.parametrize("seed", range(2))
def test_the_printed_number_of_steps_at_r_one_half(seed):
    check = training_printed(*network(seed), rate=3e-2, r=0.5)
    assert check.applies and check.holds


def test_the_counterexample_leaves_at_the_last_promised_steps():
    check = STATEMENTS["cornn-training-printed"].example()
    assert len(check.measured) == 4
    assert check.measured[0] <= check.bound[0] and check.measured[-1] > check.bound[-1]


def test_the_layer_is_left_alone():
    layer, x, targets = network(0)
    before = {n: p.clone() for n, p in layer.named_parameters()}
    training(layer, x, targets, rate=1e-2, r=0.5)
    assert all(torch.equal(before[n], p) for n, p in layer.named_parameters())


def test_a_rate_too_large_for_one_step_is_outside():
    assert not training(*network(0), rate=10.0, r=0.5).applies
