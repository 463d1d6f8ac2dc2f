"""coRNN's Jacobian on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import CoRNN
from anharmonic_papers.theory.bounds.cornn_jacobian import (
    eta,
    jacobian,
    jacobian_blocks,
    jacobian_norm,
    product,
    product_paper,
)


def network(seed, dt, scheme="implicit", gamma=1.0, epsilon=1.0, steps=20, scale=3.0):
    torch.manual_seed(seed)
    layer = CoRNN(2, 3, dt=dt, frequency=gamma, damping=epsilon, scheme=scheme, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(scale)
    return layer, torch.randn(steps, 1, 2, dtype=torch.float64)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scheme", ["implicit", "explicit"])
def test_the_jacobian_is_exact_for_both_schemes_and_any_scalars(seed, scheme):
    assert jacobian(*network(seed, 0.2, scheme, gamma=2.3, epsilon=0.7)).holds


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dt", [0.001, 0.1, 1.0])
def test_norms_of_the_blocks(seed, dt):
    check = jacobian_blocks(*network(seed, dt))
    assert check.applies and check.holds and check.ratio > 0.5


@pytest.mark.parametrize("r", [0.5, 0.75])
def test_norm_by_the_power_of_the_step(r):
    layer, x = network(0, 0.001, scale=2.0)
    check = jacobian_norm(layer, x, r=r)
    assert check.applies and check.holds
    assert not jacobian_norm(layer, x, r=1.0).applies  # these weights are too large for r = 1


def test_eta_by_hand():
    layer, _ = network(0, 0.5)
    with torch.no_grad():
        layer.weight_hy_l0.copy_(torch.tensor([[1.0, -2.0, 0.0], [0, 0, 0], [0, 0, 0]]))
        layer.weight_hz_l0.fill_(1.5)
    assert eta(layer) == pytest.approx(0.5 * 4.5 / 1.5)  # 𝒲 outweighs 1 + ‖W‖∞ = 4


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("steps", [2, 5, 20])
def test_product_formula_of_the_thesis_and_of_the_paper(seed, steps):
    example = network(seed, 1e-3, steps=steps, scale=1.0)
    assert product(*example).applies and product(*example).holds
    if steps == 2:
        assert not product_paper(*example).holds


def test_the_remainder_of_the_product_formula_is_of_second_order():
    off = []
    for dt in (1e-2, 1e-3):
        check = product(*network(0, dt, steps=5))
        off.append((check.measured - check.bound).abs().max() / check.bound.abs().max())
    assert 90 < float(off[0] / off[1]) < 120


def test_stacks_are_refused():
    layer = CoRNN(2, 3, num_layers=2, dtype=torch.float64)
    x = torch.zeros(4, 1, 2, dtype=torch.float64)
    for check in (jacobian, jacobian_blocks, product, lambda *a: jacobian_norm(*a, r=1.0)):
        with pytest.raises(ValueError, match="one layer in one direction"):
            check(layer, x)


def test_learned_scalars_are_those_in_use():
    layer, x = network(0, 0.2)
    learned = CoRNN(2, 3, dt=0.2, scheme="implicit", trainable_dt=True, dtype=torch.float64)
    with torch.no_grad():
        learned.raw_dt.fill_(-1.0)  # dt = σ̂(-1) = 0.269, not the 0.2 it was made with
    assert jacobian(learned, x).holds and jacobian(layer, x).holds
    with pytest.raises(ValueError, match="one sequence"):
        jacobian(layer, torch.cat([x, x], dim=1))
