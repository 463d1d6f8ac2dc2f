"""Statements of cornn, beyond their examples."""

import pytest
import torch

from anharmonic import CoRNN
from anharmonic_papers.theory import cornn


def network(dt, scale=1.0, steps=50, **options):
    """A float64 layer of the implicit scheme with scaled weights, and inputs between -1 and 1."""
    torch.manual_seed(0)
    layer = CoRNN(2, 3, dt=dt, **{"scheme": "implicit"} | options, dtype=torch.float64)
    with torch.no_grad():
        for weight in layer.parameters():
            weight.mul_(scale)
    return layer, 2 * torch.rand(steps, 1, 2, dtype=torch.float64) - 1


def network_with_targets(dt, scale=1.0, steps=50, **options):
    layer, x = network(dt, scale, steps, **options)
    return layer, x, 3 * torch.randn(steps, 1, 3, dtype=torch.float64)


def network_long_term(dt, scheme="implicit"):
    """With a target at the end, the step to look at and a state to begin from."""
    layer, x = network(dt, steps=12, scheme=scheme)
    y, z = torch.randn(2, 1, 1, 3, dtype=torch.float64)
    return layer, x, torch.randn(1, 3, dtype=torch.float64), 3, (y, z)


def test_the_flow_is_the_limit_of_the_schemes():
    # first order: a tenth of the step, a tenth of the distance
    off = []
    for refine in (10, 100):
        layer, x = network(0.1 / refine, steps=10, frequency=2.0, scheme="explicit")
        coarse = CoRNN(2, 3, dt=0.1, frequency=2.0, dtype=torch.float64)
        coarse.load_state_dict(layer.state_dict())
        y, _ = cornn.flow(coarse, x, 8)
        end = layer(x.repeat_interleave(refine, 0))[0].detach()[-1]
        off.append((end - y[-1]).abs().max())
    assert 8 < float(off[0] / off[1]) < 12


@pytest.mark.parametrize(
    ("steps", "dt", "gamma", "epsilon", "told"),
    [(784, 0.042, 2.7, 4.7, 1e9), (1000, 0.034, 1.3, 12.7, 600)],
)
def test_gradients_of_tuned_settings_stay_far_below_the_bound(steps, dt, gamma, epsilon, told):
    check = cornn.cornn_gradient_explicit(
        *network_with_targets(dt, steps=steps, frequency=gamma, damping=epsilon, scheme="explicit")
    )
    assert check.applies and check.holds
    assert float(check.measured) < 1
    assert float(check.bound) == pytest.approx(told, rel=0.2)


def test_eta_by_hand():
    layer, _ = network(0.5)
    with torch.no_grad():
        layer.weight_hy_l0.copy_(torch.tensor([[1.0, -2.0, 0.0], [0, 0, 0], [0, 0, 0]]))
        layer.weight_hz_l0.fill_(1.5)
    assert cornn.eta(layer) == pytest.approx(0.5 * 4.5 / 1.5)  # 𝒲 outweighs 1 + ‖W‖∞ = 4


def test_the_remainder_of_the_product_formula_is_of_second_order():
    off = []
    for dt in (1e-2, 1e-3):
        check = cornn.cornn_product(*network(dt, 3.0, 5))
        off.append((check.measured - check.bound).abs().max() / check.bound.abs().max())
    assert 90 < float(off[0] / off[1]) < 120


@pytest.mark.parametrize("scheme", ["implicit", "explicit"])
def test_its_remainder_falls_with_the_square_of_the_step(scheme):
    # 7e-5 at dt = 1e-3 and 7e-7 at 1e-4 are told for a setting that is not; the factor is 100
    off = []
    for dt in (1e-3, 1e-4):
        check = cornn.cornn_long_term(*network_long_term(dt, scheme))
        off.append((check.measured / check.bound - 1).abs().max())
    assert off[0] < 1e-3
    assert 95 < float(off[0] / off[1]) < 105


def test_the_layer_is_left_alone():
    layer, x, targets = network_with_targets(0.01, steps=100)
    before = {n: p.clone() for n, p in layer.named_parameters()}
    cornn.cornn_training(layer, x, targets, rate=1e-2, r=0.5)
    assert all(torch.equal(before[n], p) for n, p in layer.named_parameters())


def test_the_variational_system_against_differences_of_solutions():
    layer, x = network(0.1, steps=30, frequency=2.0)
    q = cornn.variation(layer, x, 4)[-1]
    for i, j in ((0, 1), (2, 2)):
        ends = []
        for sign in (1e-5, -1e-5):
            with torch.no_grad():
                layer.weight_hy_l0[i, j] += sign
                ends.append(torch.stack(cornn.flow(layer, x, 4))[:, -1, 0])
                layer.weight_hy_l0[i, j] -= sign
        by_y, by_z = (ends[0] - ends[1]) / 2e-5
        expected = by_y.square().sum() + by_z.square().sum() / 2.0
        assert float(q[i, j]) == pytest.approx(float(expected), rel=1e-6)
