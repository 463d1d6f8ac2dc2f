"""LEM's Jacobian on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import LEM
from anharmonic_papers.theory.bounds.lem_jacobian import eta, jacobian, jacobian_norms


def network(seed, dt, scale=3.0, steps=20):
    torch.manual_seed(seed)
    layer = LEM(2, 4, dt=dt, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(scale)
    return layer, 2 * torch.randn(steps, 1, 2, dtype=torch.float64)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dt", [0.01, 1.0])
def test_the_identity_to_rounding(seed, dt):
    check = jacobian(*network(seed, dt))
    assert check.holds
    assert float((check.measured - check.bound).abs().max()) < 1e-14


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dt", [0.01, 0.5, 1.0])
@pytest.mark.parametrize("columns", [False, True])
def test_norms_by_rows_and_columns(seed, dt, columns):
    check = jacobian_norms(*network(seed, dt), columns=columns)
    assert check.applies and check.holds and check.ratio > 0.01


def test_eta_is_the_largest_of_four_norms():
    layer, _ = network(0, 1.0)
    with torch.no_grad():
        layer.weight_hh_l0.zero_()
        layer.weight_zh_l0.zero_()
        layer.weight_hh_l0[4:8, 0] = 1.0  # a column of ones in W_2
    assert eta(layer) == 1.0 and eta(layer, columns=True) == 4.0


def test_other_gates_are_refused():
    layer = LEM(2, 3, multiscale=False, dtype=torch.float64)
    with pytest.raises(ValueError, match="learned gates without a floor"):
        jacobian(layer, torch.zeros(3, 1, 2, dtype=torch.float64))


def test_without_recurrent_weights():
    layer, x = network(0, 0.5, scale=0.0)
    assert jacobian_norms(layer, x).holds


def test_batches_are_refused():
    layer, x = network(0, 0.5)
    with pytest.raises(ValueError, match="one sequence"):
        jacobian(layer, torch.cat([x, x], dim=1))
