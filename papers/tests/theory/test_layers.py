"""Derivatives by automatic differentiation against sums and differences."""

import pytest
import torch

from anharmonic import LEM, CoRNN, UnICORNN
from anharmonic_papers.theory.layers import (
    column_sum,
    last_gradient,
    partial_gradient,
    row_sum,
    total_gradient,
    trajectory,
    weights,
)

LAYERS = [
    CoRNN(2, 3, dtype=torch.float64),
    UnICORNN(2, 3, 2, dtype=torch.float64),
    LEM(2, 3, 2, dt=0.5, dtype=torch.float64),
]


def run(layer, steps=6, seed=0):
    torch.manual_seed(seed)
    layer.reset_parameters()
    return torch.randn(steps, 1, 2, dtype=torch.float64)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: type(layer).__name__)
def test_the_partial_gradients_of_a_step_add_up_to_its_gradient(layer):
    x = run(layer)
    target = torch.ones(1, 3, dtype=torch.float64)
    parts = [partial_gradient(layer, x, target, k) for k in range(1, len(x) + 1)]
    whole = last_gradient(layer, x, target)
    for name in whole:
        torch.testing.assert_close(sum(one[name] for one in parts), whole[name])


def test_the_total_gradient_is_that_of_the_mean_loss():
    layer = LAYERS[0]
    x = run(layer)
    targets = torch.randn(6, 1, 3, dtype=torch.float64)
    found = total_gradient(layer, x, targets)["bias_l0"]
    ends = [last_gradient(layer, x[:n], targets[n - 1])["bias_l0"] for n in range(1, 7)]
    torch.testing.assert_close(torch.stack(ends).mean(0), found)
    step, losses = 1e-6, []
    for sign in (1, -1):
        with torch.no_grad():
            layer.bias_l0[1] += sign * step
            losses.append(0.5 * (layer(x)[0] - targets).square().sum(-1).mean())
            layer.bias_l0[1] -= sign * step
    assert float(found[1]) == pytest.approx(float(losses[0] - losses[1]) / (2 * step), rel=1e-7)


def test_the_trajectory_of_a_stack_begins_at_its_start_and_ends_at_its_state():
    layer = LAYERS[1]
    x = run(layer)
    start = torch.randn(2, 2, 1, 3, dtype=torch.float64)
    path = trajectory(layer, x, tuple(start))
    _, last = layer(x, tuple(start))
    for states, first, end in zip(path, start, last, strict=True):
        assert torch.equal(states[0], first)
        torch.testing.assert_close(states[-1], end, rtol=1e-13, atol=0)


def test_weights_by_their_short_names_and_norms():
    layer = UnICORNN(2, 3, 2, bias=False, trainable_timescales=False, dtype=torch.float64)
    found = weights(layer, 1)
    assert torch.equal(found["weight_hh"], layer.weight_hh_l1)
    assert torch.equal(found["timescale"], layer.timescale_l1)
    assert torch.equal(found["bias"], torch.zeros(3, dtype=torch.float64))
    assert not any(value.requires_grad for value in found.values())
    matrix = torch.tensor([[1.0, -2.0], [0.0, 4.0]])
    assert row_sum(matrix) == 4 and column_sum(matrix) == 6
