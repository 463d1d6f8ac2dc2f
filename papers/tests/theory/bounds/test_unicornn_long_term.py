"""UnICORNN's long-term gradients, beyond the examples."""

import pytest
import torch

from anharmonic import UnICORNN
from anharmonic_papers.theory.bounds.unicornn_long_term import long_term, long_term_printed


def network(seed, dt=0.05, alpha=1.0, steps=60):
    torch.manual_seed(seed)
    layer = UnICORNN(2, 4, dt=dt, frequency=alpha, dtype=torch.float64)
    state = tuple(torch.randn(2, 1, 1, 4, dtype=torch.float64))
    x = torch.randn(steps, 1, 2, dtype=torch.float64)
    return layer, x, torch.randn(1, 4, dtype=torch.float64), 3, state


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("alpha", [0.0, 1.0, 10.0])
def test_the_exact_formula_at_any_time_and_with_inputs(seed, alpha):
    layer, x, target, _, state = network(seed, 0.4, alpha)
    for step in (1, 3, 60):
        assert long_term(layer, x, target, step, state).holds


def test_exact_over_printed_as_told():
    """Told are 0.98, 0.98, 0.88, 0.22 at α = 2; w and k are not: w = 0.9, k = 2 come near."""
    layer = UnICORNN(1, 1, dt=1e-3, frequency=2.0, dtype=torch.float64)
    values = {"weight_ih": 0.0, "weight_hh": 0.9, "bias": 0.0, "timescale": 0.0}
    with torch.no_grad():
        for name, value in values.items():
            layer.get_parameter(f"{name}_l0").fill_(value)
    y = torch.full((1, 1, 1), 0.05, dtype=torch.float64)
    target, ratios = torch.ones(1, 1, dtype=torch.float64), []
    for steps in (50, 200, 1000, 3000):
        x = torch.zeros(steps, 1, 1, dtype=torch.float64)
        ratios.append(long_term_printed(layer, x, target, 2, (y, 0 * y)).ratio)
    assert [round(ratio, 2) for ratio in ratios] == [0.98, 0.99, 0.88, 0.22]


def test_the_printed_formula_for_short_times():
    layer, x, target, _, state = network(0, 1e-3)
    check = long_term_printed(layer, x, target, 1, (state[0], 0 * state[1]))
    assert check.applies and check.holds


def test_bad_input():
    layer, x, target, _, state = network(0)
    with pytest.raises(ValueError, match="step must be one of 1 to 60"):
        long_term(layer, x, target, 0, state)
    stack = UnICORNN(2, 4, 2, dtype=torch.float64)
    for check in (long_term, long_term_printed):
        with pytest.raises(ValueError, match="one layer in one direction"):
            check(stack, x, target, 3)
