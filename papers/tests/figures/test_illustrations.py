"""The molecule, and few oscillators against closed forms and against CoRNN."""

import math

import pytest
import torch

from anharmonic import CoRNN
from anharmonic.train.run import RunEnvironment
from anharmonic_papers.figures import illustrations
from anharmonic_papers.figures.illustrations import OSCILLATORS


def test_every_atom_is_bonded_as_its_element_allows():
    for n, element in enumerate(illustrations._ATOMS):
        bonds = sum(n in bond for bond in illustrations._BONDS)
        assert 1 <= bonds <= {"C": 4, "O": 2, "F": 1}[element]


def test_the_molecule_oscillates_and_stays_apart():
    found = illustrations._molecule(RunEnvironment())
    assert len(found.values) == 2 * 19 and found.places["C0 x"][-1] == 20.0
    signs = torch.tensor(found.values["C0 x"]).sign()
    assert int((signs[1:] != signs[:-1]).sum()) >= 4
    last = torch.tensor([v[-1] for v in found.values.values()])
    assert last.std() > 0.1 and last.abs().max() < 5


def times(dt, end):
    return dt * torch.arange(1, round(end / dt) + 1, dtype=torch.float64)


def test_the_harmonic_oscillator_is_a_cosine():
    t = times(1e-3, 10.0)
    found = OSCILLATORS["SHO"].trajectory(torch.zeros_like(t), 1e-3)[1:, 0]
    assert (found - t.cos()).abs().max() < 1e-3  # first order


def test_forced_oscillators_answer_as_their_transfer_function_says():
    """Y'' + ε y' + y = cos 4t: the answer rings on, or settles to |1/(1 - 16 + 4 i ε)|."""
    dt = 4e-3
    t = times(dt, 60.0)
    free, damped = (OSCILLATORS[n].trajectory((4 * t).cos(), dt)[1:, 0] for n in ("FHO", "FDO"))
    assert (free - (t.cos() - (4 * t).cos()) / 15).abs().max() < dt  # first order
    assert damped[t > 45].abs().max().item() == pytest.approx(1 / math.hypot(15, 1), rel=0.01)


@pytest.mark.parametrize("name", ["coRNN", "UC", "ORD", "FC"])
def test_neurons_with_tanh_are_cornn(name):
    few = OSCILLATORS[name]
    size, dt = len(few.V), 0.05
    layer = CoRNN(1, size, dt=dt, frequency=1.0, damping=few.damping, dtype=torch.float64)
    with torch.no_grad():
        layer.weight_hy_l0.copy_(torch.tensor(few.W))
        layer.weight_hz_l0.copy_(torch.tensor(few.coupling))
        layer.weight_ih_l0.copy_(torch.tensor(few.V)[:, None])
        layer.bias_l0.copy_(torch.tensor(few.bias))
    inputs = (4 * times(dt, 20.0)).cos()
    output, _ = layer(inputs[:, None, None])
    torch.testing.assert_close(few.trajectory(inputs, dt)[1:], output[:, 0])


def test_duffing_has_no_bound_and_tanh_has():
    push = torch.full((4000,), 2.0)
    assert not OSCILLATORS["DUFF"].trajectory(push, 0.01).isfinite().all()
    assert OSCILLATORS["coRNN"].trajectory(push, 0.01).abs().max() < 5
