"""LEM layers with explicit weights follow the systems they were made for."""

import pytest
import torch

from anharmonic import LEM
from anharmonic_papers.theory.emulators import (
    emulate_multiscale_method,
    emulate_scales,
    emulate_system,
    lstm_from_lem,
    lstm_like,
)
from anharmonic_papers.theory.lem import emulated, lem_equals_lstm
from anharmonic_papers.theory.networks import random_network, random_rnn, scales_states

F64 = torch.float64


@pytest.mark.parametrize("seed", range(3))
def test_an_rnn_to_the_size_of_the_notes(seed):
    """5.9e-5 at s = 1e-2 and 5.9e-7 at 1e-3 there, over 60 steps of one random tanh RNN."""
    torch.manual_seed(seed)
    f, u = random_rnn(8, 3), torch.randn(60, 3, dtype=F64)
    (truth,) = scales_states(f, [], u)
    coarse, fine = (emulated(emulate_system(f, scale=s), u) for s in (1e-2, 1e-3))
    first, second = (float((read - truth).abs().max()) for (read,), _ in (coarse, fine))
    assert 3e-5 < first < 2e-4
    assert first / second == pytest.approx(100, rel=1e-3)
    assert float((coarse[1] - truth).abs().max()) < 2e-4  # read from z


def test_size_does_not_depend_on_tau_and_weights_do():
    torch.manual_seed(0)
    sizes = (2, 2, 1)
    f, G = random_network(2, 3, sizes), random_network(2, 3, sizes)
    slow, fast = (emulate_scales(f, [(G, tau)], scale=1e-3).layer for tau in (0.05, 0.5))
    assert slow.hidden_size == fast.hidden_size
    assert not torch.equal(slow.bias_l0, fast.bias_l0)


def test_sizes_and_numbers_are_checked():
    f, G = random_network(2, 3, (2, 1)), random_network(2, 3, (2, 2, 1))
    with pytest.raises(
        ValueError, match=r"fast must be a network with arguments of sizes \[2, 2, 1\]"
    ):
        emulate_scales(f, [(G, 0.1)], scale=0.1)
    with pytest.raises(ValueError, match="slow must be one network or more"):
        emulate_scales(f, [], scale=0.1)
    with pytest.raises(ValueError, match="tau must be"):
        emulate_scales(G, [(G, 0.0)], scale=0.1)
    with pytest.raises(ValueError, match="scale must be"):
        emulate_system(f, scale=0.0)
    with pytest.raises(ValueError, match="kappa must be"):
        emulate_multiscale_method(
            random_network(1, 2, (1,)), random_network(1, 2, (1, 1)), kappa=1, step=0.1, scale=0.1
        )


def like(seed, **options):
    torch.manual_seed(seed)
    return lstm_like(LEM(3, 5, dtype=F64, **options))


@pytest.mark.parametrize("seed", range(3))
def test_fifty_steps_agree_to_rounding(seed):
    layer = like(seed)
    x = 3 * torch.randn(50, 4, 3, dtype=F64)
    with torch.no_grad():
        y, state = layer(x)
        h, (_, c) = lstm_from_lem(layer)(x)
    assert float((y - h).abs().max()) <= 1e-15
    assert float((state.z - c).abs().max()) <= 2e-15
    assert lem_equals_lstm(layer, x).holds
    assert lstm_from_lem(like(seed, batch_first=True)).batch_first


def test_what_has_no_twin_is_refused():
    with pytest.raises(ValueError, match="dt=1"):
        lstm_like(LEM(3, 5, dt=0.5))
    with pytest.raises(ValueError, match="one layer"):
        lstm_like(LEM(3, 5, num_layers=2))
    for name, rows, value in (
        ("weight_zh_l0", slice(None), 2.0),  # the document alone: gates, but not W_y = I
        ("weight_ih_l0", slice(5, 10), 0.1),
        ("weight_hh_l0", slice(5, 10), 0.1),
        ("bias_l0", slice(5, 10), 0.0),
        ("bias_l0", slice(15, 20), 0.1),
    ):
        layer = like(0)
        with torch.no_grad():
            layer.get_parameter(name)[rows] = value
        with pytest.raises(ValueError, match="W_y = I, V_y = 0 and b_y = 0, whose gate of y has"):
            lstm_from_lem(layer)
