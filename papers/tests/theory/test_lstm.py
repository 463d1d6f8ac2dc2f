"""LEM and LSTM with weights that make them equal, and layers that have no such twin."""

import pytest
import torch

from anharmonic import LEM
from anharmonic_papers.theory.lem import lem_equals_lstm
from anharmonic_papers.theory.lstm import lstm_from_lem, lstm_like

F64 = torch.float64


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
