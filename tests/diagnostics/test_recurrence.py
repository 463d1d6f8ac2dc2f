"""Layers as maps of flat states: the same states as the layer's own."""

import pytest
import torch
from torch import nn

from anharmonic import LEM, CoRNN, LinOSSNetwork, UnICORNN
from anharmonic.diagnostics.recurrence import examined, recurrence
from anharmonic.nn.heads import SequenceModel
from anharmonic.nn.registry import list_models, model_class

LAYERS = [
    *(lambda n=n, **k: model_class(n)(3, 4, 2, **k) for n in list_models() if n != "LinOSSNetwork"),
    *(lambda t=t, **k: t(3, 4, 2, **k) for t in (nn.LSTM, nn.GRU, nn.RNN)),
    lambda **k: nn.LSTM(3, 4, 2, proj_size=2, **k),
]


@pytest.mark.covering
@pytest.mark.parametrize("make", LAYERS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_walking_step_by_step_gives_outputs_and_last_state_of_the_layer(make, batch_first):
    layer = make(batch_first=batch_first, dtype=torch.float64)
    x = torch.randn(7, 5, 3, dtype=torch.float64)
    found = recurrence(layer)
    states = torch.stack(found.walk(x))
    assert states.shape == (8, 5, found.size)
    output, last = layer(x.transpose(0, 1) if batch_first else x)
    output = output.transpose(0, 1) if batch_first else output
    torch.testing.assert_close(found.output(states[1:]), output)
    last = (last,) if isinstance(last, torch.Tensor) else last
    for mine, theirs in zip(found.parts(states[-1]), last, strict=True):
        torch.testing.assert_close(mine, theirs)


def test_what_is_no_layer_or_no_input_is_said():
    with pytest.raises(TypeError, match=r"layer must be a recurrent layer.*; got 'Linear'; pass"):
        recurrence(nn.Linear(2, 2))
    with pytest.raises(ValueError, match=r"bidirectional must be False.*; got True; take a"):
        recurrence(LEM(2, 2, bidirectional=True))
    with pytest.raises(ValueError, match=r"part of its state; got 'LinOSSNetwork'"):
        recurrence(LinOSSNetwork(2, 4))


def test_a_model_is_looked_at_through_its_layer_and_keeps_its_modes():
    model = SequenceModel("LEM", 3, 2, hidden_size=4)
    assert recurrence(model).layer is model.layer
    model = nn.Sequential(UnICORNN(2, 3, 2, dropout=0.5), CoRNN(3, 3))
    model[1].eval()
    with pytest.raises(RuntimeError, match="inside"), examined(model):
        assert not any(part.training for part in model.modules())
        raise RuntimeError("inside")
    assert model.training and model[0].training and not model[1].training
