"""Energies, ways back and time scales: closed forms, vector fields, what layers do with them."""

import functools
import math

import pytest
import torch
from torch import nn

from anharmonic import LEM, CoRNN, UnICORNN
from anharmonic.diagnostics.energy import _move, energy_along, reversibility_error
from anharmonic.diagnostics.timescales import effective_steps, gates, scale_histogram
from anharmonic.diagnostics.weights import weight_assumption, weight_norms
from anharmonic.nn.sequence.hamiltonian import hamiltonian
from anharmonic.nn.sequence.oscillator import MultiLayerNeuralOscillator

F64 = torch.float64


def still(layer):
    """All weights zero: free oscillators."""
    with torch.no_grad():
        for weight in layer.parameters():
            weight.zero_()
    return layer


def test_energy_of_free_damped_oscillators_decays_as_its_equation_says():
    """From rest with a constant bias to y = tanh(b)/γ: the energy ends at tanh(b)²/(2γ) each."""
    layer = still(CoRNN(1, 3, dt=0.1, frequency=2.0, damping=1.0, dtype=F64))
    with torch.no_grad():
        layer.bias_l0.fill_(0.7)
    found = energy_along(layer, torch.zeros(600, 1, 1).double())
    assert found.shape == (600, 1, 1)
    assert found[-1].item() == pytest.approx(3 * math.tanh(0.7) ** 2 / 4, rel=1e-10)


SKIPPING = functools.partial(UnICORNN, skipped_layers=2)


@pytest.mark.parametrize("kind", [UnICORNN, SKIPPING, MultiLayerNeuralOscillator])
def test_energy_along_is_the_hamiltonian_of_every_state(kind):
    layer, x, state = kind(2, 4, 3, dtype=F64), torch.randn(6, 5, 2, dtype=F64), None
    found = energy_along(layer, x)
    for n, x_t in enumerate(x):
        _, state = layer.step(x_t, state)
        torch.testing.assert_close(found[n], hamiltonian(layer, state, x_t))


def test_reversing_is_exact_where_arithmetic_is():
    """No force and h = 1/4: all states are multiples of 1/4 and come back bit for bit."""
    layer = still(UnICORNN(1, 3, 2, dt=0.5, frequency=0.0))
    with torch.no_grad():
        layer.bias_l0.fill_(100.0)  # tanh is 1
        layer.bias_l1.fill_(-100.0)
    assert torch.equal(reversibility_error(layer, torch.zeros(50, 2, 1)), torch.zeros(51))


def test_the_way_that_is_reversed_is_the_layers_own():
    layer = UnICORNN(2, 3, 4, dt=0.3, skipped_layers=2, dtype=F64)
    x = torch.randn(15, 2, 2, dtype=F64)
    assert reversibility_error(layer, x).max() < 1e-13
    y, z = torch.zeros(2, 4, 2, 3).double()
    with torch.no_grad():
        for x_t in x:
            _move(layer, y, z, x_t, back=False)
        _, state = layer(x)
    torch.testing.assert_close((y, z), tuple(state))


def test_both_sides_of_the_assumption_by_hand():
    layer = CoRNN(1, 2, 2, dt=0.25, bidirectional=True)
    with torch.no_grad():
        layer.weight_hy_l0.copy_(torch.tensor([[1.0, -2.0], [0.5, 0.5]]))
        layer.weight_hz_l0.copy_(torch.tensor([[0.0, 1.0], [-3.0, 4.0]]))
    found = weight_assumption(layer)
    assert len(found) == 4
    assert found[0].norms == (3.0, 7.0) and found[0].eta == pytest.approx(0.25 * 7 / 1.25)
    assert found[0].weakest_bound == 0.5 and not found[0].holds
    learned = CoRNN(1, 2, dt=0.25, trainable_dt=True)
    with torch.no_grad():
        layer.weight_hz_l0.zero_()
        learned.raw_dt.fill_(0.0)
    assert weight_assumption(layer)[0].eta == pytest.approx(0.25 * 4 / 1.25)
    assert weight_assumption(learned)[0].dt == 0.5


def test_norms_of_unicornn_are_the_largest_entries():
    layer = still(UnICORNN(1, 3, 2))
    with torch.no_grad():
        layer.weight_hh_l1[1] = -5.0
    assert weight_norms(layer) == [0.0, 5.0]


@pytest.mark.parametrize("options", [{}, {"bias": False}, {"gate_floor": 0.45}], ids=str)
def test_gates_of_lem_are_those_of_its_steps(options):
    """With the gates found, (5.3) gives the layer's own next states."""
    layer, x = LEM(2, 3, 2, dt=0.7, dtype=F64, **options), torch.randn(9, 4, 2, dtype=F64)
    found, state = gates(layer, x), (torch.zeros(2, 4, 3).double(),) * 2
    for n, x_t in enumerate(x):
        before = state
        _, state = layer.step(x_t, before)
        for k, u in enumerate((x_t, state.y[0])):
            y, z = (s[k] for s in before)
            V, W = getattr(layer, f"weight_ih_l{k}"), getattr(layer, f"weight_hh_l{k}")
            b = getattr(layer, f"bias_l{k}", torch.zeros(12).double())
            a, e = found["a"][n, k], found["e"][n, k]
            z = (1 - a) * z + a * torch.tanh(y @ W[6:].t() + u @ V[6:9].t() + b[6:9])
            Wy = getattr(layer, f"weight_zh_l{k}")
            y = (1 - e) * y + e * torch.tanh(z @ Wy.t() + u @ V[9:].t() + b[9:])
            torch.testing.assert_close(z, state.z[k])
            torch.testing.assert_close(y, state.y[k])


@pytest.mark.parametrize("batch_first", [True, False])
def test_an_lstm_of_two_layers_sees_the_layer_below_and_its_own_past(batch_first):
    layer = nn.LSTM(2, 3, 2, batch_first=batch_first, dtype=F64)
    below = nn.LSTM(2, 3, batch_first=batch_first, dtype=F64)
    below.load_state_dict({k: v for k, v in layer.state_dict().items() if k.endswith("l0")})
    x = torch.randn(5, 4, 2, dtype=F64)
    found, given = gates(layer, x)["1 - f"], x.transpose(0, 1) if batch_first else x
    lower, upper = (net(given)[0] for net in (below, layer))
    if batch_first:
        lower, upper = lower.transpose(0, 1), upper.transpose(0, 1)
    rows = slice(3, 6)
    drive = lower[3] @ layer.weight_ih_l1[rows].t() + upper[2] @ layer.weight_hh_l1[rows].t()
    drive = drive + layer.bias_ih_l1[rows] + layer.bias_hh_l1[rows]
    assert found.shape == (5, 2, 4, 3)
    torch.testing.assert_close(found[3, 1], 1 - torch.sigmoid(drive))


def test_effective_steps_are_what_a_step_moves():
    """w = V = b = α = 0 and z = 1: a step moves y by h exactly."""
    layer = UnICORNN(2, 5, 3, dt=[0.1, 0.2, 0.4], frequency=0.0, dtype=F64)
    with torch.no_grad():
        for name, weight in layer.named_parameters():
            weight.mul_(name.startswith("timescale"))
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
