"""coRNN's long-term gradients, beyond the examples."""

import pytest
import torch

from anharmonic import CoRNN
from anharmonic_papers.theory.bounds.cornn_long_term import (
    long_term,
    long_term_order,
    long_term_order_explicit,
    long_term_printed,
)


def network(seed, dt, scheme="implicit", gamma=1.0, epsilon=1.0, steps=12):
    torch.manual_seed(seed)
    layer = CoRNN(2, 3, dt=dt, frequency=gamma, damping=epsilon, scheme=scheme, dtype=torch.float64)
    state = tuple(torch.randn(2, 1, 1, 3, dtype=torch.float64))
    x = torch.randn(steps, 1, 2, dtype=torch.float64)
    return layer, x, torch.randn(1, 3, dtype=torch.float64), 3, state


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scheme", ["implicit", "explicit"])
def test_the_corrected_formula_with_inputs_and_targets(seed, scheme):
    example = network(seed, 2e-3, scheme, gamma=2.0, epsilon=1.5)
    check = long_term(*example)
    assert check.applies and check.holds
    printed = long_term_printed(*example)
    assert not printed.holds and not printed.applies  # it is about no inputs and targets


@pytest.mark.parametrize("scheme", ["implicit", "explicit"])
def test_its_remainder_falls_with_the_square_of_the_step(scheme):
    # 7e-5 at dt = 1e-3 and 7e-7 at 1e-4 are told for a setting that is not; the factor is 100
    off = []
    for dt in (1e-3, 1e-4):
        check = long_term(*network(0, dt, scheme))
        off.append((check.measured / check.bound - 1).abs().max())
    assert off[0] < 1e-3
    assert 95 < float(off[0] / off[1]) < 105


def test_one_neuron_by_hand():
    # k = n: only the direct use counts, C* = 0
    layer = CoRNN(1, 1, dt=1e-3, scheme="implicit", bias=False, dtype=torch.float64)
    y, z = torch.tensor([[0.5], [0.2]], dtype=torch.float64)[:, None, None]
    x, target = torch.zeros(1, 1, 1).double(), torch.zeros(1, 1).double()
    check = long_term(layer, x, target, 1, (y, z))
    after = layer(x, (y, z))[0].item()
    slope = 1 - torch.tanh(layer.weight_hy_l0 * 0.5 + layer.weight_hz_l0 * 0.2).item() ** 2
    by_hand = 1e-6 / 1.001 * slope * 0.5 * after
    assert float(check.bound) == pytest.approx(by_hand, rel=1e-12)
    assert float(check.measured) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("scheme", "order"), [("implicit", long_term_order), ("explicit", long_term_order_explicit)]
)
def test_measured_orders(seed, scheme, order):
    torch.manual_seed(seed)
    layer = CoRNN(1, 3, scheme=scheme, dtype=torch.float64)
    fixed, moving = order(layer, fraction=0.0), order(layer, fraction=0.2)
    assert float(fixed.measured) == pytest.approx(3, abs=0.05)
    assert float(moving.measured) == pytest.approx(1, abs=0.1)
    assert not fixed.applies and not fixed.holds


def test_bad_input():
    layer, x, target, _, state = network(0, 1e-3)
    with pytest.raises(ValueError, match="step must be one of 1 to 12"):
        long_term(layer, x, target, 13, state)
    with pytest.raises(ValueError, match="fraction"):
        long_term_order(layer, fraction=1.0)
    with pytest.raises(ValueError, match="trainable_dt=True"):
        long_term_order(CoRNN(1, 3, trainable_dt=True, dtype=torch.float64), fraction=0.0)
    stack = CoRNN(2, 3, num_layers=2, dtype=torch.float64)
    for check in (long_term, long_term_printed):
        with pytest.raises(ValueError, match="one layer in one direction"):
            check(stack, x, target, 3)
