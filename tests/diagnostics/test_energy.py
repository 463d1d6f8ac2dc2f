"""Energies against closed forms and vector fields, ways back against exact ones, norms by hand."""

import functools
import math

import pytest
import torch

from anharmonic import LEM, CoRNN, UnICORNN
from anharmonic.diagnostics.energy import (
    _move,
    energy_along,
    reversibility_error,
)
from anharmonic.diagnostics.weights import weight_assumption, weight_norms
from anharmonic.nn.sequence.hamiltonian import hamiltonian
from anharmonic.nn.sequence.oscillator import MultiLayerNeuralOscillator

F64 = torch.float64
X = torch.zeros(1, 1, 1)


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
    layer, x = (
        UnICORNN(2, 3, 4, dt=0.3, skipped_layers=2, dtype=F64),
        torch.randn(15, 2, 2, dtype=F64),
    )
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
    layer = UnICORNN(1, 3, 2)
    with torch.no_grad():
        layer.weight_hh_l1.copy_(torch.tensor([0.1, -5.0, 2.0]))
        layer.weight_hh_l0.fill_(0.5)
    assert weight_norms(layer) == [0.5, 5.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: energy_along(LEM(1, 2), X), "layer must be a CoRNN.*; got LEM.*; pass"),
        (
            lambda: reversibility_error(CoRNN(1, 2), X),
            "layer must be a UnICORNN; got CoRNN.*; pass",
        ),
        (lambda: weight_assumption(LEM(1, 2)), "layer must be a CoRNN.*; got LEM.*; pass one"),
        (lambda: weight_norms(CoRNN(1, 2)), "layer must be a UnICORNN; got CoRNN.*; pass one"),
    ],
)
def test_other_layers_are_refused(call, text):
    with pytest.raises(TypeError, match=text):
        call()
