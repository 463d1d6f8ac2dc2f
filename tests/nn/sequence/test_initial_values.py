"""Initial values of layers beside what their pins hold: chrono biases, scales, couplings."""

import math

import pytest
import torch

import anharmonic as ah


def test_chrono_initialisation_of_lem():
    torch.manual_seed(0)
    H, longest, dt = 500, 200, 0.5
    layer = ah.LEM(2, H, num_layers=2, dt=dt, chrono_length=longest)
    for k in (0, 1):
        bias = layer.state_dict()[f"bias_l{k}"]
        assert not bias[H:].any()
        units = torch.exp(-bias[:H])
        assert units.min() >= 1 and units.max() <= longest * dt - 1
        # The leak dt * sigmoid(b) has time constants from about 2/dt to chrono_length steps.
        assert units.max() > 0.95 * (longest * dt - 1) and units.min() < 2


def test_chrono_biases_of_an_lstm():
    torch.manual_seed(0)
    H, longest = 500, 300
    layer = ah.ChronoLSTM(2, H, num_layers=2, chrono_length=longest)
    for k in (0, 1):
        bias = layer.state_dict()[f"bias_ih_l{k}"]
        inputs, forget, rest = bias[:H], bias[H : 2 * H], bias[2 * H :]
        assert torch.equal(inputs, -forget) and not rest.any()
        assert not layer.state_dict()[f"bias_hh_l{k}"].any()
        units = forget.exp()
        assert 1 <= units.min() < 5 and 0.95 * longest < units.max() <= longest - 1 + 1e-3
    assert layer.weight_ih_l0.abs().max() <= 1 / math.sqrt(H)


def test_cornn_has_scales_of_the_initial_weights():
    torch.manual_seed(0)
    bound = 1 / math.sqrt(3 + 2 * 50)
    layer = ah.CoRNN(3, 50, input_scale=30.0, recurrent_scale=0.1)
    found = {name: float(p.detach().abs().max()) / bound for name, p in layer.named_parameters()}
    assert 28 < found["weight_ih_l0"] <= 30 and 20 < found["bias_l0"] <= 30
    assert 0.09 < found["weight_hy_l0"] <= 0.1 and 0.09 < found["weight_hz_l0"] <= 0.1


def test_unicornn_has_a_scale_of_the_first_layer_and_spread_of_the_time_scales():
    torch.manual_seed(1)
    plain = ah.UnICORNN(3, 40, num_layers=2)
    torch.manual_seed(1)
    wide = ah.UnICORNN(3, 40, num_layers=2, input_scale=8.0, timescale_range=2.0)
    assert torch.equal(wide.weight_ih_l0, 8 * plain.weight_ih_l0)
    assert torch.equal(wide.weight_ih_l1, plain.weight_ih_l1)
    spread = torch.cat([wide.timescale_l0, wide.timescale_l1]).detach()
    assert 1.9 < spread.abs().max() <= 2.0


@pytest.mark.parametrize("hidden_size", [1, 4, 50])
def test_couplings_start_as_oscillators(hidden_size):
    """W is symmetric with eigenvalues -ω² between -1.5 and -0.5, and it couples."""
    torch.manual_seed(0)
    W = ah.NeuralOscillator(2, hidden_size, dtype=torch.float64).weight_hh_l0.detach()
    torch.testing.assert_close(W, W.T, rtol=0, atol=1e-14)
    squares = -torch.linalg.eigvalsh(W)
    assert (squares > 0.499).all() and (squares < 1.501).all()
    assert hidden_size == 1 or (W - torch.diag(W.diagonal())).abs().max() > 0.01
    half = ah.NeuralOscillator(2, hidden_size, dtype=torch.bfloat16)
    assert half.weight_hh_l0.diagonal().max() < 0
