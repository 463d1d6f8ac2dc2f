"""Time scales against what the layers themselves do with them, and power laws of known exponent."""

import math

import pytest
import torch
from torch import nn

from anharmonic import LEM, CoRNN, UnICORNN
from anharmonic.diagnostics.timescales import effective_steps, gates, scale_histogram

F64 = torch.float64
X = torch.zeros(1, 1, 1)


@pytest.mark.parametrize("bias", [True, False])
def test_gates_of_lem_are_those_of_its_steps(bias):
    """With the gates found, (5.3) gives the layer's own next states."""
    layer, x = LEM(2, 3, 2, dt=0.7, bias=bias, dtype=F64), torch.randn(9, 4, 2, dtype=F64)
    found, state = gates(layer, x), (torch.zeros(2, 4, 3).double(),) * 2
    for n, x_t in enumerate(x):
        before = state
        _, state = layer.step(x_t, before)
        for k, u in enumerate((x_t, state.y[0])):
            y, z = (s[k] for s in before)
            V, W = getattr(layer, f"weight_ih_l{k}"), getattr(layer, f"weight_hh_l{k}")
            b = getattr(layer, f"bias_l{k}") if bias else torch.zeros(12).double()
            a, e = found["a"][n, k], found["e"][n, k]
            z = (1 - a) * z + a * torch.tanh(y @ W[6:].t() + u @ V[6:9].t() + b[6:9])
            Wy = getattr(layer, f"weight_zh_l{k}")
            y = (1 - e) * y + e * torch.tanh(z @ Wy.t() + u @ V[9:].t() + b[9:])
            torch.testing.assert_close(z, state.z[k])
            torch.testing.assert_close(y, state.y[k])


def test_gates_are_clipped_where_the_layer_clips_them():
    layer = LEM(1, 4, gate_floor=0.45)
    found = gates(layer, 5 * torch.randn(50, 2, 1))
    assert min(float(g.min()) for g in found.values()) == pytest.approx(0.45)


@pytest.mark.parametrize("batch_first", [True, False])
def test_torch_lstm_forgets_what_its_gate_says(batch_first):
    """With the input gate shut, a step leaves the share f of the cell: here of any cell given."""
    layer = nn.LSTM(2, 3, batch_first=batch_first, dtype=F64)
    with torch.no_grad():
        layer.bias_ih_l0[:3] = -50  # i < 1e-20
    x, h, c = (
        torch.randn(1, 4, 2, dtype=F64),
        torch.zeros(1, 4, 3).double(),
        torch.randn(1, 4, 3, dtype=F64),
    )
    leak = gates(layer, x)["1 - f"]
    assert leak.shape == (1, 1, 4, 3)
    _, (_, after) = layer(x.transpose(0, 1) if batch_first else x, (h, c))
    torch.testing.assert_close(after, (1 - leak[0]) * c)


def test_an_lstm_of_two_layers_sees_the_layer_below_and_its_own_past():
    layer, x = nn.LSTM(2, 3, 2, dtype=F64), torch.randn(5, 4, 2, dtype=F64)
    found = gates(layer, x)["1 - f"]
    below = nn.LSTM(2, 3, dtype=F64)
    below.load_state_dict({k: v for k, v in layer.state_dict().items() if k.endswith("l0")})
    lower, upper = below(x)[0], layer(x)[0]
    rows = slice(3, 6)
    drive = lower[3] @ layer.weight_ih_l1[rows].t() + upper[2] @ layer.weight_hh_l1[rows].t()
    drive = drive + layer.bias_ih_l1[rows] + layer.bias_hh_l1[rows]
    torch.testing.assert_close(found[3, 1], 1 - torch.sigmoid(drive))


def test_effective_steps_are_what_a_step_moves():
    """w = V = b = α = 0 and z = 1: a step moves y by h exactly."""
    layer = UnICORNN(2, 5, 3, dt=[0.1, 0.2, 0.4], frequency=0.0, dtype=F64)
    with torch.no_grad():
        for name, weight in layer.named_parameters():
            if not name.startswith("timescale"):
                weight.zero_()
    ones = torch.ones(3, 1, 5, dtype=F64)
    _, state = layer.step(torch.zeros(1, 2).double(), (0 * ones, ones))
    torch.testing.assert_close(effective_steps(layer), state.y[:, 0])
    assert effective_steps(UnICORNN(2, 5, 3, bidirectional=True)).shape == (6, 5)


@pytest.mark.parametrize(("exponent", "decades"), [(0.64, 3), (0.94, 3), (2.0, 1)])
def test_a_power_law_is_found_again(exponent, decades):
    """The density τ^(s-1) on some decades below 1, drawn at its quantiles: counts grow as τ^s."""
    u = (torch.arange(200_000, dtype=F64) + 0.5) / 200_000
    low = 10 ** (-decades * exponent)
    values = (low + u * (1 - low)) ** (1 / exponent)
    found = scale_histogram(values, bins=20, low=10**-decades, high=1.0)
    assert sum(found.counts) == 200_000
    assert found.exponent == pytest.approx(exponent, abs=0.02)  # rounding of small counts
    assert found.r_squared > 0.99
    # N(τ) = 200000 s τ^s width / (1 - low) for narrow bins.
    width = decades * math.log(10) / 20
    expected = 200_000 * exponent * width / (1 - low)
    assert found.factor == pytest.approx(expected, rel=0.05)
    assert found.centres[0] == pytest.approx(10**-decades * math.exp(width / 2))


def test_histogram_counts_every_value_once():
    found = scale_histogram(torch.tensor([1.0, 10.0, 100.0, -1.0, 0.0, float("nan")]), bins=2)
    assert found.edges == pytest.approx((1.0, 10.0, 100.0)) and found.counts == (1, 2)
    one = scale_histogram(torch.full((5,), 0.3), bins=4)
    assert sum(one.counts) == 5 and math.isnan(one.exponent)
    flat = scale_histogram(torch.tensor([1.0, 100.0]), bins=2)
    assert flat.exponent == 0 and math.isnan(flat.r_squared)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: effective_steps(LEM(1, 2)), TypeError, "layer must be a UnICORNN; got LEM"),
        (lambda: gates(CoRNN(1, 2), X), TypeError, "layer must be a LEM or an LSTM; got CoRNN"),
        (lambda: gates(LEM(1, 2, multiscale=False), X), ValueError, "no projection; got LEM"),
        (lambda: gates(nn.LSTM(1, 2, proj_size=1), X), ValueError, "no projection; got LSTM"),
        (lambda: scale_histogram(torch.zeros(3)), ValueError, "values must be .* positive and fin"),
        (lambda: scale_histogram(X + 1, low=2.0, high=1.0), ValueError, "high must be above low=2"),
    ],
)
def test_bad_input_is_said(call, error, text):
    with pytest.raises(error, match=text):
        call()
