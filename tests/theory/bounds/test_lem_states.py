"""LEM's states and its kinship with the LSTM on random networks, beyond the examples."""

import pytest
import torch

from anharmonic import LEM
from anharmonic.models.stability import StabilityWarning
from anharmonic.theory.bounds.lem_states import OPEN, envelope, equals_lstm, lstm, pointwise


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
        layer.bias_l0.fill_(OPEN)
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


def like_an_lstm(seed, steps=50):
    layer, x = network(seed, 1.0, steps=steps)
    with torch.no_grad():
        layer.weight_ih_l0[5:10], layer.weight_hh_l0[5:10], layer.bias_l0[5:10] = 0.0, 0.0, OPEN
        layer.weight_ih_l0[15:], layer.bias_l0[15:] = 0.0, 0.0
        layer.weight_zh_l0.copy_(torch.eye(5))
    return layer, x


@pytest.mark.parametrize("seed", range(3))
def test_lem_is_an_lstm_to_rounding(seed):
    check = equals_lstm(*like_an_lstm(seed))
    assert check.applies
    assert float((check.measured - check.bound).abs().max()) < 5e-15  # 8e-16 is told


@pytest.mark.parametrize("name", ["weight_zh_l0", "bias_l0", "weight_ih_l0", "weight_hh_l0"])
def test_each_condition_is_needed(name):
    layer, x = like_an_lstm(0)
    with torch.no_grad():
        rows = {"bias_l0": slice(15, 20), "weight_ih_l0": slice(15, 20)}.get(name, slice(5, 10))
        layer.get_parameter(name)[rows if name != "weight_zh_l0" else slice(0, 5)] += 0.1
    check = equals_lstm(layer, x)
    assert not check.applies
    if name != "weight_hh_l0":  # there the gate stays open behind its bias
        assert not check.holds


def test_the_lstm_has_the_tied_weights():
    layer, _ = network(0, 1.0)
    same = lstm(layer)
    assert torch.equal(same.weight_hh_l0[5:10], -same.weight_hh_l0[:5])
    assert torch.equal(same.weight_hh_l0[:5], layer.weight_hh_l0[:5])
    assert torch.equal(same.weight_ih_l0[10:15], layer.weight_ih_l0[10:15])


def test_other_gates_and_stacks_are_refused():
    x = torch.zeros(3, 1, 2, dtype=torch.float64)
    for words in ({"multiscale": False}, {"gate_floor": 0.5}):
        with pytest.raises(ValueError, match="learned gates without a floor"):
            pointwise(LEM(2, 3, dtype=torch.float64, **words), x)
    with pytest.raises(ValueError, match="one layer in one direction"):
        equals_lstm(LEM(2, 3, 2, dtype=torch.float64), x)
