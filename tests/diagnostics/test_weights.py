"""Norms by hand."""

import pytest
import torch

from anharmonic import LEM, CoRNN, UnICORNN
from anharmonic.diagnostics.weights import weight_assumption, weight_norms


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


def test_other_layers_are_refused():
    with pytest.raises(TypeError, match=r"layer must be a CoRNN.*; got LEM.*; pass one"):
        weight_assumption(LEM(1, 2))
    with pytest.raises(TypeError, match=r"layer must be a UnICORNN; got CoRNN.*; pass one"):
        weight_norms(CoRNN(1, 2))
