"""LEM and LSTM with weights that make them equal, and layers that have no such twin."""

import pytest
import torch
from torch import nn

from anharmonic import LEM
from anharmonic_papers.theory.lem import lem_equals_lstm
from anharmonic_papers.theory.lstm import lem_from_lstm, lstm_from_lem, lstm_like

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


def test_there_and_back_gives_the_same_weights():
    layer = like(0, batch_first=True)
    lstm = lstm_from_lem(layer)
    assert lstm.batch_first
    back = lem_from_lstm(lstm)
    assert back.batch_first
    for name, weight in layer.named_parameters():
        assert torch.equal(weight, dict(back.named_parameters())[name]), name


def test_both_biases_of_the_lstm_count():
    lstm = lstm_from_lem(like(0))
    with torch.no_grad():
        lstm.bias_hh_l0[:5] += 0.5
        lstm.bias_hh_l0[5:10] -= 0.5
    x = torch.randn(20, 2, 3, dtype=F64)
    torch.testing.assert_close(lem_from_lstm(lstm)(x)[0], lstm(x)[0], rtol=0, atol=1e-14)


def test_the_document_alone_does_not_make_them_equal():
    """Open gate of y, coupled gates, but W_y not the identity: refused."""
    layer = like(0)
    with torch.no_grad():
        layer.weight_zh_l0.mul_(2)
    with pytest.raises(ValueError, match="W_y must be the identity"):
        lstm_from_lem(layer)


def test_what_has_no_twin_is_refused():
    with pytest.raises(ValueError, match="dt=1"):
        lstm_like(LEM(3, 5, dt=0.5))
    with pytest.raises(ValueError, match="one layer"):
        lstm_like(LEM(3, 5, num_layers=2))
    with pytest.raises(ValueError, match="forget gate"):
        lem_from_lstm(nn.LSTM(3, 5))
    with pytest.raises(ValueError, match="lstm must have one layer"):
        lem_from_lstm(nn.LSTM(3, 5, bidirectional=True))
    lstm = lstm_from_lem(like(0))
    with torch.no_grad():
        lstm.bias_ih_l0[15:] = 1.0
    with pytest.raises(ValueError, match="the output gate must be open"):
        lem_from_lstm(lstm)
    layer = like(0)
    with torch.no_grad():
        layer.bias_l0[5:10] = 0.0
    with pytest.raises(ValueError, match="the gate of y must be open"):
        lstm_from_lem(layer)
