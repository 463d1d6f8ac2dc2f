"""LEM: bounded states, initial values, warnings."""

import warnings

import pytest
import torch

import anharmonic as ah

F64 = torch.float64


def noise(*shape, seed=0):
    return torch.randn(*shape, dtype=F64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("options", [{"dt": 1.0}, {"dt": 0.4}, {"dt": 0.9, "multiscale": False}])
def test_states_stay_within_one(options):
    torch.manual_seed(0)
    layer = ah.LEM(2, 8, dtype=F64, **options)
    state = None
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(std=5.0)
        for x_t in noise(400, 3, 2):
            _, state = layer.step(x_t, state)
            assert state.y.abs().max() <= 1 and state.z.abs().max() <= 1


def test_clipped_gates_keep_large_steps_bounded():
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # clipped gates need no warning: they end at 1
        layer = ah.LEM(2, 8, dt=1.9, gate_floor=0.0, dtype=F64)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(std=5.0)
        output, state = layer(noise(400, 3, 2))
    assert output.abs().max() <= 1 and state.z.abs().max() <= 1


def test_chrono_initialisation():
    torch.manual_seed(0)
    H, longest, dt = 500, 200, 0.5
    layer = ah.LEM(2, H, num_layers=2, dt=dt, chrono_length=longest)
    for k in (0, 1):
        bias = layer.state_dict()[f"bias_l{k}"]
        assert not bias[H:].any()
        units = torch.exp(-bias[:H])
        assert units.min() >= 1 and units.max() <= longest * dt - 1
        assert units.max() > 0.95 * (longest * dt - 1) and units.min() < 2
        # The leak dt * sigmoid(b) has time constants from about 2/dt to chrono_length steps.
        slowest = 1 / (dt * torch.sigmoid(bias[:H])).min()
        assert 0.95 * longest < slowest <= longest * (1 + 1e-4)
